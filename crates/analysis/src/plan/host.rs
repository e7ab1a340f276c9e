//! Costs of a host in addition to the medium: from a calibration, or defaults.

use crate::model::{Model, Network};
use serde_json::Value;
use std::collections::BTreeMap;

/// Costs of messages on a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCosts {
    model: Option<Model>,
    /// Source of the figures.
    pub source: String,
    /// Error of the calibration's knees, if known.
    pub error: Option<f64>,
}

/// Delay from publisher to sleeping subscriber in shared memory (`docs/guide/bench-ipc.md`), and delay that both ends
/// of a link add to the air: the demo's mean delays on a quiet virtual machine with two cores, minus those of the same
/// messages in virtual time (`docs/decisions/250-performance-model.md`).
const BUS_MS: f64 = 0.04;
const LINK_MS: f64 = 0.2;
/// Processor time of a host for a message over a link: a guess.
const LINK_US: f64 = 150.0;

impl HostCosts {
    /// Defaults without a calibration.
    pub fn defaults() -> HostCosts {
        HostCosts {
            model: None,
            source: format!(
                "defaults, not measured on your machine ({BUS_MS} ms over the bus, {LINK_MS} ms over a link in \
                 addition to the air, and, as a guess, {LINK_US} us of a processor per message): calibrate with \
                 `ropewalk bench scale --json` and `ropewalk bench model`"
            ),
            error: None,
        }
    }

    /// Parses the output of `ropewalk bench model --json`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(json: &str) -> Result<HostCosts, String> {
        let whole: Value = serde_json::from_str(json).map_err(|e| format!("this is not JSON: {e}"))?;
        let models = whole
            .get("models")
            .ok_or("`models` is missing: give the output of `ropewalk bench model --json`")?;
        let models: BTreeMap<String, Model> =
            serde_json::from_value(models.clone()).map_err(|e| format!("models: {e}"))?;
        let model = models.get("ropewalk");
        let model = model.ok_or_else(|| {
            let others: Vec<&str> = models.keys().map(String::as_str).collect();
            format!("it has no model of ropewalk, only of: {}", others.join(", "))
        })?;
        let cpu = whole.pointer("/machine/cpu").and_then(Value::as_str);
        Ok(HostCosts {
            source: format!(
                "calibration of {} cells on {}",
                model.cells,
                cpu.unwrap_or("a machine")
            ),
            error: model.error,
            model: Some(model.clone()),
        })
    }

    /// Delay of a message in addition to the air, in ms; without a medium, over the bus of one host.
    pub fn delay_ms(&self, bytes: f64, over_link: bool) -> f64 {
        match &self.model {
            // Half of a round trip.
            Some(m) => m.delay.of(bytes as u64, network(over_link)) / 2.0 * 1e3,
            None if over_link => LINK_MS,
            None => BUS_MS,
        }
    }

    /// Share of a host's processors that a topic uses, at either end.
    pub fn load(&self, bytes: f64, hz: f64, over_link: bool) -> f64 {
        match &self.model {
            Some(m) => m.machine.of(bytes as u64, network(over_link)) / 2.0 * hz,
            None => LINK_US / 1e6 * hz,
        }
    }
}

fn network(over_link: bool) -> Network {
    if over_link {
        Network::Sockets
    } else {
        Network::Memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibrations_are_read_and_others_refused() {
        let json = r#"{"machine":{"cpu":"a"},"models":{"ropewalk":{"cells":12,"error":0.05,
            "delay":{"per_message_s":0.0001,"per_byte_s":0,"sockets_s":0.0003,"sockets_per_byte_s":0},
            "machine":{"per_message_s":0.00001,"per_byte_s":0,"sockets_s":0,"sockets_per_byte_s":0}}}}"#;
        let host = HostCosts::parse(json).expect("a calibration");
        assert!((host.delay_ms(10.0, false) - 0.05).abs() < 1e-9);
        assert!((host.delay_ms(10.0, true) - 0.2).abs() < 1e-9);
        assert!((host.load(10.0, 1000.0, true) - 0.005).abs() < 1e-9);
        assert!(host.source.contains("12 cells"));
        for (bad, says) in [
            ("x", "not JSON"),
            ("{}", "`models` is missing"),
            (r#"{"models":{"roscpp":{}}}"#, "only of: roscpp"),
            (r#"{"models":3}"#, "models:"),
            (
                r#"{"models":{"ropewalk":{"delay":{"per_byte_s":"a"}}}}"#,
                "models:",
            ),
        ] {
            let error = HostCosts::parse(bad).expect_err(bad);
            assert!(error.contains(says), "{error}");
        }
        assert!(HostCosts::defaults().source.starts_with("defaults, not measured"));
    }
}
