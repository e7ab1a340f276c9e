//! The links' configurations, as `docs/guide/remote-link.md` tells users to write them.

use super::setup::Setup;
use std::fmt::Write;
use std::path::Path;

/// One of two hosts.
pub(super) struct Host<'a> {
    pub(super) name: &'a str,
    pub(super) address: String,
    pub(super) port: u16,
}

/// Returns the configuration of `own`, whose peer is `peer`. Both hosts have a robot for the other: `robots` are their
/// names, `own`'s first.
pub(super) fn configuration(
    setup: &Setup,
    [own, peer]: [&Host<'_>; 2],
    robots: [&str; 2],
    keys: &Path,
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "host: {}\nkeys: '{}'\nradio: {{bind: '{}:{}', {}, queue_bytes: 64MiB}}\npeers:\n  \
         - {{name: {}, address: '{}:{}'}}\nservices:\n",
        own.name,
        keys.display(),
        own.address,
        own.port,
        setup.radio,
        peer.name,
        peer.address,
        peer.port
    );
    // Large data that must arrive uses fountain coding; between processes of one host nothing is lost.
    let bulk = !setup.is_loopback();
    for (robot, role) in robots
        .into_iter()
        .zip(["serve".into(), format!("call, from: {}", peer.name)])
    {
        for (class, more) in [
            ("command", "priority: 110, depth: 128"),
            ("request", "priority: 60, depth: 32"),
            ("file", "priority: 5, depth: 64"),
        ] {
            let fountain = match bulk && role == "serve" && class == "request" {
                true => ", reliability: bulk",
                false => "",
            };
            let _ = writeln!(
                text,
                "  - {{name: /{robot}/remote/{class}, role: {role}, {more}{fountain}}}"
            );
        }
    }
    text.push_str("topics:\n");
    for (robot, is_own) in robots.into_iter().zip([true, false]) {
        let all = format!("/{robot}/remote/telemetry");
        if !is_own {
            let _ = writeln!(text, "  - {{name: '{all}/*', direction: in}}");
            continue;
        }
        let _ = writeln!(
            text,
            "  - {{name: '{all}/*', direction: out, latched: true, publisher_priority: true}}"
        );
        if bulk {
            let _ = writeln!(
                text,
                "  - {{name: '{all}/large/*', direction: out, reliability: bulk, priority: 5, depth: 2}}"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::setup::{DEFAULT, LOOPBACK};
    use super::*;

    #[test]
    fn each_host_serves_its_robot_and_calls_the_other() {
        let host = |name, port| Host {
            name,
            address: "127.0.0.1".into(),
            port,
        };
        let (operator, robot) = (host("controller", 7400), host("robot", 7401));
        for setup in [&DEFAULT, &LOOPBACK] {
            let text = configuration(
                setup,
                [&robot, &operator],
                ["robot", "operator"],
                Path::new("/nowhere"),
            );
            link::Config::parse(&text).expect(&text);
            assert!(
                text.contains("name: /robot/remote/file, role: serve, priority: 5, depth: 64"),
                "{text}"
            );
            assert!(
                text.contains("name: /operator/remote/command, role: call, from: controller, priority: 110"),
                "{text}"
            );
            let text = configuration(
                setup,
                [&operator, &robot],
                ["operator", "robot"],
                Path::new("/nowhere"),
            );
            link::Config::parse(&text).expect(&text);
            let bulk = text.matches("reliability: bulk").count();
            assert_eq!(bulk, if setup.is_loopback() { 0 } else { 2 }, "{text}");
            assert!(
                text.contains("'/robot/remote/telemetry/*', direction: in"),
                "{text}"
            );
        }
    }
}
