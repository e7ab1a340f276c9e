//! The quality of service of a channel's publishers, in rosbag2's terms.
//!
//! rosbag2 writes a YAML list of profiles, one per publisher, into a channel's metadata as `offered_qos_profiles`:
//! policies as rmw's numbers, as names since its version 9. Only the policies that a player needs are read:
//! reliability, durability, history and depth.

use std::fmt::Write as _;

/// The key in a channel's metadata.
pub(crate) const KEY: &str = "offered_qos_profiles";
/// Most profiles read for one channel; further ones are ignored.
pub const MAX_PROFILES: usize = 128;
/// Number of messages that a durable publisher of unknown depth is assumed to keep. DDS does not transmit a publisher's
/// depth, so a recorder seldom knows it; this is the depth of rmw's default profile.
pub const UNKNOWN_DEPTH: u32 = 10;
/// Most messages that a channel's publishers are assumed to keep for late subscribers.
pub const MAX_KEPT: u32 = 4096;

/// Offer of one publisher; `None` for a policy that the recording does not state, or states as unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Qos {
    /// Whether lost messages are retransmitted.
    pub reliability: Option<Reliability>,
    /// Whether late subscribers get the last messages.
    pub durability: Option<Durability>,
    /// How many messages it keeps, for slow subscribers and for late ones.
    pub history: Option<History>,
}

/// Whether lost messages are retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// Lost messages are retransmitted.
    Reliable,
    /// Lost messages stay lost.
    BestEffort,
}

/// Whether late subscribers get the last messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// They do, as long as the publisher lives, like ROS 1's latched topics.
    TransientLocal,
    /// They do not.
    Volatile,
}

/// Number of messages a publisher keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// The last N.
    KeepLast(u32),
    /// All, within the publisher's limits.
    KeepAll,
}

/// How rosbag2 writes policies: as names since version 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    Numbers,
    Names,
}

impl Qos {
    /// Number of this publisher's last messages that a late subscriber gets.
    pub fn kept(&self) -> u32 {
        if self.durability != Some(Durability::TransientLocal) {
            return 0;
        }
        match self.history {
            Some(History::KeepLast(depth)) => depth.clamp(1, MAX_KEPT),
            Some(History::KeepAll) => MAX_KEPT,
            None => UNKNOWN_DEPTH,
        }
    }

    /// Parses the profiles in a channel's metadata. Values that are not understood count as not stated.
    pub(crate) fn read(text: &str) -> Vec<Qos> {
        let mut profiles: Vec<Qos> = Vec::new();
        // Lines of an item that are indented deeper than its first key belong to another policy: `deadline: {sec,
        // nsec}`.
        let (mut column, mut depth) = (0, None);
        for line in text.lines() {
            let mut content = line.trim_start();
            let mut at = line.len() - content.len();
            if let Some(item) = content.strip_prefix("- ") {
                if profiles.len() == MAX_PROFILES {
                    break;
                }
                profiles.push(Qos::default());
                let key = item.trim_start();
                at += content.len() - key.len();
                (content, column, depth) = (key, at, None);
            }
            let (Some(profile), Some((key, value))) = (profiles.last_mut(), content.split_once(':')) else {
                continue;
            };
            if at != column {
                continue;
            }
            let value = value.split('#').next().unwrap_or_default().trim();
            match key.trim_end() {
                "history" => profile.history = history(value, depth),
                "depth" => depth = value.parse().ok(),
                "reliability" => profile.reliability = reliability(value),
                "durability" => profile.durability = durability(value),
                _ => {}
            }
            if let (Some(History::KeepLast(kept)), Some(said)) = (&mut profile.history, depth) {
                *kept = said;
            }
        }
        profiles.iter_mut().for_each(Qos::settle);
        profiles
    }

    /// A profile from the numbers or names of its policies.
    pub(crate) fn of(history: &str, depth: &str, reliability: &str, durability: &str) -> Qos {
        let mut profile = Qos {
            reliability: self::reliability(reliability),
            durability: self::durability(durability),
            history: self::history(history, depth.parse().ok()),
        };
        profile.settle();
        profile
    }

    /// A depth of 0 is the system's default.
    fn settle(&mut self) {
        if self.history == Some(History::KeepLast(0)) {
            self.history = None;
        }
    }

    /// The profiles for a channel's metadata, with every key that rosbag2 requires.
    pub(crate) fn write(profiles: &[Qos], words: Words) -> String {
        let word = |number: usize, names: [&'static str; 3]| match words {
            Words::Numbers => number.to_string(),
            Words::Names => names[number - 1].to_owned(),
        };
        let mut out = String::new();
        for profile in profiles {
            let (history, depth) = match profile.history {
                Some(History::KeepLast(depth)) => (1, depth),
                Some(History::KeepAll) => (2, 0),
                None => (3, 0),
            };
            let reliability = match profile.reliability {
                Some(Reliability::Reliable) => 1,
                Some(Reliability::BestEffort) => 2,
                None => 3,
            };
            let durability = match profile.durability {
                Some(Durability::TransientLocal) => 1,
                Some(Durability::Volatile) => 2,
                None => 3,
            };
            let history = word(history, ["keep_last", "keep_all", "unknown"]);
            let reliability = word(reliability, ["reliable", "best_effort", "unknown"]);
            let durability = word(durability, ["transient_local", "volatile", "unknown"]);
            let liveliness = word(1, ["automatic", "", ""]);
            // Infinite times, as rmw writes them, and automatic liveliness.
            let _ = writeln!(
                out,
                "- history: {history}\n  depth: {depth}\n  reliability: {reliability}\n  durability: {durability}\n  \
                 deadline:\n    sec: 9223372036\n    nsec: 854775807\n  lifespan:\n    sec: 9223372036\n    \
                 nsec: 854775807\n  liveliness: {liveliness}\n  liveliness_lease_duration:\n    sec: 9223372036\n    \
                 nsec: 854775807\n  avoid_ros_namespace_conventions: false",
            );
        }
        out
    }
}

fn history(value: &str, depth: Option<u32>) -> Option<History> {
    match value {
        "1" | "keep_last" => Some(History::KeepLast(depth.unwrap_or(0))),
        "2" | "keep_all" => Some(History::KeepAll),
        _ => None,
    }
}

fn reliability(value: &str) -> Option<Reliability> {
    match value {
        "1" | "reliable" => Some(Reliability::Reliable),
        "2" | "best_effort" => Some(Reliability::BestEffort),
        _ => None,
    }
}

fn durability(value: &str) -> Option<Durability> {
    match value {
        "1" | "transient_local" => Some(Durability::TransientLocal),
        "2" | "volatile" => Some(Durability::Volatile),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qos(
        history: Option<History>,
        reliability: Option<Reliability>,
        durability: Option<Durability>,
    ) -> Qos {
        Qos {
            reliability,
            durability,
            history,
        }
    }

    #[test]
    fn profiles_are_read_as_numbers_and_as_names() {
        let latched = qos(
            None,
            Some(Reliability::Reliable),
            Some(Durability::TransientLocal),
        );
        let numbers = "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 1\n";
        assert_eq!(Qos::read(numbers), [latched]);
        let names = "- history: keep_last\n  depth: 5\n  reliability: best_effort\n  durability: volatile\n  \
                     deadline:\n    sec: 9223372036\n    depth: 7\n- depth: 4\n  history: keep_last # of four\n\
                     - history: keep_all\n  durability: transient_local";
        let read = Qos::read(names);
        assert_eq!(
            read,
            [
                qos(
                    Some(History::KeepLast(5)),
                    Some(Reliability::BestEffort),
                    Some(Durability::Volatile)
                ),
                qos(Some(History::KeepLast(4)), None, None),
                qos(Some(History::KeepAll), None, Some(Durability::TransientLocal)),
            ]
        );
        assert_eq!(read.iter().map(Qos::kept).collect::<Vec<_>>(), [0, 0, MAX_KEPT]);
        assert_eq!(latched.kept(), UNKNOWN_DEPTH);
    }

    #[test]
    fn written_qos_is_read_back() {
        let mut all = Vec::new();
        for history in [None, Some(History::KeepAll), Some(History::KeepLast(7))] {
            for reliability in [None, Some(Reliability::Reliable), Some(Reliability::BestEffort)] {
                for durability in [None, Some(Durability::TransientLocal), Some(Durability::Volatile)] {
                    all.push(qos(history, reliability, durability));
                }
            }
        }
        for words in [Words::Numbers, Words::Names] {
            assert_eq!(Qos::read(&Qos::write(&all, words)), all);
        }
    }

    #[test]
    fn other_texts_give_few_profiles_or_none() {
        for odd in [
            "",
            "[]",
            "{}",
            "durability: 1",
            "-",
            "- ",
            "- :",
            "- history: 99999999999999999999\n  depth: -1",
            "- depth: 99999999999999999999\n  history: 1",
            "\u{0}- a: b",
            "- {history: 1, durability: 1}",
        ] {
            assert!(Qos::read(odd).iter().all(|q| *q == Qos::default()), "{odd:?}");
        }
        assert_eq!(Qos::read(&"- durability: 1\n".repeat(1000)).len(), MAX_PROFILES);
        // Any cut of a good text is read without a panic.
        let text = Qos::write(&[Qos::default()], Words::Numbers);
        (0..text.len()).for_each(|end| assert!(Qos::read(&text[..end]).len() <= 1));
    }
}
