//! What of a topic crosses: its rate, the frames of transforms, the level of the log.

use crate::config::{TfRule, TopicRule};
use schema::{Schema, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const TRANSFORMS: [&str; 2] = ["tf2_msgs/TFMessage", "tf/tfMessage"];
const LOG: &str = "rosgraph_msgs/Log";
/// Most frames whose rate is watched.
const MAX_FRAMES: usize = 4096;

/// A rule's filter does not fit the topic's type.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` is for {wanted}, and this is a {found}: leave it out")]
pub(crate) struct Unfit {
    key: &'static str,
    wanted: &'static str,
    found: String,
}

/// Decides about each message of one topic.
#[derive(Debug)]
pub(crate) struct Filter {
    all: Option<Ticker>,
    tf: Option<Frames>,
    level: Option<i128>,
}

impl Filter {
    pub(crate) fn new(rule: &TopicRule, schema: &Schema) -> Result<Filter, Unfit> {
        let found = || schema.name().to_owned();
        if rule.tf.is_some() && !TRANSFORMS.contains(&schema.name()) {
            let (key, wanted) = ("tf", "tf2_msgs/TFMessage and tf/tfMessage");
            return Err(Unfit {
                key,
                wanted,
                found: found(),
            });
        }
        if rule.level.is_some() && schema.name() != LOG {
            let (key, wanted) = ("level", LOG);
            return Err(Unfit {
                key,
                wanted,
                found: found(),
            });
        }
        Ok(Filter {
            all: rule.rate_limit.map(Ticker::new),
            tf: rule.tf.clone().map(|rule| Frames {
                rule,
                tickers: BTreeMap::new(),
            }),
            level: rule.level,
        })
    }

    /// Whether the content decides: then [`Filter::apply`] must be asked, else [`Filter::due`].
    pub(crate) fn reads(&self) -> bool {
        self.tf.is_some() || self.level.is_some()
    }

    /// Whether a message may cross by its time.
    pub(crate) fn due(&mut self, now: Instant) -> bool {
        self.all.as_mut().is_none_or(|t| t.due(now))
    }

    /// What of a message crosses.
    pub(crate) fn apply(&mut self, now: Instant, mut message: Value) -> Option<Value> {
        if let Some(least) = self.level {
            message.get("level").ok()?.as_integer().filter(|l| *l >= least)?;
        }
        if let Some(frames) = &mut self.tf {
            let Value::List(transforms) = message.get("transforms").ok()? else {
                return None;
            };
            let passing: Vec<Value> = transforms.into_iter().filter(|t| frames.passes(now, t)).collect();
            if passing.is_empty() {
                return None;
            }
            message.set("transforms", Value::List(passing)).ok()?;
        }
        self.due(now).then_some(message)
    }
}

#[derive(Debug)]
struct Frames {
    rule: TfRule,
    tickers: BTreeMap<String, Ticker>,
}

impl Frames {
    fn passes(&mut self, now: Instant, transform: &Value) -> bool {
        let id = transform.get("child_frame_id").ok();
        let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
        // The first tf wrote them with a slash.
        let id = id.trim_start_matches('/');
        let allowed = self.rule.frames.as_ref();
        if allowed.is_some_and(|patterns| !patterns.iter().any(|p| covers(p, id))) {
            return false;
        }
        let own = self.rule.rates.iter().filter(|(p, _)| covers(p, id));
        let rate = own
            .max_by_key(|(p, _)| p.len())
            .map(|(_, hz)| *hz)
            .or(self.rule.rate);
        let Some(hz) = rate else { return true };
        if !self.tickers.contains_key(id) && self.tickers.len() >= MAX_FRAMES {
            self.tickers.clear();
        }
        self.tickers
            .entry(id.to_owned())
            .or_insert_with(|| Ticker::new(hz))
            .due(now)
    }
}

fn covers(pattern: &str, frame: &str) -> bool {
    let pattern = pattern.trim_start_matches('/');
    match pattern.strip_suffix('*') {
        Some(stem) => frame.starts_with(stem),
        None => frame == pattern,
    }
}

/// Lets so many pass in a second. A source that jitters by up to half a period keeps its rate.
#[derive(Debug)]
struct Ticker {
    period: Duration,
    next: Option<Instant>,
}

impl Ticker {
    fn new(hz: f64) -> Ticker {
        Ticker {
            // From 1 MHz to once in eleven days.
            period: Duration::from_secs_f64((1.0 / hz).clamp(0.0, 1e6)),
            next: None,
        }
    }

    fn due(&mut self, now: Instant) -> bool {
        let next = self.next.unwrap_or(now);
        if now + self.period / 2 < next {
            return false;
        }
        self.next = Some(next.max(now) + self.period);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use schema::{Flavour, Registry};

    fn rule() -> TopicRule {
        TopicRule::new("/x", Direction::ToBus)
    }

    fn schema(name: &str) -> Schema {
        Registry::new(Flavour::Ros1).schema(name).unwrap()
    }

    fn transforms(ids: &[&str]) -> Value {
        let list: Vec<String> = ids.iter().map(|id| format!("{{child_frame_id: {id}}}")).collect();
        schema("tf2_msgs/TFMessage")
            .value_from_yaml(&format!("transforms: [{}]", list.join(", ")))
            .unwrap()
    }

    #[test]
    fn a_rate_holds_whatever_comes() {
        let mut ticker = Ticker::new(10.0);
        let start = Instant::now();
        let passed = (0..1000)
            .filter(|i| ticker.due(start + Duration::from_millis(10 * i)))
            .count();
        assert!((100..=101).contains(&passed), "{passed}");
    }

    #[test]
    fn frames_cross_each_at_its_rate() {
        let tf = TfRule {
            frames: Some(vec!["odom".into(), "arm_*".into()]),
            rate: Some(10.0),
            rates: [("arm_tip".to_owned(), 1.0)].into(),
        };
        let rule = TopicRule {
            tf: Some(tf),
            ..rule()
        };
        let mut filter = Filter::new(&rule, &schema("tf2_msgs/TFMessage")).unwrap();
        assert!(filter.reads());
        let start = Instant::now();
        let mut left = BTreeMap::new();
        for i in 0..200 {
            let message = transforms(&["/odom", "arm_1", "arm_tip", "laser"]);
            let Some(message) = filter.apply(start + Duration::from_millis(10 * i), message) else {
                continue;
            };
            let Value::List(list) = message.get("transforms").unwrap() else {
                panic!()
            };
            for one in list {
                let id = one.get("child_frame_id").unwrap().as_str().unwrap().to_owned();
                *left.entry(id).or_insert(0) += 1;
            }
        }
        // The first comes at once, and half a period early is not too soon.
        assert_eq!(
            left.into_iter().collect::<Vec<_>>(),
            [
                ("/odom".to_owned(), 21),
                ("arm_1".into(), 21),
                ("arm_tip".into(), 3)
            ]
        );
    }

    #[test]
    fn the_log_crosses_from_its_level_on() {
        let rule = TopicRule {
            level: Some(4),
            ..rule()
        };
        let log = schema("rosgraph_msgs/Log");
        let mut filter = Filter::new(&rule, &log).unwrap();
        let crosses: Vec<bool> = [1, 2, 4, 8]
            .iter()
            .map(|l| {
                filter
                    .apply(
                        Instant::now(),
                        log.value_from_yaml(&format!("level: {l}")).unwrap(),
                    )
                    .is_some()
            })
            .collect();
        assert_eq!(crosses, [false, false, true, true]);
    }

    #[test]
    fn filters_fit_their_types_only() {
        let tf = TopicRule {
            tf: Some(TfRule::default()),
            ..rule()
        };
        let error = Filter::new(&tf, &schema("std_msgs/String"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("std_msgs/String") && error.contains("leave it out"),
            "{error}"
        );
        let level = TopicRule {
            level: Some(1),
            ..rule()
        };
        assert!(Filter::new(&level, &schema("std_msgs/String")).is_err());
    }
}
