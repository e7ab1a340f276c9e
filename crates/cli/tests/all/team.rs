//! Links between the hosts of a team, over QUIC.

use crate::support::{Done, Host, address};
use std::net::UdpSocket;
use std::time::Duration;

/// A team of `hosts`, whose keys lie in `owner`'s folder.
fn team(owner: &Host, name: &str, hosts: &[&str]) {
    assert_eq!(owner.run(&["keys", "team", name]).code, 0);
    for host in hosts {
        let done = owner.run(&["keys", "host", host, "--team", name]);
        assert_eq!(done.code, 0, "{done:?}");
    }
}

fn config(host: &Host, keys: &std::path::Path, own: (&str, &str), peer: (&str, &str), rest: &str) {
    let text = format!(
        "host: {}\nkeys: {}\nradio: {{bind: '{}', rate: 54Mbit/s}}\npeers:\n  - name: {}\n    address: '{}'\n{rest}",
        own.0,
        keys.display(),
        own.1,
        peer.0,
        peer.1
    );
    std::fs::write(host.path("link.yaml"), text).expect("writes");
}

fn echo(host: &Host, topic: &str, wait: &str) -> Done {
    host.run(&["topic", "echo", topic, "-n", "3", "--wait", wait])
}

#[test]
fn hosts_of_a_team_share_topics_and_others_learn_nothing() {
    let (owner, robot, base, thief) = (Host::new(), Host::new(), Host::new(), Host::new());
    team(&owner, "rovers", &["robot", "base"]);
    team(&owner, "thieves", &["robot"]);
    let (a, b, c) = (address(), address(), address());
    let keys = |team: &str, host: &str| owner.path(team).join("hosts").join(host);
    config(
        &robot,
        &keys("rovers", "robot"),
        ("robot", &a),
        ("base", &b),
        "topics:\n  - {name: /up, direction: out}\n  - {name: /secret, direction: out}\n  - {name: /down, direction: in}\n",
    );
    config(
        &base,
        &keys("rovers", "base"),
        ("base", &b),
        ("robot", &a),
        "    allow: {publish: [/up], subscribe: ['/do*wn']}\n",
    );
    let bad = base.run(&["link", "link.yaml", "--check"]);
    assert!(bad.code == 2 && bad.stderr.contains("/do*wn"), "{bad:?}");
    config(
        &base,
        &keys("rovers", "base"),
        ("base", &b),
        ("robot", &a),
        "    allow: {publish: [/up], subscribe: [/down]}\n\
         topics:\n  - {name: /up, direction: in}\n  - {name: /secret, direction: in}\n  - {name: /down, direction: out}\n",
    );
    let publish = |host: &Host, topic: &str| {
        host.start(&[
            "topic",
            "pub",
            topic,
            "std_msgs/String",
            "data: hello",
            "--rate",
            "50",
        ])
    };
    let _publishers = [
        publish(&robot, "/up"),
        publish(&robot, "/secret"),
        publish(&base, "/down"),
    ];
    let robot_link = robot.start(&["link", "link.yaml", "--json", "--every", "0.2"]);
    let base_link = base.start(&["link", "link.yaml", "--json", "--every", "0.2"]);
    for (host, topic) in [(&base, "/up"), (&robot, "/down")] {
        let done = echo(host, topic, "30");
        assert_eq!(
            (done.code, done.stdout.matches("hello").count()),
            (0, 3),
            "{done:?}"
        );
    }
    let secret = echo(&base, "/secret", "1");
    assert_eq!(secret.stdout.matches("hello").count(), 0, "{secret:?}");

    // A thief with a certificate of another team, and one without a certificate that knows only how QUIC starts.
    config(
        &thief,
        &keys("thieves", "robot"),
        ("robot", &c),
        ("base", &b),
        "topics:\n  - {name: /up, direction: in}\n",
    );
    let thief_link = thief.start(&["link", "link.yaml", "--json", "--every", "0.2"]);
    let unknown = UdpSocket::bind("127.0.0.1:0").expect("binds");
    unknown
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("sets");
    let mut initial = vec![0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x44, 0x9e];
    initial.resize(1200, 0x5a);
    // Version 1, an unknown version, a short header, garbage.
    for first in [
        [0xc3, 0, 0, 0, 1],
        [0xc3, 9, 9, 9, 9],
        [0x43, 1, 2, 3, 4],
        [0, 0, 0, 0, 0],
    ] {
        initial[..5].copy_from_slice(&first);
        for to in [&a, &b] {
            unknown.send_to(&initial, to).expect("sends");
        }
    }
    let reported = unknown.recv_from(&mut [0; 2000]);
    assert!(reported.is_err(), "an unauthenticated peer received {reported:?}");
    thief_link.interrupt();
    let done = thief_link.wait();
    let state: serde_json::Value =
        serde_json::from_str(done.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!(state["peers"][0]["up"], false, "{done:?}");

    // The robot is stolen.
    let revoked = owner.run(&["keys", "revoke", "robot", "--team", "rovers"]);
    assert_eq!(revoked.code, 0, "{revoked:?}");
    // The links check their keys twice a second, and drop a silent peer after one second; this is plenty.
    std::thread::sleep(Duration::from_secs(8));
    base_link.interrupt();
    let done = base_link.wait();
    let last: serde_json::Value =
        serde_json::from_str(done.stdout.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["peers"][0]["up"], false, "{done:?}");
    let refused = done
        .stdout
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).expect("JSON"));
    let most = refused
        .filter_map(|s| s["peers"][0]["refused_topics"].as_u64())
        .max();
    assert!(most >= Some(1), "{done:?}");
    assert!(last["refused_datagrams"].as_u64() >= Some(4), "{done:?}");
    assert!(
        done.stderr
            .contains("which `allow` does not permit it to publish"),
        "{done:?}"
    );
    assert!(done.stderr.contains("no longer valid"), "{done:?}");
    robot_link.interrupt();
    assert_eq!(robot_link.wait().code, 0);
}

#[test]
fn the_guide_s_example_is_good() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/link.md");
    let guide = std::fs::read_to_string(guide).expect("reads");
    let examples: Vec<&str> = guide
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(examples.len() >= 2, "the guide has lost its examples");
    let host = Host::new();
    team(&host, "rovers", &["robot", "base", "relay"]);
    std::fs::rename(host.path("rovers/hosts"), host.path("keys")).expect("moves");
    for example in examples {
        std::fs::write(host.path("link.yaml"), example).expect("writes");
        let done = host.run(&["link", "link.yaml", "--check"]);
        assert_eq!(done.code, 0, "{done:?}\n{example}");
    }
}

#[test]
fn keys_are_listed_shown_and_refused_when_others_may_read_them() {
    use std::os::unix::fs::PermissionsExt;
    let host = Host::new();
    let none = host.run(&["keys", "host", "robot"]);
    assert!(none.code == 2 && none.stderr.contains("keys team"), "{none:?}");
    team(&host, "rovers", &["robot", "base"]);
    assert_eq!(host.run(&["keys", "revoke", "base"]).code, 0);
    let list = host.run(&["keys", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(
        (&list[0]["state"], &list[1]["state"]),
        (&"valid".into(), &"revoked".into())
    );
    let show = host.run(&["keys", "show", "rovers/hosts/robot", "--json"]);
    let show: serde_json::Value = serde_json::from_str(&show.stdout).expect("JSON");
    assert_eq!(
        (&show["host"], &show["team"], &show["serial"]),
        (&"robot".into(), &"rovers".into(), &list[0]["serial"])
    );
    let revoked = host.run(&["keys", "show", "rovers/hosts/base"]);
    assert!(
        revoked.code == 2 && revoked.stderr.contains("revoked"),
        "{revoked:?}"
    );
    let key = host.path("rovers/hosts/robot/host.key");
    std::fs::set_permissions(key, PermissionsExt::from_mode(0o644)).expect("changes");
    let open = host.run(&["keys", "show", "rovers/hosts/robot"]);
    assert!(open.code == 2 && open.stderr.contains("chmod 600"), "{open:?}");
    let again = host.run(&["keys", "team", "rovers"]);
    assert!(again.code == 2 && again.stderr.contains("already"), "{again:?}");
}
