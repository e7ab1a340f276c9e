//! Results of others, for comparison; never in cells.

use super::options::{Network, What};
use serde::Serialize;

/// A number of the paper's or of upstream's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Given {
    /// Its source.
    pub by: &'static str,
    /// The system.
    pub system: &'static str,
    /// As in cells' `params`.
    pub network: &'static str,
    /// As in cells' `params`.
    pub what: What,
    /// The mean; `None`: it failed, or only `says` is known.
    pub mean_ms: Option<f64>,
    /// The median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    /// Further information.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub says: &'static str,
}

const PAPER: &str = "the paper";
const UPSTREAM: &str = "upstream v6.0.0";

/// All known numbers: the paper's text on its Figures 1 to 3 (section 3.3), and measurements of upstream's library on
/// loopback.
pub(super) fn given() -> Vec<Given> {
    use What::{File, Telemetry1Mb as One, Telemetry10Mb as Ten, Twist};
    let paper = |system, network: Network, what, mean_s: Option<f64>, says| Given {
        by: PAPER,
        system,
        network: network.name(),
        what,
        mean_ms: mean_s.map(|s: f64| s * 1e3),
        p50_ms: None,
        says,
    };
    let upstream = |system, what, p50_ms, says| Given {
        by: UPSTREAM,
        system,
        network: Network::Loopback.name(),
        what,
        mean_ms: None,
        p50_ms,
        says,
    };
    let (default, delay) = (Network::Default, Network::Delay2000);
    vec![
        upstream("ZMQ, polled every 10 ms", Twist, Some(9.9), "as its examples do"),
        upstream("ZMQ, polled without pause", Twist, Some(1.09), ""),
        upstream("ZMQ's bare sockets", Twist, Some(0.072), ""),
        upstream(
            "ZMQ",
            File,
            None,
            "a file of 200 MB delays a twist by 1060 ms, packed by 5400",
        ),
        paper("ZMQ", default, Twist, None, "4 to 8 ms; UDT twice that"),
        paper("ROS", delay, Twist, None, "three times as long as ZMQ and UDT"),
        paper("ROS", default, One, Some(1.7), ""),
        paper("ZMQ", default, One, Some(1.16), ""),
        paper("UDT", default, One, Some(1.45), ""),
        paper("ROS", default, Ten, Some(18.16), ""),
        paper("ZMQ", default, Ten, Some(11.4), ""),
        paper("UDT", default, Ten, Some(3.8), "needs 42 Mbit/s"),
        paper("ROS", delay, One, Some(17.6), ""),
        paper("UDT", delay, One, Some(4.8), "fails at 2 s when tried again"),
        paper("ZMQ", delay, One, None, "fails"),
        paper("ROS", delay, Ten, Some(61.6), ""),
        paper("UDT", delay, Ten, Some(44.7), "fails at 2 s when tried again"),
        paper("ZMQ", delay, Ten, None, "fails"),
    ]
}

/// Remarks on these numbers.
pub(super) const REMARKS: [&str; 2] = [
    "the paper's Table 2 cannot explain its Fig. 2: 10 MB each way in 3.8 s (UDT) are 42 Mbit/s, where 10.45 were measured; ZMQ's \
     11.4 s are 14",
    "the paper's networks are emulated: 10.45 Mbit/s; 20 % lost each way (the paper's netem lost in one direction); 2000 ms added in one \
     direction. ZeroMQ is without CURVE, as in the paper",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_says_more_than_its_network_carries() {
        let udt = given().into_iter().find(|g| {
            (g.system, g.network, g.what) == ("UDT", "default", What::Telemetry10Mb) && g.by == PAPER
        });
        let seconds = udt.and_then(|g| g.mean_ms).expect("is there") / 1e3;
        assert_eq!((2.0 * 10.0 * 8.0 / seconds).round(), 42.0);
    }
}
