//! Options of the Foxglove server.

use crate::drive::{Fleet, SpeedLimits};
use std::path::PathBuf;
use std::sync::Arc;

/// Messages longer than this, in bytes, wait until shorter ones are sent, unless their topic has a configured priority.
const SMALL: usize = 64 << 10;

/// The serialization in which clients get topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// CDR for programs that offer only the new name of the protocol, such as PlotJuggler; else ROS 1's.
    #[default]
    Auto,
    /// ROS 1's, with definitions of ROS 1.
    Ros1,
    /// CDR, with definitions of ROS 2.
    Ros2,
}

/// Options of the Foxglove server. Patterns are full names, or prefixes followed by `*`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FoxgloveOptions {
    /// The serialization.
    pub dialect: Dialect,
    /// Topics that are shown; empty: all.
    pub topics: Vec<String>,
    /// Topics that are not shown.
    pub exclude: Vec<String>,
    /// Topics that clients with [`Role::Drive`](crate::Role::Drive) may publish; empty: none.
    pub allow_publish: Vec<String>,
    /// Topics whose twists drive a robot instead of being published: the topic, and the robot's name. Clients with
    /// [`Role::Drive`](crate::Role::Drive) may publish them.
    pub drives: Vec<(String, String)>,
    /// The robots of `drives`.
    pub fleet: Option<Arc<dyn Fleet>>,
    /// Speed limits of `drives`.
    pub limits: SpeedLimits,
    /// Priorities of topics that wait for the same client, by pattern; the first pattern that matches a topic counts.
    /// Higher goes first; other topics have 100 or, if their messages are longer than 64 KiB, 50.
    pub priorities: Vec<(String, u8)>,
    /// Folders whose files clients may fetch.
    pub assets: Vec<PathBuf>,
}

impl FoxgloveOptions {
    pub(crate) fn shows(&self, topic: &str) -> bool {
        let covers = |pattern: &String| bridge::covers(pattern, topic);
        (self.topics.is_empty() || self.topics.iter().any(covers)) && !self.exclude.iter().any(covers)
    }

    /// The priority of a message of a topic.
    pub(crate) fn priority(&self, topic: &str, len: usize) -> u8 {
        let stated = self
            .priorities
            .iter()
            .find(|(pattern, _)| bridge::covers(pattern, topic));
        match stated {
            Some((_, priority)) => *priority,
            None if len <= SMALL => 100,
            None => 50,
        }
    }

    /// The robot that twists of a topic drive.
    pub(crate) fn driven(&self, topic: &str) -> Option<&str> {
        let found = self.drives.iter().find(|(driving, _)| driving == topic);
        found.map(|(_, robot)| robot.as_str())
    }

    pub(crate) fn may_publish(&self, topic: &str) -> bool {
        self.allow_publish
            .iter()
            .any(|pattern| bridge::covers(pattern, topic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_topics() {
        let mut options = FoxgloveOptions::default();
        assert!(options.shows("/a") && !options.may_publish("/a"));
        options.topics = vec!["/camera/*".into(), "/tf".into()];
        options.exclude = vec!["/camera/raw".into()];
        options.allow_publish = vec!["/cmd_vel".into()];
        assert!(options.shows("/camera/jpeg") && options.shows("/tf") && options.may_publish("/cmd_vel"));
        options.priorities = vec![("/camera/jpeg".into(), 120), ("/camera/*".into(), 5)];
        let of = |topic: &str| (options.priority(topic, 1 << 10), options.priority(topic, 1 << 20));
        assert_eq!(
            (of("/tf"), of("/camera/jpeg"), of("/camera/raw")),
            ((100, 50), (120, 120), (5, 5))
        );
        assert!(!options.shows("/camera/raw") && !options.shows("/tf2") && !options.may_publish("/cmd_vel2"));
    }
}
