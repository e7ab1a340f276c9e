//! Link daemons between the hosts of a run.

use super::Medium;
use super::measured::Held;
use super::point::{Point, Topology};
use super::stage::Stage;
use super::tools::Tools;
use crate::kit::error::RunError;
use crate::kit::links::{Daemons, link_words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::net::SocketAddrV4;

const PORT: u16 = 7400;
/// Queue limit of a link: as much as the nodes' queues hold.
const QUEUE_BYTES: &str = "64MiB";

/// Starts a daemon on each host, as a user would.
pub(super) fn up(tools: &Tools<'_>, stage: &Stage<'_>, point: &Point) -> Result<Daemons, RunError> {
    let mut daemons = Daemons::default();
    let addresses = stage.addresses()?;
    let addresses: Vec<_> = addresses
        .into_iter()
        .map(|a| SocketAddrV4::new(a, PORT))
        .collect();
    for host in 0..point.hosts {
        let name = stage.host(host);
        let keys = tools.team.keys(&tools.ground, name)?;
        let text = configuration(point, host, &addresses, &keys.to_string_lossy());
        let file = tools.ground.folder.path().join(format!("{name}-link.yaml"));
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        let (program, file) = (tools.ground.executable.to_string_lossy(), file.to_string_lossy());
        let words = link_words(&program, &file).map(str::to_owned);
        let mut command = stage.program(host, &words)?;
        stage.sandbox.prepare(&mut command);
        daemons.start(name, &mut command)?;
    }
    Ok(daemons)
}

/// Returns the name of a host in its team.
pub(super) fn host_name(host: u32) -> String {
    format!("h{host}")
}

/// Returns a host's configuration (`docs/guide/link.md`), with an address for each host of the point.
pub(super) fn configuration(point: &Point, host: u32, addresses: &[SocketAddrV4], keys: &str) -> String {
    let (name, address) = (host_name(host), addresses[host as usize]);
    let rate = match point.medium {
        Medium::Mbit100 => "100Mbit/s, medium: wire",
        Medium::Wifi6 => "6Mbit/s",
        Medium::Wifi24 => "24Mbit/s",
        Medium::Wifi54 => "54Mbit/s",
        Medium::Machines => "auto",
        Medium::Host | Medium::Veth | Medium::MachinesWired => "unlimited, carrier: tls",
    };
    let mut text = format!(
        "host: {name}\nkeys: '{keys}'\nradio: {{bind: '{address}', rate: {rate}, queue_bytes: {QUEUE_BYTES}}}\npeers:\n"
    );
    let half = point.hosts / 2;
    let sends = host < half;
    let mut topics = Vec::new();
    for peer in 0..point.hosts {
        let with = match point.topology {
            Topology::Pairs => peer == (host + half) % point.hosts,
            Topology::Full => (peer < half) != sends,
        };
        if !with {
            continue;
        }
        let sender = if sends { host } else { peer };
        let (sent, answered) = (format!("/scale/s{sender}/*"), format!("/scale/r{sender}/*"));
        let (publish, subscribe) = if sends {
            (&answered, &sent)
        } else {
            (&sent, &answered)
        };
        let (peer, address) = (host_name(peer), addresses[peer as usize]);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  - {{name: {peer}, address: '{address}', allow: {{publish: ['{publish}'], subscribe: ['{subscribe}']}}}}"
        );
        for (topic, direction) in [
            (&sent, ["in", "out"][usize::from(sends)]),
            (&answered, ["out", "in"][usize::from(sends)]),
        ] {
            topics.push(format!(
                "  - {{name: '{topic}', direction: {direction}, depth: {}}}\n",
                point.queue()
            ));
        }
    }
    topics.sort();
    topics.dedup();
    text.push_str("topics:\n");
    topics.iter().for_each(|t| text.push_str(t));
    text
}

/// Returns all losses that the daemons counted, by reason.
pub(super) fn drops(last: &BTreeMap<String, Value>) -> BTreeMap<String, u64> {
    fn walk(value: &Value, inside: bool, sums: &mut BTreeMap<String, u64>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    match value.as_u64() {
                        Some(n) if inside && n > 0 => *sums.entry(format!("link: {name}")).or_insert(0) += n,
                        _ => walk(value, name == "drops" || name == "bus_drops", sums),
                    }
                }
            }
            Value::Array(all) => all.iter().for_each(|v| walk(v, false, sums)),
            _ => {}
        }
    }
    let mut sums = BTreeMap::new();
    // The radio's total includes the topics'.
    for status in last.values() {
        for part in ["sent", "received"] {
            walk(&status[part], false, &mut sums);
        }
    }
    sums
}

/// Returns the link with the most bytes of waiting messages at a time, given the size of each message.
pub(super) fn held(last: &BTreeMap<String, Value>, each: u64) -> Option<Held> {
    let all = last.iter().filter_map(|(host, status)| {
        let bytes = status["radio"]["queued_bytes_max"].as_u64()?;
        let (host, messages) = (host.clone(), bytes / each.max(1));
        Some(Held {
            host,
            bytes,
            messages,
        })
    });
    all.max_by_key(|h| h.bytes)
}

#[cfg(test)]
mod tests {
    use super::super::point::example;
    use super::*;
    use serde_json::json;

    #[test]
    fn senders_and_echoes_list_the_topics_of_those_they_speak_with() {
        let hosts: Vec<_> = (0..4)
            .map(|i| SocketAddrV4::new([10, 0, 0, i].into(), PORT))
            .collect();
        let point = Point {
            hosts: 4,
            medium: Medium::Wifi6,
            ..example()
        };
        assert_eq!(
            configuration(&point, 1, &hosts, "/k"),
            "host: h1\nkeys: '/k'\nradio: {bind: '10.0.0.1:7400', rate: 6Mbit/s, queue_bytes: 64MiB}\npeers:\n  \
             - {name: h3, address: '10.0.0.3:7400', allow: {publish: ['/scale/r1/*'], subscribe: ['/scale/s1/*']}}\n\
             topics:\n  - {name: '/scale/r1/*', direction: in, depth: 100}\n  \
             - {name: '/scale/s1/*', direction: out, depth: 100}\n"
        );
        let full = Point {
            topology: Topology::Full,
            ..point
        };
        let text = configuration(&full, 3, &hosts, "/k");
        for line in [
            "name: h0,",
            "name: h1,",
            "'/scale/s0/*', direction: in",
            "'/scale/r1/*', direction: out",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("name: h2"), "{text}");
    }

    #[test]
    fn losses_are_summed_over_daemons_and_topics() {
        let status = json!({
            "sent": [{"bus_drops": {"queue_full": 2}, "drops": {"overflow": 1}, "sent": 5}],
            "received": [{"drops": {"incomplete": 3}, "bus_drops": {}}],
            "radio": {"drops": {"overflow": 1}, "queued_bytes_max": 9_000},
        });
        let other = json!({"radio": {"queued_bytes_max": 500}});
        let both = BTreeMap::from([("a".to_owned(), status.clone()), ("c".to_owned(), other)]);
        let most = held(&both, 4_250).expect("two links");
        assert_eq!((most.host.as_str(), most.bytes, most.messages), ("a", 9_000, 2));
        let last = BTreeMap::from([("a".to_owned(), status.clone()), ("b".to_owned(), status)]);
        let sums = drops(&last);
        assert_eq!(sums["link: queue_full"], 4);
        assert_eq!(
            (sums["link: overflow"], sums["link: incomplete"], sums.len()),
            (2, 6, 3)
        );
    }
}
