//! Targets, over cells of several systems.

use super::measured::{CellMetrics, KneeMetrics, Metrics, Params};
use super::point::{SCAN, TEXT};
use crate::kit::traffic::PAYLOAD;
use medium::{Phy, Standard, theory};
use serde::Serialize;
use stats::Cell;

type Measured = Cell<Params, Metrics>;

/// IP and UDP around [`PAYLOAD`].
const IP_BYTES: usize = PAYLOAD + 28;
/// A full frame on a wire: 1500 B of IP with Ethernet's header, check, preamble and gap (IEEE 802.3).
const ON_WIRE: f64 = 1538.0;

/// A target and the measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aim {
    /// Its name.
    pub what: String,
    /// The minimum, or the maximum.
    pub target: f64,
    /// Whether `target` is a minimum.
    pub at_least: bool,
    /// The measured value.
    pub value: f64,
    /// How `value` was computed.
    pub from: String,
}

impl Aim {
    /// Returns whether the target is met.
    pub fn met(&self) -> bool {
        if self.at_least {
            self.value >= self.target
        } else {
            self.value <= self.target
        }
    }
}

/// Returns the targets whose cells were measured.
pub(super) fn aims(cells: &[Measured]) -> Vec<Aim> {
    let mut aims = Vec::new();
    for (hosts, medium, competitors) in [
        (1, "bus", [("rospy", 10.0), ("roscpp", 3.0)]),
        (2, "veth", [("rospy", 5.0), ("roscpp", 1.0)]),
    ] {
        let theirs = if hosts == 1 { "loopback" } else { medium };
        let Some(ours) = knee(cells, "ropewalk", medium, hosts) else {
            continue;
        };
        for (competitor, target) in competitors {
            let Some(competitor_load) = knee(cells, competitor, theirs, hosts) else {
                continue;
            };
            aims.push(Aim {
                what: format!("scans a second, {medium}: × {competitor}"),
                target,
                at_least: true,
                value: ours / competitor_load,
                from: format!("{ours:.0} and {competitor_load:.0} messages/s"),
            });
        }
    }
    if let Some(ours) = knee(cells, "ropewalk", "100mbit", 2) {
        let most = 100e6 * PAYLOAD as f64 / ON_WIRE / 8.0;
        aims.push(share(
            "100 Mbit/s, scans each way: of the wire's UDP payload",
            0.95,
            ours,
            most,
        ));
    }
    if let (Some(ours), Ok(phy)) = (
        knee(cells, "ropewalk", "wifi-6", 2),
        Phy::of(Standard::A, 6_000_000, &[]),
    ) {
        // Both directions share the air.
        let most = theory::lone_sender(&phy, IP_BYTES, PAYLOAD) / 8.0 / 2.0;
        aims.push(share(
            "6 Mbit/s radio, scans each way: of the airtime's UDP payload",
            0.93,
            ours,
            most,
        ));
    }
    aims.extend(node_group(cells));
    aims
}

fn share(what: &str, target: f64, messages_per_s: f64, most_bytes_per_s: f64) -> Aim {
    let bytes = messages_per_s * SCAN as f64;
    Aim {
        what: what.into(),
        target,
        at_least: true,
        value: bytes / most_bytes_per_s,
        from: format!("{:.3} of {:.3} MB/s", bytes / 1e6, most_bytes_per_s / 1e6),
    }
}

/// Returns the highest load with scans, in any experiment.
fn knee(cells: &[Measured], system: &str, medium: &str, hosts: u32) -> Option<f64> {
    let fits = |p: &Params| (p.bytes, p.hosts, p.cpu_share, p.medium) == (SCAN, hosts, 1.0, medium);
    let of = cells.iter().filter(|c| c.system == system && fits(&c.params));
    let loads = of.filter_map(|c| match &c.metrics {
        Metrics::Knee(knee) => Some(knee.messages_per_s),
        Metrics::Cell(_) => None,
    });
    loads.filter(|load| *load > 0.0).max_by(f64::total_cmp)
}

/// 256 nodes at 1 Hz compared with two.
fn node_group(cells: &[Measured]) -> Option<Aim> {
    let median = |nodes: u32| {
        let mut fits = cells.iter().filter(|c| {
            let p = &c.params;
            c.system == "ropewalk"
                && (p.nodes, p.hz, p.medium, p.cpu_share) == (nodes, 1.0, "bus", 1.0)
                && p.bytes != TEXT
        });
        fits.find_map(|c| match &c.metrics {
            Metrics::Cell(cell) => cell.rtt_ms.p50,
            Metrics::Knee(_) => None,
        })
    };
    let (many, two) = (median(256)?, median(2)?);
    Some(Aim {
        what: "256 nodes at 1 Hz, bus: median × that of 2 nodes".into(),
        target: 2.0,
        at_least: false,
        value: many / two,
        from: format!("{many:.3} and {two:.3} ms"),
    })
}

/// Cells with the values measured at a point.
pub(super) fn points(cells: &[Measured]) -> impl Iterator<Item = (&Measured, &CellMetrics)> {
    cells.iter().filter_map(|c| match &c.metrics {
        Metrics::Cell(cell) => Some((c, &**cell)),
        Metrics::Knee(_) => None,
    })
}

/// Cells with the highest load of a setting.
pub(super) fn knees(cells: &[Measured]) -> impl Iterator<Item = (&Measured, &KneeMetrics)> {
    cells.iter().filter_map(|c| match &c.metrics {
        Metrics::Knee(knee) => Some((c, &**knee)),
        Metrics::Cell(_) => None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::measured::{example, pool};
    use super::super::point::{self, Point};
    use super::super::{Medium, System};
    use super::*;

    pub(in super::super) fn cell(system: System, change: impl FnOnce(&mut Point), ms: f64) -> Measured {
        let mut point = point::example();
        change(&mut point);
        let metrics = pool(&[&example(ms, 0), &example(ms, 3)]).expect("runs");
        Cell {
            system: system.name().into(),
            params: Params::new(&point, system, "cell", 2),
            metrics: Metrics::Cell(Box::new(metrics)),
        }
    }

    pub(in super::super) fn peak(system: System, medium: Medium, messages_per_s: f64) -> Measured {
        let mut cell = cell(system, |p| p.medium = medium, 1.0);
        cell.params.what = "knee";
        cell.params.hosts = if medium == Medium::Host { 1 } else { 2 };
        cell.metrics = Metrics::Knee(Box::new(KneeMetrics {
            bytes_per_s: messages_per_s * 4250.0,
            messages_per_s,
            cause: "cpu: all".into(),
            by_nodes: Vec::new(),
            at: None,
        }));
        cell
    }

    #[test]
    fn aims_need_their_cells() {
        assert_eq!(aims(&[]), []);
        let cells = [
            peak(System::Ropewalk, Medium::Host, 40_000.0),
            peak(System::Rospy, Medium::Host, 2_000.0),
            peak(System::Roscpp, Medium::Host, 20_000.0),
            peak(System::Rospy, Medium::Veth, 2_000.0),
            peak(System::Ropewalk, Medium::Mbit100, 2_300.0),
            peak(System::Ropewalk, Medium::Wifi6, 60.0),
        ];
        let all = aims(&cells);
        let met: Vec<bool> = all.iter().map(Aim::met).collect();
        assert_eq!(met, [true, false, false, false], "{all:?}");
        assert_eq!((all[0].value, all[1].value), (20.0, 2.0));
        // 2300 × 4250 B are 9.775 of 11.963 MB/s.
        assert!((all[2].value - 0.8171).abs() < 1e-3, "{all:?}");
    }

    #[test]
    fn many_nodes_are_held_against_two() {
        let at = |nodes, ms| cell(System::Ropewalk, |p| (p.nodes, p.hz) = (nodes, 1.0), ms);
        let all = aims(&[at(2, 0.2), at(256, 0.3)]);
        assert!(
            all.len() == 1 && all[0].met() && (all[0].value - 1.5).abs() < 1e-9,
            "{all:?}"
        );
        assert!(!aims(&[at(2, 0.2), at(256, 0.5)])[0].met());
    }
}
