//! Structures as the Rust generators of ROS 2 generate them, over a bus: round trips, errors, and damaged
//! messages.
#![allow(missing_docs)]

mod damaged;
mod errors;
mod everything;
mod measure;
#[expect(unreachable_pub, reason = "as generated")]
mod r2r;
#[expect(unreachable_pub, reason = "as generated")]
mod ros2_rust;
#[expect(unreachable_pub, reason = "of a library")]
mod runtime;
mod services;
mod there_and_back;

use everything::EVERYTHING;
use ropewalk::{BusConfig, Flavour, Message, Node, Publisher, Registry, Schema, Subscriber};
use std::time::Duration;

/// Long enough for any machine; it bounds hanging, not speed.
const LONG: Duration = Duration::from_secs(120);

fn registry() -> Registry {
    let mut registry = Registry::new(Flavour::Ros2);
    for (name, text) in [
        ("test_msgs/Inner", "uint8 a\nfloat64 b\nint16 c"),
        ("test_msgs/Nested", "string name\nInner inner\nbool[] flags"),
        ("test_msgs/Everything", EVERYTHING),
    ] {
        registry.add_message(name, text).expect("parses");
    }
    registry
}

fn schema(name: &str) -> Schema {
    registry().schema(name).expect("compiles")
}

/// A publisher and a subscriber of one topic.
struct Ends {
    publisher: Publisher,
    subscriber: Subscriber,
    _folder: tempfile::TempDir,
}

impl Ends {
    fn new(schema: &Schema) -> Self {
        Self::of(schema, schema)
    }

    fn of(published: &Schema, subscribed: &Schema) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let node = Node::with_config("tester", BusConfig::new(folder.path())).expect("a node");
        let publisher = node.dynamic_publisher("/topic", published).expect("a publisher");
        let subscriber = node
            .dynamic_subscriber("/topic", subscribed)
            .expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, LONG));
        Ends {
            publisher,
            subscriber,
            _folder: folder,
        }
    }

    fn take(&self) -> Message {
        let taken = self.subscriber.take_timeout(LONG).expect("takes");
        taken.expect("a message")
    }
}

/// The control part and the data parts.
fn bytes(message: &Message) -> (Vec<u8>, Vec<Vec<u8>>) {
    let parts = (0..message.part_count()).map(|i| message.part(i).bytes().to_vec());
    (message.control().to_vec(), parts.collect())
}
