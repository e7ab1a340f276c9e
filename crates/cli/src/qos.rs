//! Quality of service in the terms of `ros2 topic`, applied to the bus.
//!
//! The bus itself loses nothing, so reliability has no effect on it: a publisher states it for subscriptions of ROS 2,
//! which take it into account. Durability is the publisher's history for late subscribers, depth the length of a queue.

use crate::failure::Failure;
use bus::{EndpointDetail, PublisherOptions, Reliability, SubscriberOptions, TopicInfo};
use clap::{Args, ValueEnum};

/// The longest queue and history of the bus.
const MAX_DEPTH: u32 = 4096;
/// Default depth in ROS 2.
const DEPTH: u32 = 10;

/// Heading of these options in the help.
const HEADING: &str = "Quality of service";

#[derive(Args, Default)]
pub(crate) struct Wanted {
    /// Start from a ROS 2 profile; the other options change it.
    #[arg(long, help_heading = HEADING, value_enum, value_name = "NAME")]
    qos_profile: Option<Profile>,
    /// Keep the last messages (--qos-depth), or all (at most 4096 on the bus).
    #[arg(long, help_heading = HEADING, value_enum, value_name = "HISTORY")]
    qos_history: Option<History>,
    /// Number of messages to keep, 1 to 4096.
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = depth)]
    qos_depth: Option<u32>,
    /// Reliability that a publisher states for subscriptions of ROS 2. The bus itself loses nothing.
    #[arg(long, help_heading = HEADING, value_enum, value_name = "RELIABILITY")]
    qos_reliability: Option<Delivery>,
    /// transient_local: late subscribers get the last messages; volatile: they do not.
    #[arg(long, help_heading = HEADING, value_enum, value_name = "DURABILITY")]
    qos_durability: Option<Durability>,
    /// Only `automatic`: the bus notices at once when a publisher ends.
    #[arg(long, help_heading = HEADING, value_enum, value_name = "LIVELINESS")]
    qos_liveliness: Option<Liveliness>,
}

/// Profiles of `rmw/qos_profiles.h`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Profile {
    Default,
    SystemDefault,
    SensorData,
    ServicesDefault,
    Parameters,
    ParameterEvents,
    ActionStatusDefault,
    BestAvailable,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum History {
    KeepLast,
    KeepAll,
    SystemDefault,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Delivery {
    Reliable,
    BestEffort,
    BestAvailable,
    SystemDefault,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Durability {
    TransientLocal,
    Volatile,
    BestAvailable,
    SystemDefault,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Liveliness {
    Automatic,
    ManualByTopic,
    SystemDefault,
}

fn depth(text: &str) -> Result<u32, String> {
    let good = text.parse().ok().filter(|n| (1..=MAX_DEPTH).contains(n));
    good.ok_or_else(|| format!("give 1 to {MAX_DEPTH} messages, the maximum of the bus"))
}

/// The quality of service that the options ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Qos {
    depth: Option<u32>,
    /// None: compatible with every offer.
    reliable: Option<bool>,
    durable: Option<bool>,
    /// Whether the user set any of the options.
    is_said: bool,
}

impl Wanted {
    /// Resolves the options.
    pub(crate) fn qos(&self) -> Result<Qos, Failure> {
        if self.qos_liveliness == Some(Liveliness::ManualByTopic) {
            return Err(Failure::input(
                "--qos-liveliness manual_by_topic: only nodes over rmw_ropewalk can assert that they are alive; leave the option out",
            ));
        }
        if self.qos_history == Some(History::KeepAll) && self.qos_depth.is_some() {
            return Err(Failure::input(
                "--qos-history keep_all has no depth: leave --qos-depth out, or use keep_last",
            ));
        }
        let mut qos = self.qos_profile.map(profile).unwrap_or_default();
        match self.qos_history {
            Some(History::KeepAll) => qos.depth = Some(MAX_DEPTH),
            Some(History::KeepLast) => qos.depth = qos.depth.or(Some(DEPTH)),
            _ => {}
        }
        qos.depth = self.qos_depth.or(qos.depth);
        match self.qos_reliability {
            Some(Delivery::Reliable) => qos.reliable = Some(true),
            Some(Delivery::BestEffort) => qos.reliable = Some(false),
            Some(Delivery::BestAvailable | Delivery::SystemDefault) => qos.reliable = None,
            None => {}
        }
        match self.qos_durability {
            Some(Durability::TransientLocal) => qos.durable = Some(true),
            Some(Durability::Volatile) => qos.durable = Some(false),
            Some(Durability::BestAvailable | Durability::SystemDefault) => qos.durable = None,
            None => {}
        }
        qos.is_said = self.is_said();
        Ok(qos)
    }

    fn is_said(&self) -> bool {
        self.qos_profile.is_some()
            || self.qos_history.is_some()
            || self.qos_depth.is_some()
            || self.qos_reliability.is_some()
            || self.qos_durability.is_some()
    }
}

fn profile(profile: Profile) -> Qos {
    let of = |depth, reliable, durable| Qos {
        depth,
        reliable,
        durable,
        is_said: true,
    };
    match profile {
        Profile::SystemDefault => of(None, None, None),
        Profile::Default | Profile::ServicesDefault => of(Some(DEPTH), Some(true), Some(false)),
        Profile::SensorData => of(Some(5), Some(false), Some(false)),
        Profile::Parameters | Profile::ParameterEvents => of(Some(1000), Some(true), Some(false)),
        Profile::ActionStatusDefault => of(Some(1), Some(true), Some(true)),
        Profile::BestAvailable => of(Some(DEPTH), None, None),
    }
}

impl Qos {
    /// Options of a subscriber; by default a queue of `depth` messages, and all that publishers keep.
    pub(crate) fn subscriber(&self, depth: u32) -> SubscriberOptions {
        let options = SubscriberOptions::default().with_depth(self.depth.unwrap_or(depth));
        match self.durable {
            Some(false) => options.with_history(0),
            Some(true) => options.with_history(self.depth.unwrap_or(depth)),
            None => options,
        }
    }

    /// Options of a publisher.
    pub(crate) fn publisher(&self) -> PublisherOptions {
        let mut options = PublisherOptions::default();
        if !self.is_said {
            return options;
        }
        let depth = self.depth.unwrap_or(DEPTH);
        options = options.with_depth(depth).with_reliability(match self.reliable {
            Some(false) => Reliability::BestEffort,
            _ => Reliability::Reliable,
        });
        match self.durable {
            Some(true) => options.with_history(depth),
            _ => options,
        }
    }

    /// Whether late subscribers get messages, which requires the publisher to stay.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable == Some(true)
    }

    /// Whether a subscription of ROS 2 with this quality may not match every publisher.
    pub(crate) fn may_not_fit(&self) -> bool {
        self.reliable == Some(true) || self.durable == Some(true)
    }

    /// Publishers that a subscription of ROS 2 with this quality would not match, and why. On the bus it does.
    pub(crate) fn unheard(&self, topic: &TopicInfo) -> Vec<String> {
        let mut out = Vec::new();
        for publisher in &topic.publishers {
            let EndpointDetail::Publisher(info) = &publisher.detail else {
                continue;
            };
            let offer = &info.offer;
            let who = match &*offer.node {
                "" => crate::command::endpoints::process(publisher.program.as_deref(), publisher.pid),
                node => node.to_owned(),
            };
            if self.reliable == Some(true) && offer.reliability == Some(Reliability::BestEffort) {
                out.push(format!(
                    "{who} offers best_effort: in ROS 2 a reliable subscription does not match it"
                ));
            }
            if self.durable == Some(true) && offer.history == 0 {
                out.push(format!(
                    "{who} is volatile: in ROS 2 a transient_local subscription does not match it"
                ));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_ros_2_become_queues_and_histories() {
        let qos = |options: Wanted| options.qos().expect("is good");
        let nothing = qos(Wanted::default());
        assert_eq!(nothing.publisher(), PublisherOptions::default());
        assert_eq!(
            (nothing.subscriber(64).depth, nothing.subscriber(64).history),
            (64, u32::MAX)
        );
        let sensor = qos(Wanted {
            qos_profile: Some(Profile::SensorData),
            ..Wanted::default()
        });
        assert_eq!(sensor.publisher().reliability, Some(Reliability::BestEffort));
        assert_eq!((sensor.publisher().depth, sensor.subscriber(64).history), (5, 0));
        let latched = qos(Wanted {
            qos_durability: Some(Durability::TransientLocal),
            qos_depth: Some(3),
            ..Wanted::default()
        });
        assert_eq!(
            (latched.publisher().history, latched.subscriber(64).history),
            (3, 3)
        );
        let all = qos(Wanted {
            qos_history: Some(History::KeepAll),
            ..Wanted::default()
        });
        assert_eq!(all.subscriber(64).depth, MAX_DEPTH);
    }

    #[test]
    fn qos_beyond_the_bus_is_refused() {
        let manual = Wanted {
            qos_liveliness: Some(Liveliness::ManualByTopic),
            ..Wanted::default()
        };
        assert!(manual.qos().is_err_and(|e| e.is_bad_input()));
        let both = Wanted {
            qos_history: Some(History::KeepAll),
            qos_depth: Some(3),
            ..Wanted::default()
        };
        assert!(both.qos().is_err());
        assert!(depth("0").is_err() && depth("4097").is_err() && depth("4096") == Ok(4096));
    }
}
