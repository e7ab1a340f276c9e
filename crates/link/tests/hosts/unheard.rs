//! A peer that does not answer is reported at both ends, with its address and the reason or what to check.
use crate::common::*;
use link::Unheard;
use link::keys::Team;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Creates a team of these hosts. Returns the folders of their keys.
fn team<const N: usize>(folder: &Path, name: &str, hosts: [&str; N]) -> [PathBuf; N] {
    let team = Team::create(&folder.join(name), name).expect("makes");
    hosts.map(|host| team.add_host(host, Duration::from_secs(86_400)).expect("makes"))
}

fn host(name: &str, keys: &Path, carrier: &str, port: u16, peer: (&str, u16)) -> Host {
    let (peer, there) = peer;
    Host::start(&format!(
        "host: {name}\nkeys: '{}'\nradio: {{bind: '127.0.0.1:{port}', carrier: {carrier}, rate: unlimited}}\n\
         peers: [{{name: {peer}, address: '127.0.0.1:{there}'}}]\n",
        keys.display()
    ))
}

/// Waits until a host's only peer is reported as not answering, for a reason that `fits`.
fn said(host: &Host, fits: impl Fn(&str) -> bool) -> Unheard {
    let mut last = None;
    let start = std::time::Instant::now();
    loop {
        let peers = host.status().peers;
        match peers.into_iter().next().and_then(|p| p.unheard) {
            Some(unheard) if fits(&unheard.text) => return unheard,
            other => last = other.or(last),
        }
        assert!(start.elapsed() < LONG, "the report is {last:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_peer_that_is_off_is_named_with_its_address_until_it_answers() {
    for carrier in ["quic", "tls"] {
        let folder = tempfile::tempdir().expect("a folder");
        let [robot, base] = team(folder.path(), "rovers", ["robot", "base"]);
        let [x, y] = ports();
        let robot = host("robot", &robot, carrier, x, ("base", y));
        let unheard = said(&robot, |_| true);
        assert_eq!(unheard.address, Some(format!("127.0.0.1:{y}")), "{unheard:?}");
        assert!(unheard.for_s >= 5.0 && !unheard.ever, "{unheard:?}");
        let base = host("base", &base, carrier, y, ("robot", x));
        until("it answers, and no report is left", || {
            [&robot, &base]
                .iter()
                .all(|h| h.status().peers.iter().all(|p| p.stats.up && p.unheard.is_none()))
        });
        drop(base);
        let unheard = said(&robot, |_| true);
        assert!(
            unheard.ever && unheard.text.starts_with("base has not answered"),
            "{unheard:?}"
        );
    }
}

#[test]
fn keys_of_another_team_are_said_at_both_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let [robot] = team(folder.path(), "rovers", ["robot"]);
    let [base] = team(folder.path(), "drones", ["base"]);
    let [x, y] = ports();
    let robot = host("robot", &robot, "quic", x, ("base", y));
    let base = host("base", &base, "quic", y, ("robot", x));
    for end in [&robot, &base] {
        said(end, |text| text.contains("its keys are from another team"));
    }
}

#[test]
fn an_unlisted_host_learns_that_it_is_not_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let [robot, base] = team(folder.path(), "rovers", ["robot", "base"]);
    let [x, y, z] = ports();
    let robot = host("robot", &robot, "quic", x, ("base", y));
    let base = host("base", &base, "quic", y, ("another", z));
    said(&robot, |text| {
        text.contains("it does not list this host under `peers`")
    });
    let unheard = said(&base, |_| true);
    assert_eq!(unheard.address, Some(format!("127.0.0.1:{z}")));
}
