//! Output of the two ends of the flows (`peers/flow/README.md`), checked before use.

use crate::kit::line::shorten;
use crate::kit::processes::Says;
use serde::{Deserialize, Serialize};
use stats::Time;

/// What is needed to check a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) flows: usize,
    /// Maximum number of messages of one flow.
    pub(crate) most: u64,
}

/// Number of sent messages of a flow.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Published {
    pub(crate) topic: String,
    pub(crate) sent: u64,
}

/// Received messages of a flow, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Received {
    pub(crate) topic: String,
    pub(crate) sequence: Vec<u64>,
    pub(crate) stamp_ns: Vec<u64>,
    pub(crate) arrival_ns: Vec<u64>,
}

/// One line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Ready,
    Published(Vec<Published>),
    Received(Vec<Received>),
    /// Measured values of another kind of process.
    Values(Vec<f64>),
}

/// Output of one end.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) ready: bool,
    pub(crate) published: Option<Vec<Published>>,
    pub(crate) received: Option<Vec<Received>>,
    pub(crate) values: Option<Vec<f64>>,
}

impl Says for Said {
    type Rule = Rule;
    type Line = Line;

    fn longest(rule: Rule) -> u64 {
        rule.flows as u64 * (rule.most * 3 * 24 + 4096)
    }

    fn parse(text: &str, rule: Rule) -> Result<Line, String> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Published { published: Vec<Published> },
            Received { received: Vec<Received> },
            Values { values: Vec<f64> },
        }
        let line = match text.trim() {
            "ready" => return Ok(Line::Ready),
            text => serde_json::from_str(text).map_err(|_| format!("it printed {:?}", shorten(text)))?,
        };
        match line {
            Any::Published { published } => Ok(Line::Published(published)),
            Any::Values { values } => Ok(Line::Values(values)),
            Any::Received { received } => {
                for flow in &received {
                    let n = flow.sequence.len();
                    if flow.stamp_ns.len() != n || flow.arrival_ns.len() != n || n as u64 > rule.most {
                        return Err(format!(
                            "its log of {:?} has different counts of times and messages",
                            shorten(&flow.topic)
                        ));
                    }
                }
                Ok(Line::Received(received))
            }
        }
    }

    fn hear(&mut self, _: Time, line: Line) {
        match line {
            Line::Ready => self.ready = true,
            Line::Published(p) => self.published = Some(p),
            Line::Received(r) => self.received = Some(r),
            Line::Values(v) => self.values = Some(v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_lines_are_parsed_and_others_refused() {
        let rule = Rule { flows: 1, most: 2 };
        let mut said = Said::default();
        for text in [
            "ready\n",
            r#"{"published": [{"topic": "/laser", "sent": 2}]}"#,
            r#"{"received": [{"topic": "/laser", "sequence": [0, 1], "stamp_ns": [1, 2], "arrival_ns": [3, 4]}]}"#,
        ] {
            let line = Said::parse(text, rule).expect(text);
            said.hear(Time::default(), line);
        }
        assert!(said.ready && said.published.is_some_and(|p| p[0].sent == 2));
        assert_eq!(said.received.map(|r| r[0].arrival_ns.clone()), Some(vec![3, 4]));
        for bad in [
            "",
            "done",
            r#"{"received": [{"topic": "/x", "sequence": [0, 1], "stamp_ns": [1], "arrival_ns": [3, 4]}]}"#,
            r#"{"received": [{"topic": "/x", "sequence": [0, 1, 2], "stamp_ns": [1, 2, 3], "arrival_ns": [3, 4, 5]}]}"#,
        ] {
            assert!(Said::parse(bad, rule).is_err(), "{bad}");
        }
    }
}
