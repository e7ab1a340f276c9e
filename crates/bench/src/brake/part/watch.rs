//! The receivers of the images: the logger and the recognizers.

use super::super::said::{Hit, MOST, Watcher};
use super::{
    Color, Common, Gate, PeerError, Recognize, Recognizer, command_topic, image_topic, newest, schema,
};
use crate::kit::part::{LOOK, SEQUENCE, STAMP, number, say};
use ropewalk::Node;
use serde_json::json;

pub(super) fn log(options: &Common) -> Result<(), PeerError> {
    watch(&Node::new("logger")?, options, |_| Ok(None))
}

pub(super) fn recognize(options: &Recognize) -> Result<(), PeerError> {
    let node = Node::new("recognizer")?;
    let recognizer = Recognizer::new(options.color, options.roi);
    let brake = if options.color == Color::Red {
        Some(node.dynamic_publisher(&command_topic(&options.common), &schema("geometry_msgs/Twist")?)?)
    } else {
        None
    };
    watch(&node, &options.common, |image| {
        let found = recognizer.find(image);
        let hit = found.is_some_and(|m| m.is_recognized());
        let now = clock::monotonic().as_nanos();
        if let Some(brake) = brake.as_ref().filter(|_| hit) {
            // All velocities zero.
            let stop = [0; 48];
            brake
                .publish_ros1(&stop)
                .map_err(|e| PeerError::Type(e.to_string()))?;
        }
        Ok(Some((now, hit)))
    })
}

/// Takes images until `stop`; `look` returns when it was done with an image, and whether the lamp is in it.
fn watch(
    node: &Node,
    options: &Common,
    mut look: impl FnMut(&[u8]) -> Result<Option<(u64, bool)>, PeerError>,
) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let subscriber = node.dynamic_subscriber_with(
        &image_topic(options),
        &schema("sensor_msgs/Image")?,
        newest(options),
    )?;
    let mut reported = Watcher {
        images: 0,
        latency_ns: Vec::with_capacity(MOST),
        match_ns: Vec::with_capacity(MOST),
        hits: 0,
        first: None,
    };
    say(&"ready")?;
    while !gate.stopped() {
        let Some(message) = subscriber.take_timeout(LOOK)? else {
            continue;
        };
        let received_ns = clock::monotonic().as_nanos();
        let image = message.part(0).bytes();
        let (Some(stamp), Some(sequence)) = (number(image, STAMP), number(image, SEQUENCE)) else {
            continue;
        };
        let seen = look(image)?;
        drop(message);
        reported.images += 1;
        if reported.latency_ns.len() < MOST {
            reported.latency_ns.push(received_ns.saturating_sub(stamp));
        }
        let Some((recognized_ns, hit)) = seen else {
            continue;
        };
        if reported.match_ns.len() < MOST {
            reported.match_ns.push(recognized_ns - received_ns);
        }
        reported.hits += u64::from(hit);
        if hit && reported.first.is_none() {
            reported.first = Some(Hit {
                sequence,
                received_ns,
                recognized_ns,
            });
        }
    }
    say(&json!(reported))
}
