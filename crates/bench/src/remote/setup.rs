//! The networks, and the theoretical minimum times on them.

use super::options::{Network, What};

/// A network.
#[derive(Debug, PartialEq)]
pub(super) struct Setup {
    pub(super) network: Network,
    /// The lab's scenario; `None`: this host's loopback.
    pub(super) scenario: Option<&'static str>,
    /// The host of the controller; the robot's is named `robot`.
    pub(super) operator: &'static str,
    /// Mean delay from the operator to the robot, and back, in ms.
    pub(super) there_ms: f64,
    pub(super) back_ms: f64,
    /// Rate of IP packets in each direction.
    pub(super) rate_mbit_s: f64,
    pub(super) loss: f64,
    /// The radio settings of a link on it.
    pub(super) radio: &'static str,
    /// The paper's Table 2.
    pub(super) paper: Option<Table2>,
}

/// Means of the paper's Table 2.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Table2 {
    /// Measured by ping.
    pub round_trip_ms: f64,
    /// Measured by iperf3, TCP.
    pub tcp_mbit_s: f64,
    /// Measured by iperf3.
    pub jitter_ms: f64,
    /// Measured by ping.
    pub lost_percent: f64,
}

pub(super) const ROBOT: &str = "robot";

pub(super) static LOOPBACK: Setup = Setup {
    network: Network::Loopback,
    scenario: None,
    operator: "controller",
    there_ms: 0.0,
    back_ms: 0.0,
    rate_mbit_s: f64::INFINITY,
    loss: 0.0,
    radio: "rate: unlimited",
    paper: None,
};

pub(super) static DEFAULT: Setup = Setup {
    network: Network::Default,
    scenario: Some("remote-default"),
    operator: "controller",
    there_ms: 4.8,
    back_ms: 4.8,
    rate_mbit_s: 10.45,
    loss: 0.0,
    radio: "rate: 10.45Mbit/s, medium: wire",
    paper: Some(Table2 {
        round_trip_ms: 9.6,
        tcp_mbit_s: 10.45,
        jitter_ms: 3.26,
        lost_percent: 0.0,
    }),
};

pub(super) static LOSS_20: Setup = Setup {
    network: Network::Loss20,
    scenario: Some("remote-loss-20"),
    operator: "controller",
    there_ms: 10.0,
    back_ms: 10.0,
    rate_mbit_s: 10.45,
    loss: 0.2,
    radio: "rate: 10.45Mbit/s, medium: wire",
    // netem on one host's interface loses packets in only one direction.
    paper: Some(Table2 {
        round_trip_ms: 13.1,
        tcp_mbit_s: 0.78,
        jitter_ms: 25.8,
        lost_percent: 20.8,
    }),
};

pub(super) static LOSS_20_2S: Setup = Setup {
    network: Network::Loss20,
    scenario: Some("remote-loss-20-rtt-2s"),
    operator: "controller",
    there_ms: 1_000.0,
    back_ms: 1_000.0,
    rate_mbit_s: 10.0,
    loss: 0.2,
    radio: "rate: 10Mbit/s, medium: wire",
    paper: None,
};

pub(super) static DELAY_2000: Setup = Setup {
    network: Network::Delay2000,
    scenario: Some("remote-delay-2000"),
    operator: "controller",
    there_ms: 2_000.0,
    back_ms: 0.0,
    rate_mbit_s: 10.45,
    loss: 0.0,
    radio: "rate: 10.45Mbit/s, medium: wire",
    paper: Some(Table2 {
        round_trip_ms: 2_012.5,
        tcp_mbit_s: 3.35,
        jitter_ms: 6.4,
        lost_percent: 1.6,
    }),
};

pub(super) static WIFI_6: Setup = Setup {
    network: Network::Wifi6,
    scenario: Some("wifi-1hop"),
    operator: "base",
    there_ms: 0.0,
    back_ms: 0.0,
    rate_mbit_s: 6.0,
    loss: 0.0,
    radio: "rate: 6Mbit/s",
    paper: None,
};

impl Setup {
    pub(super) fn is_loopback(&self) -> bool {
        self.scenario.is_none()
    }

    pub(super) fn round_trip_ms(&self) -> f64 {
        self.there_ms + self.back_ms
    }

    /// Returns the scenario's name, for people and programs.
    pub(super) fn shown(&self) -> &'static str {
        self.scenario.unwrap_or("loopback")
    }

    /// Returns the minimum time: delays, and each byte once over the network, including lost ones. `None` if it is
    /// unknown, or for a radio, whose frames have no closed form.
    pub(super) fn closed_form_ms(&self, what: What) -> Option<f64> {
        let bytes_ms = |bytes: u64| bytes as f64 * 8.0 / (self.rate_mbit_s * 1e3) / (1.0 - self.loss);
        match what {
            _ if self.is_loopback() || self.network == Network::Wifi6 => None,
            What::File => None,
            What::Twist => Some(self.round_trip_ms()),
            What::Telemetry1Mb | What::Telemetry10Mb => {
                Some(self.round_trip_ms() + 2.0 * bytes_ms(what.bytes()))
            }
            What::Telemetry10MbOneway => Some(self.back_ms + bytes_ms(what.bytes())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_are_those_of_the_paper_networks() {
        let form = |setup: &Setup, what| setup.closed_form_ms(what).map(|ms| (ms / 100.0).round() / 10.0);
        // 3.5 and 17.3 s.
        assert_eq!(form(&DELAY_2000, What::Telemetry1Mb), Some(3.5));
        assert_eq!(form(&DELAY_2000, What::Telemetry10Mb), Some(17.3));
        assert_eq!(form(&LOSS_20_2S, What::Telemetry10MbOneway), Some(11.0));
        assert_eq!(form(&LOSS_20_2S, What::Twist), Some(2.0));
        assert_eq!(form(&LOOPBACK, What::Twist), None);
        assert_eq!(form(&WIFI_6, What::File), None);
    }

    #[test]
    fn scenarios_are_what_is_said_of_them() {
        for setup in [&DEFAULT, &LOSS_20, &LOSS_20_2S, &DELAY_2000, &WIFI_6] {
            let name = setup.scenario.expect("a lab's");
            let scenario = lab::Scenario::load(name).expect(name);
            for host in [setup.operator, ROBOT] {
                assert!(scenario.hosts().iter().any(|h| h == host), "{name}: {host}");
            }
        }
    }
}
