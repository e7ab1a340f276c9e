//! Publishers and subscribers of generated structures.
#![cfg(feature = "msgs")]

use ropewalk::msgs::geometry_msgs::Twist;
use ropewalk::msgs::sensor_msgs::{Image, Imu};
use ropewalk::typed::{Bulk, FieldError};
use ropewalk::{
    BusConfig, Executor, Flavour, Node, PublishError, Publisher, Registry, Subscriber, SubscriberOptions,
};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Long enough for any machine; it bounds a hang, not speed.
const LONG: Duration = Duration::from_secs(120);

fn node() -> (tempfile::TempDir, Node) {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::with_config("typed", BusConfig::new(folder.path())).expect("a node");
    (folder, node)
}

fn images(node: &Node) -> (Publisher<Image<'static>>, Subscriber<Image<'static>>) {
    let publisher = node.publisher("/image").expect("a publisher");
    let subscriber = node.subscriber("/image").expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LONG));
    (publisher, subscriber)
}

#[test]
fn a_loan_is_read_where_it_was_filled() {
    let (_folder, node) = node();
    let (publisher, subscriber) = images(&node);
    let image = Image {
        width: 1000,
        data: Bulk::Sized(1000),
        ..Image::default()
    };
    let mut loan = publisher.loan(&image).expect("a block");
    loan.slice_mut::<u8>("data").expect("is there").fill(7);
    publisher.publish_loan(loan).expect("published");
    let message = subscriber.take_timeout(LONG).expect("takes").expect("a message");
    let image = message.read().expect("an image");
    assert_eq!((image.width, &*image.data), (1000, &[7; 1000][..]));
    assert_eq!(image.data.as_ptr(), message.part(0).as_ptr(), "in place");
    assert_eq!(message.schema().name(), "sensor_msgs/Image");
}

#[test]
fn a_message_is_published_with_its_arrays_but_not_without() {
    let (_folder, node) = node();
    let (publisher, subscriber) = images(&node);
    let mut image = Image {
        data: vec![5; 300].into(),
        ..Image::default()
    };
    publisher.publish(&image).expect("published");
    let message = subscriber.take_timeout(LONG).expect("takes").expect("a message");
    assert_eq!(message.read().expect("an image"), image);
    // A message is published as it was read.
    publisher
        .publish(&message.read().expect("an image"))
        .expect("published");
    let again = subscriber.take_timeout(LONG).expect("takes").expect("a message");
    assert_eq!(again.read().expect("an image"), image);

    image.data = Bulk::Sized(300);
    let refused = publisher.publish(&image).expect_err("nobody filled it");
    let PublishError::Fields { type_name, source } = &refused else {
        panic!("{refused}");
    };
    let field = "data".to_owned();
    assert_eq!(type_name, "sensor_msgs/Image");
    assert_eq!(*source, FieldError::Unfilled { field });
    assert_eq!(publisher.stats().published, 2);
}

#[test]
fn callbacks_and_executors_get_structures() {
    let (_folder, node) = node();
    let (send, seen) = channel();
    let mut executor = Executor::new(&node).expect("an executor");
    let stopper = executor.stopper();
    let in_executor = send.clone();
    executor
        .subscribe::<Twist>("/cmd_vel", move |message| {
            in_executor
                .send(message.read().expect("a twist").linear.x)
                .expect("heard");
            stopper.stop();
        })
        .expect("subscribes");
    let options = SubscriberOptions::default().with_depth(1);
    let subscriber = node.subscriber_with::<Twist>("/cmd_vel", options);
    let subscriber = subscriber.expect("a subscriber");
    let callback = subscriber.callback(move |message| {
        let _ = send.send(message.read().expect("a twist").linear.x);
    });
    let _callback = callback.expect("a thread");
    let publisher = node.publisher::<Twist>("/cmd_vel").expect("a publisher");
    assert!(publisher.wait_for_subscribers(2, LONG));
    let mut twist = Twist::default();
    twist.linear.x = 0.5;
    publisher.publish(&twist).expect("published");
    executor.spin().expect("spins");
    for _ in 0..2 {
        assert_eq!(seen.recv_timeout(LONG), Ok(0.5));
    }
}

/// A publisher of ROS 2, whose header has no `seq`.
#[test]
fn the_other_ros_is_converted() {
    let (_folder, node) = node();
    let schema = Registry::new(Flavour::Ros2).schema("sensor_msgs/Imu");
    let schema = schema.expect("is known");
    let publisher = node.dynamic_publisher("/imu", &schema).expect("a publisher");
    let subscriber = node.subscriber::<Imu>("/imu").expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LONG));
    let json = serde_json::json!({ "header": { "frame_id": "body" }, "linear_acceleration": { "z": 9.81 } });
    let value = schema.value_from_json(&json).expect("an Imu");
    publisher.publish_value(&value).expect("published");
    let message = subscriber.take_timeout(LONG).expect("takes").expect("a message");
    let imu = message.read().expect("an Imu");
    assert_eq!((&*imu.header.frame_id, imu.header.seq), ("body", 0));
    assert_eq!(imu.linear_acceleration.z, 9.81);
}
