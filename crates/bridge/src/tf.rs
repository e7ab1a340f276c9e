//! Reduces transforms to the permitted frames, each at its rate.

use crate::Ticker;
use crate::read::{frequencies, maybe_frequency};
use schema::Value;
use serde::Deserialize;
use stats::Time;
use std::collections::BTreeMap;

/// The message types of transforms.
pub const TRANSFORMS: [&str; 2] = ["tf2_msgs/TFMessage", "tf/tfMessage"];
/// Most frames whose rate is tracked.
const MAX_FRAMES: usize = 4096;

/// Which transforms cross.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TfRule {
    /// The frames (`child_frame_id`) that cross; `*` matches anything. Default: all.
    pub frames: Option<Vec<String>>,
    /// Most transforms per second of each frame. Default: all.
    #[serde(deserialize_with = "maybe_frequency")]
    pub rate: Option<f64>,
    /// The same for frames that match a pattern. The longest matching pattern counts.
    #[serde(deserialize_with = "frequencies")]
    pub rates: BTreeMap<String, f64>,
}

/// Filters transforms one by one.
#[derive(Debug)]
pub struct Frames {
    rule: TfRule,
    tickers: BTreeMap<String, Ticker>,
}

/// The filter's decision about a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It crosses.
    Passes,
    /// Its frame does not cross.
    OtherFrame,
    /// It exceeds its frame's rate.
    TooSoon,
}

impl Frames {
    /// Creates the filter of a rule.
    pub fn new(rule: TfRule) -> Self {
        Frames {
            rule,
            tickers: BTreeMap::new(),
        }
    }

    /// Decides about a transform (`geometry_msgs/TransformStamped`).
    pub fn look(&mut self, now: Time, transform: &Value) -> Passage {
        let frame = Self::frame(transform);
        let allowed = self.rule.frames.as_ref();
        if allowed.is_some_and(|patterns| !patterns.iter().any(|p| matches(p, &frame))) {
            return Passage::OtherFrame;
        }
        let own = self.rule.rates.iter().filter(|(p, _)| matches(p, &frame));
        let rate = own
            .max_by_key(|(p, _)| p.len())
            .map(|(_, hz)| *hz)
            .or(self.rule.rate);
        let Some(hz) = rate else { return Passage::Passes };
        if !self.tickers.contains_key(&frame) && self.tickers.len() >= MAX_FRAMES {
            // A publisher that invents ever new frames gets none of them through twice in a period.
            self.tickers.clear();
        }
        let ticker = self.tickers.entry(frame).or_insert_with(|| Ticker::new(hz));
        match ticker.due(now) {
            true => Passage::Passes,
            false => Passage::TooSoon,
        }
    }

    /// A transform's frame, without the leading slash of the first tf.
    pub fn frame(transform: &Value) -> String {
        let id = transform.get("child_frame_id").ok();
        let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
        id.trim_start_matches('/').to_owned()
    }
}

/// Returns whether a pattern, in which `*` matches anything, matches a frame.
fn matches(pattern: &str, frame: &str) -> bool {
    let mut pieces = pattern.trim_start_matches('/').split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = frame.strip_prefix(first) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::{Flavour, Registry};

    #[test]
    fn made_up_frames_take_bounded_memory() {
        let schema = Registry::new(Flavour::Ros1)
            .schema("geometry_msgs/TransformStamped")
            .unwrap();
        let rule = TfRule {
            rate: Some(1.0),
            ..TfRule::default()
        };
        let mut frames = Frames::new(rule);
        for n in 0..6000 {
            let transform = schema.value_from_yaml(&format!("child_frame_id: f{n}")).unwrap();
            assert_eq!(frames.look(Time(n), &transform), Passage::Passes);
            assert!(frames.tickers.len() <= MAX_FRAMES);
        }
    }

    #[test]
    fn patterns_match_as_they_look() {
        for (pattern, frame, expected) in [
            ("odom", "odom", true),
            ("odom", "odom2", false),
            ("*", "", true),
            ("arm_*", "arm_1", true),
            ("arm_*", "leg_1", false),
            ("*_link", "base_link", true),
            ("*_link", "base_link2", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*a", "a", false),
            ("", "", true),
            ("/odom", "odom", true),
        ] {
            assert_eq!(matches(pattern, frame), expected, "{pattern} {frame}");
        }
    }
}
