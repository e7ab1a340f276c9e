//! Pound's comparison (sections VI-A to VI-D): laser and image from the first host to the last, simultaneously.

use super::case::{Case, LabSetup, leg};
use super::network::{Setting, Topic};
use super::tools::Means;
use super::{CarrierKind, Ends, Experiment, Options, Row, systems};
use crate::flows;
use crate::kit::cell::Target;
use crate::kit::roscpp::Source;
use serde_json::json;

const RATE: &str = "6Mbit/s";
/// One hop with a loss of one frame in ten and a short device queue.
const LOSSY: &str = "description: One hop of 802.11a at 6 Mbit/s; 10 % of the frames are lost, 50 fit the device queue.\n\
                     hosts: [robot, base]\nmedia:\n  - name: wifi\n    wifi: {standard: 802.11a, rate: 6Mbit/s}\n    queue: 50\n    \
                     set: {loss: 10%}\n";

/// Returns all selected rows.
pub(super) fn rows(options: &Options) -> Vec<Row> {
    let lossy = LabSetup {
        scenario: "wifi-1hop-loss",
        yaml: Some(LOSSY.into()),
        hops: 1,
    };
    let both = &[RATE, "auto"][..];
    let places = [
        (LabSetup::shipped("wifi-1hop", 1), both, false),
        (lossy, &both[..1], true),
        (LabSetup::shipped("wifi-2hops", 2), both, false),
    ];
    let mut rows = Vec::new();
    for (place, rates, loss) in places.iter().filter(|p| options.wants_hops(p.0.hops)) {
        let (hops, quick) = (place.hops, options.quick);
        for system in systems().filter(|s| options.wants(*s)) {
            let setting = |carrier, rate| Setting {
                carrier,
                rate,
                hops,
                neighbours: &[],
                yields: true,
                topics: topics(),
                called: &[],
            };
            for means in system.all_means(options, Experiment::Pound, rates, setting) {
                let targets = targets(hops, *loss, &means);
                let case = Case {
                    experiment: Experiment::Pound,
                    system,
                    place: place.clone(),
                    means,
                    varies: if *loss {
                        vec![("frame_loss", "10 % frame loss".into(), json!(0.1))]
                    } else {
                        vec![]
                    },
                    legs: Box::new(move |run| {
                        let flows = flows::pound(hops, quick, run);
                        flows.map(|flow| leg(flow, "robot", "base")).into()
                    }),
                    judge: Box::new(move |seen| seen.cells(&targets)),
                };
                rows.push(case.row());
            }
        }
    }
    rows
}

/// The laser has priority over the image. A message of either that is still unsent when the next one arrives is
/// replaced.
pub(super) fn topics() -> Vec<Topic> {
    let topic = |priority, depth| Topic {
        priority,
        depth,
        more: "",
    };
    vec![topic(100, 2), topic(10, 2)]
}

/// Targets of laser and image: at most half of the values of the paper's Pound.
fn targets(hops: u32, loss: bool, means: &Means) -> [Vec<Target>; 2] {
    let Means::Link(setting, source, ends) = means else {
        return [vec![], vec![]];
    };
    // Allowed additional delay of bridges at both ends, or of nodes in Python.
    let more = match ends {
        Ends::Bus => 0.0,
        Ends::Ros2 => 1.0,
        Ends::Ros | Ends::Dds => 2.0,
    };
    let delivered = Target::within("delivery", 0.998, 1.0);
    if loss {
        let laser = Target::within("delay_ms.mean", 0.0, 4.6 + more);
        return match setting.carrier {
            CarrierKind::Quic => [vec![laser, delivered.clone()], vec![delivered]],
            _ => [vec![], vec![]],
        };
    }
    let [jitter, laser, image] = match (hops, setting.rate, setting.carrier, source) {
        (1, "auto", CarrierKind::Quic, Source::Periodic) => [2.3, 3.7, 123.0],
        (1, RATE, CarrierKind::Quic, Source::Periodic) => [0.6, 2.1, 117.0],
        (1, RATE, CarrierKind::Quic, Source::Roscpp) => [1.4, 3.1, 117.0],
        (2, RATE, CarrierKind::Quic, Source::Periodic) => [1.0, 4.0, 290.0],
        (2, RATE, CarrierKind::Quic, Source::Roscpp) => [2.6, 6.2, 290.0],
        _ => return [vec![], vec![]],
    };
    [
        vec![
            Target::within("period_ms.std", 0.0, jitter + more),
            Target::within("delay_ms.mean", 0.0, laser + more),
            delivered.clone(),
        ],
        vec![Target::within("delay_ms.mean", 0.0, image + more), delivered],
    ]
}
