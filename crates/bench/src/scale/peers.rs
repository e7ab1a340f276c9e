//! Commands of the nodes of each system (`peers/scale/README.md`).

use super::point::Point;
use super::{System, raw};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// The first port of Zenoh's echoes.
const ZENOH: u32 = 17_447;

/// What all nodes of a run have in common.
pub(super) struct Play<'a> {
    /// The first words of a node's command.
    pub(super) program: Vec<String>,
    /// Addresses of the hosts.
    pub(super) addresses: &'a [Ipv4Addr],
    pub(super) system: System,
    pub(super) point: &'a Point,
    /// Unique among the runs of a session.
    pub(super) number: u64,
    pub(super) linger: Duration,
    /// Folder of the senders' logs.
    pub(super) folder: &'a Path,
}

/// A node: its host, and its command.
pub(super) struct Node {
    pub(super) host: u32,
    pub(super) words: Vec<String>,
    pub(super) environment: Option<(&'static str, String)>,
}

impl Play<'_> {
    /// Returns one of the nodes: echoes come first, then senders.
    pub(super) fn node(&self, node: u32) -> Node {
        match node.checked_sub(self.point.senders()) {
            None => self.echo(node),
            Some(sender) => self.sender(sender),
        }
    }

    /// Returns the name of a node.
    pub(super) fn name(&self, node: u32) -> String {
        name(self.system, self.point, node)
    }

    /// Returns a node that sends.
    fn sender(&self, sender: u32) -> Node {
        let Play { point, number, .. } = self;
        let [host, _] = point.hosts_of(sender);
        let answers: Vec<_> = point
            .echoes_of(sender)
            .map(|e| answered(host, *number, sender, e))
            .collect();
        // Senders are not in step.
        let phase = (f64::from(sender) * 0.618_034).fract();
        let mut words = self.words("send");
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        option("publish", sent(host, *number, sender));
        option("answers", answers.join(","));
        option("hz", point.hz.to_string());
        option("messages", point.messages.to_string());
        option("offset-us", ((phase * 1e6 / point.hz) as u64).to_string());
        option("linger-ms", self.linger.as_millis().to_string());
        option(
            "log",
            raw::file(self.folder, sender).to_string_lossy().into_owned(),
        );
        if self.system == System::Zenoh {
            for echo in point.echoes_of(sender) {
                let [_, there] = point.hosts_of(echo);
                option("connect", self.endpoint(there, echo));
            }
        }
        self.around(host, words)
    }

    /// Returns a node that answers.
    fn echo(&self, echo: u32) -> Node {
        let Play { point, number, .. } = self;
        let [_, host] = point.hosts_of(echo);
        let ways: Vec<_> = (0..point.senders())
            .filter(|s| point.echoes_of(*s).contains(&echo))
            .map(|s| {
                let [from, _] = point.hosts_of(s);
                format!("{}:{}", sent(from, *number, s), answered(from, *number, s, echo))
            })
            .collect();
        let mut words = self.words("echo");
        words.extend(["--ways".to_owned(), ways.join(",")]);
        if self.system == System::Zenoh {
            words.extend(["--listen".to_owned(), self.endpoint(host, echo)]);
        }
        self.around(host, words)
    }

    fn endpoint(&self, host: u32, echo: u32) -> String {
        format!("tcp/{}:{}", self.address(host), ZENOH + echo)
    }

    fn address(&self, host: u32) -> Ipv4Addr {
        let address = self.addresses.get(host as usize);
        address.copied().unwrap_or(Ipv4Addr::LOCALHOST)
    }

    fn words(&self, role: &str) -> Vec<String> {
        let mut words = self.program.clone();
        words.push(role.to_owned());
        for (name, value) in [
            ("system", self.system.name().to_owned()),
            ("bytes", self.point.bytes.to_string()),
            ("queue", self.point.queue().to_string()),
        ] {
            words.extend([format!("--{name}"), value]);
        }
        words
    }

    /// Cyclone DDS finds others by their addresses: a lab carries no multicast.
    fn around(&self, host: u32, words: Vec<String>) -> Node {
        let environment = (self.system == System::Cyclonedds).then(|| {
            let peers = self.addresses.iter();
            let peers: String = peers.map(|a| format!("<Peer address=\"{a}\"/>")).collect();
            // A machine may have several, and so do a lab's hosts: the emulated one, and wires between their
            // namespaces.
            let interface = self.address(host);
            let value = format!(
                "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address=\"{interface}\"/></Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery>\
                 <ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>{}</MaxAutoParticipantIndex>\
                 <Peers>{peers}</Peers></Discovery></Domain></CycloneDDS>",
                self.point.nodes + 8
            );
            ("CYCLONEDDS_URI", value)
        });
        Node {
            host,
            words,
            environment,
        }
    }
}

/// Returns the name of a node, as in [`Play::node`].
pub(super) fn name(system: System, point: &Point, node: u32) -> String {
    let system = system.name();
    match node.checked_sub(point.senders()) {
        None => format!("{system} echo {node}"),
        Some(sender) => format!("{system} sender {sender}"),
    }
}

/// Returns a sender's topic: links find its host by it.
fn sent(host: u32, number: u64, sender: u32) -> String {
    format!("/scale/s{host}/n{number}/t{sender}")
}

/// Returns the topic of an echo's answers to a sender.
fn answered(host: u32, number: u64, sender: u32, echo: u32) -> String {
    format!("/scale/r{host}/n{number}/t{sender}_{echo}")
}

#[cfg(test)]
mod tests {
    use super::super::Medium;
    use super::super::point::example;
    use super::*;

    #[test]
    fn nodes_know_their_hosts_and_whom_they_speak_with() {
        let addresses = [1, 2].map(|i| Ipv4Addr::new(10, 0, 0, i));
        let point = Point {
            hosts: 2,
            nodes: 4,
            medium: Medium::Machines,
            ..example()
        };
        let play = |system| Play {
            program: vec!["prog".into()],
            addresses: &addresses,
            system,
            point: &point,
            number: 7,
            linger: Duration::from_secs(1),
            folder: Path::new("/f"),
        };
        let zenoh = play(System::Zenoh);
        let (echo, sender) = (zenoh.node(1), zenoh.node(3));
        assert_eq!((echo.host, sender.host), (1, 0));
        assert_eq!(
            (zenoh.name(1), zenoh.name(3)),
            ("zenoh echo 1".into(), "zenoh sender 1".into())
        );
        let (echo, sender) = (echo.words.join(" "), sender.words.join(" "));
        assert!(
            echo.starts_with("prog echo --system zenoh --bytes 4250"),
            "{echo}"
        );
        assert!(
            echo.contains("--ways /scale/s0/n7/t1:/scale/r0/n7/t1_1") && echo.ends_with("tcp/10.0.0.2:17448"),
            "{echo}"
        );
        assert!(
            sender.contains("--log /f/sender1.csv") && sender.ends_with("--connect tcp/10.0.0.2:17448"),
            "{sender}"
        );
        let dds = play(System::Cyclonedds).node(0).environment.expect("some");
        assert!(
            dds.1.contains("NetworkInterface address=\"10.0.0.2\"")
                && dds.1.contains("Peer address=\"10.0.0.1\""),
            "{dds:?}"
        );
    }
}
