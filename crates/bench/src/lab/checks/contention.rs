//! Two senders at once, and the lab under other load of this machine.

use super::{Check, IP_BYTES, RETRIES};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::site::Site;
use crate::kit::traffic::{Flow, Iperf, PAYLOAD, Probing, probe};
use crate::lab::busy;
use medium::{Phy, theory};
use serde_json::json;
use std::time::Duration;

/// Two hosts that always have packets to send to a third.
pub(super) fn fairness(seconds: u32) -> Check {
    let phy = Phy::new(6_000_000).expect("a rate of the standard");
    let closed = theory::saturated(&phy, 2, IP_BYTES, PAYLOAD, RETRIES).total / 1e6;
    Check {
        system: "ropewalk",
        what: "fairness of two senders",
        scenario: "two-senders",
        params: Params::from([
            ("standard".into(), json!("802.11a")),
            ("rate_mbit_s".into(), json!(6.0)),
            ("payload_bytes".into(), json!(PAYLOAD)),
            ("seconds".into(), json!(seconds)),
        ]),
        targets: vec![
            Target::within("jain_index", 0.98, 1.0),
            Target::about("ratio", 1.0, 0.03),
        ],
        source: "Bianchi (JSAC 2000)",
        needs_time: true,
        run: Box::new(move |ground| {
            let yaml = "hosts: [one, two, base]\nmedia:\n  - name: wifi\n    wifi: {standard: 802.11a, rate: 6Mbit/s, topology: mesh}\n";
            let site = Site::up(ground, "two-senders", Some(yaml))?;
            // Each alone could nearly fill the air.
            let way = |from| Probing {
                from,
                to: "base",
                count: seconds * 400,
                every: Duration::from_micros(2_500),
                size: PAYLOAD,
                linger: Duration::from_secs(2),
            };
            let ways = probe(&site, &[way("one"), way("two")])?;
            // Only while both have packets to send: queues fill first, and empty last.
            const EDGE_NS: u64 = 1_500_000_000;
            let first = ways.iter().filter_map(|w| w.arrival_ns.first()).max();
            let last = ways.iter().filter_map(|w| w.arrival_ns.last()).min();
            let from = first.map_or(0, |t| t + EDGE_NS);
            let until = last.map_or(0, |t| t.saturating_sub(EDGE_NS));
            if until <= from {
                return Err(RunError::Failed(
                    "the two did not send at once for long enough".into(),
                ));
            }
            let mbit_s =
                |i: usize| (ways[i].between(from, until) * PAYLOAD * 8) as f64 * 1e3 / (until - from) as f64;
            let (one, two) = (mbit_s(0), mbit_s(1));
            let sum = one + two;
            let values = [
                ("first_mbit_s", one),
                ("second_mbit_s", two),
                ("goodput_mbit_s", sum),
                ("closed_form_mbit_s", closed),
                ("ratio", sum / closed),
                ("jain_index", sum * sum / (2.0 * (one * one + two * two))),
            ];
            Ok((values.into(), Timing::of(&site.status()?)))
        }),
    }
}

/// The lab's own lateness at 6 Mbit/s while all processors are busy.
pub(super) fn lateness(seconds: u32) -> [Check; 2] {
    [true, false].map(|fifo| {
        let measure = move |site: &Site<'_>| {
            let flow = Flow::Udp { offered_mbit_s: 6.0 };
            let goodput = Iperf::start(site, ["robot", "base"], flow, seconds, 5201)?.goodput_mbit_s()?;
            let status = site.status()?;
            let t = &status.timing;
            let reported = t
                .remark
                .as_deref()
                .is_some_and(|r| r.contains("not to be trusted"));
            let values = Values::from([
                ("late_p50_us", t.lateness_p50_us),
                ("late_p99_us", t.lateness_p99_us),
                ("late_max_us", t.lateness_max_us),
                ("stalls", t.stalls as f64),
                ("goodput_mbit_s", goodput),
                ("reported_unreliable", f64::from(u8::from(reported))),
            ]);
            Ok((values, Timing::of(&status)))
        };
        let targets = if fifo {
            vec![
                Target::within("late_p99_us", 0.0, 300.0),
                Target::exactly("reported_unreliable", 0.0),
            ]
        } else {
            vec![Target::exactly("reported_unreliable", 1.0)]
        };
        Check {
            system: "ropewalk",
            what: if fifo {
                "own lateness, busy"
            } else {
                "the same without FIFO"
            },
            scenario: "wifi-1hop-busy",
            params: Params::from([
                ("fifo".into(), json!(fifo)),
                ("busy_loops".into(), json!(busy::count())),
                ("seconds".into(), json!(seconds)),
            ]),
            targets,
            source: "",
            needs_time: false,
            run: Box::new(move |ground| {
                let site = if fifo {
                    Site::up(ground, "wifi-1hop", None)?
                } else {
                    Site::up_without_fifo(ground, "wifi-1hop")?
                };
                let _busy = busy::Busy::start()?;
                measure(&site)
            }),
        }
    })
}
