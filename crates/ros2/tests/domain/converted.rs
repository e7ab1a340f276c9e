//! Messages of ROS 1 on the bus and of ROS 2 in the domain.

use crate::kit::{Domain, LONG, Peer, Robot, cdr, kept, reliable, schema};
use ros2::{Config, Direction, TopicRule};
use schema::{Flavour, Registry};

#[test]
fn a_message_of_ros_1_comes_into_the_domain_as_one_of_ros_2() {
    let domain = Domain::new();
    let robot = Robot::new(
        &domain,
        Config::default().with_topic(TopicRule::new("/imu", Direction::ToRos)),
    );
    let peer = Peer::new(&domain);
    let ros1 = Registry::new(Flavour::Ros1)
        .schema("sensor_msgs/Imu")
        .expect("a definition");
    let ros2 = schema("sensor_msgs/Imu");
    let publisher = robot.node.dynamic_publisher("/imu", &ros1).expect("a publisher");
    let reader = peer.subscriber("rt/imu", &ros2, reliable());
    peer.connected(reader, 1);
    assert!(publisher.wait_for_subscribers(1, LONG));
    let yaml = "header: {seq: 42, stamp: {secs: 5, nsecs: 6}, frame_id: body}\norientation: {w: 1.0}";
    publisher
        .publish_value(&ros1.value_from_yaml(yaml).expect("a value"))
        .expect("a message");
    let sample = peer.next(reader);
    let expected = cdr(
        &ros2,
        "header: {stamp: {sec: 5, nanosec: 6}, frame_id: body}\norientation: {w: 1.0}",
    );
    assert!(sample.payload.starts_with(&expected), "{:?}", sample.payload);
}

#[test]
fn a_message_of_ros_2_comes_to_a_subscriber_of_ros_1() {
    let domain = Domain::new();
    let robot = Robot::new(
        &domain,
        Config::default().with_topic(TopicRule::new("/imu", Direction::ToBus)),
    );
    let peer = Peer::new(&domain);
    let ros1 = Registry::new(Flavour::Ros1)
        .schema("sensor_msgs/Imu")
        .expect("a definition");
    let ros2 = schema("sensor_msgs/Imu");
    let writer = peer.publisher("rt/imu", &ros2, kept());
    let yaml = "header: {stamp: {sec: 5, nanosec: 6}, frame_id: body}\norientation: {w: 1.0}";
    peer.write(writer, cdr(&ros2, yaml));
    let subscriber = robot
        .node
        .dynamic_subscriber("/imu", &ros1)
        .expect("a subscriber");
    let message = subscriber.take_timeout(LONG).expect("a bus").expect("a message");
    let yaml = "header: {seq: 0, stamp: {secs: 5, nsecs: 6}, frame_id: body}\norientation: {w: 1.0}";
    let expected = ros1.value_from_yaml(yaml).expect("a value");
    assert_eq!(
        message.ros1().expect("bytes"),
        ros1.encode_ros1(&expected).expect("bytes")
    );
}
