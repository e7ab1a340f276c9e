//! Selects the messages of a topic that cross: by rate, by frames of transforms, by log level.

use crate::{Frames, Passage, TRANSFORMS, Ticker, TopicRule};
use schema::{Schema, Value};
use stats::Time;

const LOG: &str = "rosgraph_msgs/Log";
const LOG_OF_ROS2: &str = "rcl_interfaces/Log";

/// A rule's filter does not fit the topic's type.
#[derive(Debug, thiserror::Error)]
#[error("`{key}` is for {wanted}, but the topic's type is {found}: leave `{key}` out")]
pub struct Unfit {
    key: &'static str,
    wanted: &'static str,
    found: String,
}

/// Filters the messages of one topic.
#[derive(Debug)]
pub struct Filter {
    all: Option<Ticker>,
    tf: Option<Frames>,
    level: Option<i128>,
}

impl Filter {
    /// Creates the filter of a rule for a topic of this type.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn new(rule: &TopicRule, schema: &Schema) -> Result<Filter, Unfit> {
        let found = || schema.name().to_owned();
        if rule.tf.is_some() && !TRANSFORMS.contains(&schema.name()) {
            let (key, wanted) = ("tf", "tf2_msgs/TFMessage and tf/tfMessage");
            return Err(Unfit {
                key,
                wanted,
                found: found(),
            });
        }
        let levels: Option<fn(i128) -> i128> = match schema.name() {
            LOG => Some(|level| level),
            LOG_OF_ROS2 => Some(level_of_ros2),
            _ => None,
        };
        if rule.level.is_some() && levels.is_none() {
            let (key, wanted) = ("level", "rosgraph_msgs/Log and rcl_interfaces/Log");
            return Err(Unfit {
                key,
                wanted,
                found: found(),
            });
        }
        Ok(Filter {
            all: rule.rate_limit.map(Ticker::new),
            tf: rule.tf.clone().map(Frames::new),
            level: rule
                .level
                .zip(levels)
                .map(|(level, as_written)| as_written(level)),
        })
    }

    /// Returns whether the filter needs the content: then use [`Filter::apply`], else [`Filter::due`].
    pub fn reads(&self) -> bool {
        self.tf.is_some() || self.level.is_some()
    }

    /// Returns whether the rate limit lets a message cross at `now`.
    pub fn due(&mut self, now: Time) -> bool {
        self.all.as_mut().is_none_or(|t| t.due(now))
    }

    /// Returns the part of a message that crosses.
    pub fn apply(&mut self, now: Time, mut message: Value) -> Option<Value> {
        if let Some(least) = self.level {
            message.get("level").ok()?.as_integer().filter(|l| *l >= least)?;
        }
        if let Some(frames) = &mut self.tf {
            let Value::List(transforms) = message.get("transforms").ok()? else {
                return None;
            };
            let passing: Vec<Value> = transforms
                .into_iter()
                .filter(|t| frames.look(now, t) == Passage::Passes)
                .collect();
            if passing.is_empty() {
                return None;
            }
            message.set("transforms", Value::List(passing)).ok()?;
        }
        self.due(now).then_some(message)
    }
}

/// The number in `rcl_interfaces/msg/Log` for a level of `rosgraph_msgs/Log`, whose numbers double from 1.
fn level_of_ros2(level: i128) -> i128 {
    10 * i128::from(level.trailing_zeros() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::TfRule;
    use schema::{Flavour, Registry};
    use std::collections::BTreeMap;
    use std::time::Duration;

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
        let start = Time(1);
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
        // The first message passes at once, and half a period early is not too soon.
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
                    .apply(Time(1), log.value_from_yaml(&format!("level: {l}")).unwrap())
                    .is_some()
            })
            .collect();
        assert_eq!(crosses, [false, false, true, true]);

        let log = schema::Registry::new(schema::Flavour::Ros2)
            .schema("rcl_interfaces/Log")
            .unwrap();
        let mut filter = Filter::new(&rule, &log).unwrap();
        let crosses = [10, 20, 30, 40, 50].map(|l| {
            let message = log.value_from_yaml(&format!("level: {l}")).unwrap();
            filter.apply(Time(1), message).is_some()
        });
        assert_eq!(crosses, [false, false, true, true, true]);
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
