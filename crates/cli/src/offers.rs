//! Converts between a recording's channels and what publishers on the bus state.

use bus::{Offer, PublisherOptions, Reliability};
use recording::Channel;
use recording::qos::{self, Durability, History, MAX_KEPT, Qos};

/// Options to publish a channel as it was: by the same node, with the same history for late subscribers.
pub(crate) fn of_channel(channel: &Channel) -> PublisherOptions {
    let mut options = PublisherOptions::default().with_history(channel.kept());
    let named = channel.callerid.as_ref();
    if let Some(node) = named.filter(|n| n.len() <= bus::MAX_NAME && stats::text::is_plain(n)) {
        options.node.clone_from(node);
    }
    let said = || channel.qos.iter().filter_map(|q| q.reliability);
    // One publisher stands for the whole channel. If the original ones differed, the more reliable suits every
    // subscriber.
    options.reliability = match (said().next(), said().any(|r| r == qos::Reliability::Reliable)) {
        (None, _) => None,
        (_, true) => Some(Reliability::Reliable),
        (_, false) => Some(Reliability::BestEffort),
    };
    let depths = channel.qos.iter().map(|q| match q.history {
        Some(History::KeepLast(depth)) => depth,
        _ => 0,
    });
    options.depth = depths.max().unwrap_or(0);
    options
}

/// Writes what a publisher states into its channel.
pub(crate) fn into_channel(offer: &Offer, ros2: bool, channel: &mut Channel) {
    channel.callerid = Some(offer.node.clone()).filter(|n| !n.is_empty());
    if !ros2 {
        channel.latched = offer.history > 0;
        return;
    }
    let mut profile = Qos::default();
    profile.reliability = Some(match offer.reliability {
        // The bus itself loses nothing.
        None | Some(Reliability::Reliable) => qos::Reliability::Reliable,
        Some(Reliability::BestEffort) => qos::Reliability::BestEffort,
    });
    profile.durability = Some(match offer.history {
        0 => Durability::Volatile,
        _ => Durability::TransientLocal,
    });
    profile.history = match (offer.depth, offer.history, offer.reliability) {
        (0, MAX_KEPT.., _) => Some(History::KeepAll),
        // A publisher that states no policies of ROS 2 has only this history.
        (0, 1.., None) => Some(History::KeepLast(offer.history)),
        (0, ..) => None,
        (depth, ..) => Some(History::KeepLast(depth)),
    };
    channel.qos = vec![profile];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_republished_recording_is_recorded_with_the_same_qos() {
        let channel = Channel::ros1("/t", "std_msgs/String", "", "string data\n");
        let again = |channel: &Channel, ros2| {
            let options = of_channel(channel);
            let mut offer = Offer::default();
            (offer.node, offer.history) = (options.node, options.history);
            (offer.reliability, offer.depth) = (options.reliability, options.depth);
            let mut copy = Channel::ros1("/t", "std_msgs/String", "", "string data\n");
            into_channel(&offer, ros2, &mut copy);
            copy
        };
        for latched in [true, false] {
            let mut ros1 = channel.clone();
            ros1.latched = latched;
            ros1.callerid = Some("/map_server".into());
            assert_eq!(again(&ros1, false), ros1);
        }
        let histories = [None, Some(History::KeepLast(7))];
        for (history, durable) in histories.into_iter().flat_map(|h| [(h, true), (h, false)]) {
            for reliability in [qos::Reliability::Reliable, qos::Reliability::BestEffort] {
                let mut profile = Qos::default();
                profile.reliability = Some(reliability);
                profile.durability = Some(if durable {
                    Durability::TransientLocal
                } else {
                    Durability::Volatile
                });
                profile.history = history;
                let mut ros2 = channel.clone();
                ros2.qos = vec![profile];
                assert_eq!(again(&ros2, true), ros2);
            }
        }
    }

    #[test]
    fn several_publishers_of_one_channel_are_all_kept_for() {
        let mut durable = Qos::default();
        durable.durability = Some(Durability::TransientLocal);
        durable.history = Some(History::KeepLast(1));
        let mut channel = Channel::ros1("/tf_static", "tf2_msgs/TFMessage", "", "");
        channel.qos = vec![durable; 3];
        assert_eq!(of_channel(&channel).history, 3);
        durable.history = Some(History::KeepAll);
        channel.qos = vec![durable; 3];
        assert_eq!(of_channel(&channel).history, MAX_KEPT);
        channel.callerid = Some("/a\u{1b}[2J".into());
        assert_eq!(
            of_channel(&channel).node,
            "",
            "a name that the bus refuses is left out"
        );
    }
}
