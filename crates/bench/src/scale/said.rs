//! Output of the nodes (`peers/scale/README.md`), checked before use.

use crate::kit::line::shorten;
use crate::kit::processes::Says;
use serde::Deserialize;
use stats::Time;
use std::collections::BTreeMap;

/// Maximum number of reasons for losses that a node may name.
const REASONS: usize = 32;

/// One line.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// Connected: a sender has an answer of each of its echoes.
    Ready,
    /// All messages are back, or the log has closed.
    Closed,
    Result(Result),
}

/// Result of a node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Result {
    #[serde(default)]
    pub(super) sent: u64,
    #[serde(default)]
    pub(super) returned: u64,
    #[serde(default)]
    pub(super) echoed: u64,
    /// Messages that could not be sent: no memory, or a full queue.
    #[serde(default)]
    pub(super) refused: u64,
    /// Messages that it lost, by reason, as far as it can know.
    #[serde(default)]
    pub(super) drops: BTreeMap<String, u64>,
}

/// Output of one node.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) ready: bool,
    pub(super) closed: bool,
    pub(super) result: Option<Result>,
}

impl Says for Said {
    /// Messages of each sender, times the answers to each.
    type Rule = u64;
    type Line = Line;

    fn longest(_: u64) -> u64 {
        4096
    }

    fn parse(text: &str, most: u64) -> std::result::Result<Line, String> {
        let result: Result = match text.trim() {
            "ready" => return Ok(Line::Ready),
            "closed" => return Ok(Line::Closed),
            text => serde_json::from_str(text).map_err(|_| format!("it printed {:?}", shorten(text)))?,
        };
        if result.sent > most || result.returned > most || result.drops.len() > REASONS {
            return Err(format!(
                "it sent {} and has {} back, but at most {most} are possible",
                result.sent, result.returned
            ));
        }
        Ok(Line::Result(result))
    }

    fn hear(&mut self, _: Time, line: Line) {
        match line {
            Line::Ready => self.ready = true,
            Line::Closed => self.closed = true,
            Line::Result(result) => self.result = Some(result),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_or_refused() {
        let mut said = Said::default();
        for text in [
            "ready\n",
            "closed\n",
            r#"{"sent": 5, "refused": 0, "returned": 4, "drops": {"queue_full": 1}}"#,
        ] {
            said.hear(Time::ZERO, Said::parse(text, 5).expect(text));
        }
        let result = said.result.expect("a result");
        assert!(said.ready && said.closed && result.returned == 4 && result.drops["queue_full"] == 1);
        assert!(
            matches!(Said::parse(r#"{"echoed": 9, "drops": {}}"#, 5), Ok(Line::Result(r)) if r.echoed == 9)
        );
        for bad in ["", "done", r#"{"sent": 6}"#, r#"{"sent": -1}"#, r#"{"other": 1}"#] {
            assert!(Said::parse(bad, 5).is_err(), "{bad}");
        }
    }
}
