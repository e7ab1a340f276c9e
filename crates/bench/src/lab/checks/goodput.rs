//! Goodput of UDP and TCP, compared with closed forms.

use super::{Check, IP_BYTES, RETRIES, SHIPPED, ScenarioText};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::site::{Ground, Site};
use crate::kit::traffic::{Flow, Iperf, PAYLOAD};
use medium::{Phy, Standard, theory};
use serde_json::json;

const JUN: &str = "Jun, Peddabachagari, Sichitiu (NCA 2003)";
const CHAIN: &str = "Bianchi (JSAC 2000) for two saturated senders, halved since each packet takes two turns";
const TCP_BOUND: &str = "lone exchanges of segments and of every second one's acknowledgement (RFC 5681); collisions cost \
                         some of it, and acknowledging more rarely gains";
const ETHERNET: &str = "IEEE 802.3: 1538 B on the wire for each packet of 1500 B";

/// The rate of a medium, and its theoretical limits.
struct Speed {
    place: ScenarioText,
    ends: [&'static str; 2],
    standard: &'static str,
    rate_mbit_s: f64,
    /// Limit for UDP payload, in Mbit/s, and its source.
    udp: (f64, &'static str),
    /// Limit for TCP payload.
    tcp: Option<(f64, &'static str)>,
}

fn radio(standard: &str, rate: &str) -> Option<String> {
    Some(format!(
        "hosts: [robot, base]\nmedia:\n  - name: wifi\n    wifi: {{standard: {standard}, rate: {rate}}}\n"
    ))
}

fn speeds() -> Vec<Speed> {
    let phy = |standard, bits| Phy::of(standard, bits, &[]).expect("a rate of the standard");
    let mbit = |bits: f64| bits / 1e6;
    let lone = |phy: &Phy| (mbit(theory::lone_sender(phy, IP_BYTES, PAYLOAD)), JUN);
    let chain = |phy: &Phy| {
        (
            mbit(theory::two_hop_chain(phy, IP_BYTES, PAYLOAD, RETRIES)),
            CHAIN,
        )
    };
    let tcp = |phy: &Phy| Some((mbit(theory::tcp_bound(phy)), TCP_BOUND));
    let a6 = phy(Standard::A, 6_000_000);
    let g24 = phy(Standard::G, 24_000_000);
    let a54 = phy(Standard::A, 54_000_000);
    let b11 = phy(Standard::B, 11_000_000);
    let wire = |payload: f64| (100.0 * payload / 1538.0, ETHERNET);
    let speed = |place, ends, standard, rate_mbit_s, udp, tcp| Speed {
        place,
        ends,
        standard,
        rate_mbit_s,
        udp,
        tcp,
    };
    vec![
        speed(
            ("wifi-1hop", SHIPPED),
            ["robot", "base"],
            "802.11a",
            6.0,
            lone(&a6),
            tcp(&a6),
        ),
        speed(
            ("wifi-2hops", SHIPPED),
            ["robot", "base"],
            "802.11a",
            6.0,
            chain(&a6),
            None,
        ),
        speed(
            ("wifi-ap", SHIPPED),
            ["robot1", "base"],
            "802.11g",
            24.0,
            chain(&g24),
            None,
        ),
        speed(
            ("wifi-1hop-54", radio("802.11a", "54Mbit/s")),
            ["robot", "base"],
            "802.11a",
            54.0,
            lone(&a54),
            tcp(&a54),
        ),
        speed(
            ("802.11b-11", radio("802.11b", "11Mbit/s")),
            ["robot", "base"],
            "802.11b",
            11.0,
            lone(&b11),
            tcp(&b11),
        ),
        speed(
            ("ethernet", SHIPPED),
            ["robot", "base"],
            "802.3",
            100.0,
            wire(PAYLOAD as f64),
            Some(wire(1448.0)),
        ),
    ]
}

pub(super) fn rows(seconds: u32) -> Vec<Check> {
    let rows = speeds()
        .into_iter()
        .flat_map(|speed| [true, false].map(|udp| one_goodput(&speed, udp, seconds)));
    rows.collect()
}

fn one_goodput(speed: &Speed, udp: bool, seconds: u32) -> Check {
    let closed = if udp { Some(speed.udp) } else { speed.tcp };
    let scenario = speed.place.0;
    // The expected values for Pound's radio; for the others, within 3 % of the closed form.
    let mut targets = match (scenario, udp) {
        ("wifi-1hop", true) => vec![Target::about("goodput_mbit_s", 5.2, 0.15)],
        ("wifi-2hops", true) => vec![Target::about("goodput_mbit_s", 2.5, 0.15)],
        ("wifi-1hop", false) => vec![Target::within("goodput_mbit_s", 4.4, 4.7)],
        _ => vec![],
    };
    if udp {
        targets.push(Target::about("ratio", 1.0, 0.03));
    }
    // The queue of a forwarding relay varies over seconds, and so does goodput: a shorter run misses waiting packets.
    let seconds = if speed.udp.1 == CHAIN {
        seconds * 3
    } else {
        seconds
    };
    let mut params = Params::from([
        ("standard".into(), json!(speed.standard)),
        ("rate_mbit_s".into(), json!(speed.rate_mbit_s)),
        ("seconds".into(), json!(seconds)),
    ]);
    let flow = if udp {
        params.insert("payload_bytes".into(), json!(PAYLOAD));
        // More than the medium carries, but not so much more that the sender's work disturbs.
        Flow::Udp {
            offered_mbit_s: speed.rate_mbit_s.min(speed.udp.0 * 1.3),
        }
    } else {
        params.insert("congestion_control".into(), json!("cubic"));
        Flow::Tcp
    };
    let (place, ends) = (speed.place.clone(), speed.ends);
    // TCP has to find its rate first.
    let seconds = if udp { seconds } else { seconds + 2 };
    let run = move |ground: &Ground<'_>| {
        let site = Site::up(ground, place.0, place.1.as_deref())?;
        let goodput = Iperf::start(&site, ends, flow, seconds, 5201)?.goodput_mbit_s()?;
        let mut values = Values::from([("goodput_mbit_s", goodput)]);
        if let Some((closed, _)) = closed {
            values.extend([("closed_form_mbit_s", closed), ("ratio", goodput / closed)]);
        }
        Ok((values, Timing::of(&site.status()?)))
    };
    Check {
        system: "iperf3",
        what: if udp { "goodput UDP" } else { "goodput TCP" },
        scenario,
        params,
        targets,
        source: closed.map_or("", |c| c.1),
        needs_time: true,
        run: Box::new(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Scenario;

    #[test]
    fn every_row_has_a_scenario_that_is_good() {
        let folder = tempfile::tempdir().expect("a folder");
        for speed in speeds() {
            let (name, yaml) = speed.place;
            let scenario = match yaml {
                Some(yaml) => {
                    let path = folder.path().join(format!("{name}.yaml"));
                    std::fs::write(&path, yaml).expect("is written");
                    Scenario::load(path.to_str().expect("UTF-8"))
                }
                None => Scenario::load(name),
            };
            let scenario = scenario.expect(name);
            for end in speed.ends {
                assert!(scenario.hosts().iter().any(|h| h == end), "{name}: {end}");
            }
            assert!(speed.udp.0 > 1.0 && speed.udp.0 < speed.rate_mbit_s, "{name}");
            assert!(speed.tcp.is_none_or(|tcp| tcp.0 < speed.udp.0), "{name}");
        }
    }

    #[test]
    fn the_asked_figures_lie_within_the_closed_forms() {
        let udp = |name: &str| speeds().iter().find(|s| s.place.0 == name).expect(name).udp.0;
        assert!((udp("wifi-1hop") - 5.2).abs() < 0.15);
        assert!((udp("wifi-2hops") - 2.5).abs() < 0.15);
    }
}
