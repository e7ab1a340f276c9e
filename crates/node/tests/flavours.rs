//! Topics with both ROS versions: types that differ only by the version are converted, and nothing else
//! connects.
#![allow(missing_docs)]

use ropewalk::{Flavour, Node, Publisher, Registry, Schema, Subscriber, SubscriberOptions};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

fn node(folder: &tempfile::TempDir) -> Node {
    Node::with_config("node", ropewalk::BusConfig::new(folder.path())).unwrap()
}

fn schema(flavour: Flavour, name: &str) -> Schema {
    Registry::new(flavour).schema(name).unwrap()
}

/// Whether an address is in shared memory.
fn is_shared(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let number = |text| usize::from_str_radix(text, 16).unwrap();
    let mut lines = maps.lines().filter_map(|l| l.split_once(' '));
    let around = lines.find(|(range, _)| {
        let (start, end) = range.split_once('-').unwrap();
        (number(start)..number(end)).contains(&address)
    });
    around.unwrap().1.split(' ').next().unwrap().ends_with('s')
}

fn connected(publisher: &Publisher, n: usize) {
    assert!(publisher.wait_for_subscribers(n, LONG));
}

fn yaml(subscriber: &Subscriber) -> String {
    let message = subscriber.take_timeout(LONG).unwrap().expect("a message");
    format!("{:?}", message.value().unwrap())
}

#[test]
fn an_image_of_either_ros_reaches_subscribers_of_both_and_its_data_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    for (here, there) in [(Flavour::Ros1, Flavour::Ros2), (Flavour::Ros2, Flavour::Ros1)] {
        let topic = format!("/image_{here}");
        let (own, other) = (
            schema(here, "sensor_msgs/Image"),
            schema(there, "sensor_msgs/Image"),
        );
        assert_ne!(own.md5(), other.md5());
        let publisher = node.dynamic_publisher(&topic, &own).unwrap();
        let same = node.dynamic_subscriber(&topic, &own).unwrap();
        let subscriber = node.dynamic_subscriber(&topic, &other).unwrap();
        connected(&publisher, 2);
        let text = "{header: {stamp: {TIME}, frame_id: cam}, height: 1, width: 1000, encoding: mono8, step: 1000, data: [DATA]}";
        let text = text.replace("DATA", &vec!["7"; 1000].join(", "));
        let stamp = |flavour| match flavour {
            Flavour::Ros1 => "secs: 5, nsecs: 6",
            Flavour::Ros2 => "sec: 5, nanosec: 6",
        };
        let value = own.value_from_yaml(&text.replace("TIME", stamp(here))).unwrap();
        publisher.publish_value(&value).unwrap();
        let message = subscriber.take_timeout(LONG).unwrap().expect("a message");
        let expected = other
            .value_from_yaml(&text.replace("TIME", stamp(there)))
            .unwrap();
        assert_eq!(message.value().unwrap(), expected);
        // Both serializations have the subscriber's type.
        assert_eq!(other.decode_ros1(&message.ros1().unwrap()).unwrap(), expected);
        assert_eq!(other.decode_cdr(&message.cdr().unwrap()).unwrap(), expected);
        let original = same.take_timeout(LONG).unwrap().expect("a message");
        assert_eq!(original.part(0).bytes(), message.part(0).bytes());
        assert!(is_shared(message.part(0).bytes().as_ptr() as usize));
        assert!(
            !is_shared(message.control().as_ptr() as usize),
            "the control part is converted"
        );
    }
}

#[test]
fn names_that_are_upper_case_in_ros_1_meet_and_a_path_loses_every_seq() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    for name in [
        "sensor_msgs/CameraInfo",
        "nav_msgs/Path",
        "std_msgs/Header",
        "std_msgs/Int8",
    ] {
        let topic = format!("/{}", name.replace('/', "_"));
        let (one, two) = (schema(Flavour::Ros1, name), schema(Flavour::Ros2, name));
        let publisher = node.dynamic_publisher(&topic, &one).unwrap();
        let subscriber = node.dynamic_subscriber(&topic, &two).unwrap();
        connected(&publisher, 1);
        publisher.publish_value(&one.default_value()).unwrap();
        assert_eq!(yaml(&subscriber), format!("{:?}", two.default_value()), "{name}");
    }
}

#[test]
fn other_differences_are_refused_with_both_named() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let mut registry = Registry::new(Flavour::Ros2);
    registry
        .add_message("sensor_msgs/Image", "std_msgs/Header header\nuint8[] bytes")
        .unwrap();
    let other = registry.schema("sensor_msgs/Image").unwrap();
    let publisher = node
        .dynamic_publisher("/image", &schema(Flavour::Ros1, "sensor_msgs/Image"))
        .unwrap();
    let subscriber = node.dynamic_subscriber("/image", &other).unwrap();
    let reported = || {
        let mut all = publisher.bus().refusals();
        all.extend(subscriber.bus().refusals());
        all.iter().map(|r| r.reason.clone()).collect::<Vec<_>>()
    };
    while reported().len() < 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    for reason in reported() {
        assert!(reason.contains("ROS 1") && reason.contains("ROS 2"), "{reason}");
    }
}

#[test]
fn subscribers_without_conversion_get_only_their_own_ros() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let (one, two) = (
        schema(Flavour::Ros1, "std_msgs/String"),
        schema(Flavour::Ros2, "std_msgs/String"),
    );
    assert_eq!(one.md5(), two.md5(), "they differ by the ROS alone");
    let publishers = [&one, &two].map(|s| node.dynamic_publisher("/chatter", s).unwrap());
    let own = SubscriberOptions::default().with_conversion(false);
    let subscriber = node.dynamic_subscriber_with("/chatter", &two, own).unwrap();
    let all = node.dynamic_subscriber("/chatter", &two).unwrap();
    connected(&publishers[0], 1);
    connected(&publishers[1], 2);
    publishers[0].publish_ros1(b"\x03\0\0\0one").unwrap();
    publishers[1].publish_ros1(b"\x03\0\0\0two").unwrap();
    assert!(yaml(&subscriber).contains("two"));
    let both = [yaml(&all), yaml(&all)].concat();
    assert!(both.contains("one") && both.contains("two"), "{both}");
    assert!(subscriber.take().unwrap().is_none());
    // Each type is listed with its ROS version, and read as what it is.
    let topics = node.topics().unwrap();
    let mut flavours: Vec<_> = topics
        .iter()
        .map(|t| node.schema_of(t).unwrap().flavour())
        .collect();
    flavours.sort();
    assert_eq!(flavours, [Flavour::Ros1, Flavour::Ros2]);
}

#[test]
fn a_service_that_both_ros_have_is_called_across_them() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let service = |flavour| Registry::new(flavour).service("std_srvs/SetBool").unwrap();
    let (one, two) = (service(Flavour::Ros1), service(Flavour::Ros2));
    let answer = two.response().value_from_yaml("message: done").unwrap();
    let _server = node
        .dynamic_service("/switch", &two, move |_| Ok(answer.clone()))
        .unwrap();
    let client = node.dynamic_client("/switch", &one).unwrap();
    assert!(client.wait_for_server(LONG).unwrap());
    let reply = client.call_value(&one.request().default_value(), LONG).unwrap();
    assert!(format!("{reply:?}").contains("done"));
}

#[test]
fn a_control_part_that_is_none_is_an_error_and_the_next_message_comes() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let (one, two) = (
        schema(Flavour::Ros1, "std_msgs/Header"),
        schema(Flavour::Ros2, "std_msgs/Header"),
    );
    let publisher = node.dynamic_publisher("/header", &one).unwrap();
    let subscriber = node.dynamic_subscriber("/header", &two).unwrap();
    connected(&publisher, 1);
    let mut loan = publisher.bus().loan(6, &[]).unwrap();
    loan.control_mut().fill(0xFF);
    publisher.bus().publish(loan, bus::Stamp::default()).unwrap();
    publisher.publish_value(&one.default_value()).unwrap();
    let message = subscriber.take_timeout(LONG).unwrap().expect("a message");
    assert!(message.value().is_err());
    assert_eq!(yaml(&subscriber), format!("{:?}", two.default_value()));
}

#[test]
fn types_of_ros_2_that_differ_in_constants_alone_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let defined = |text: &str| {
        let mut registry = Registry::new(Flavour::Ros2);
        registry.add_message("test/Mode", text).unwrap();
        registry.schema("test/Mode").unwrap()
    };
    let old = defined("uint8 IDLE=0\nchar mode 3\nstring<=5 text");
    let new = defined("uint8 IDLE=0\nuint8 BUSY=1\nuint8 mode\nstring<=5 text");
    assert_ne!(old.md5(), new.md5());
    for (topic, of_publisher, of_subscriber) in [("/a", &old, &new), ("/b", &new, &old)] {
        let publisher = node.dynamic_publisher(topic, of_publisher).unwrap();
        let options = SubscriberOptions::default().with_conversion(false);
        let subscriber = node
            .dynamic_subscriber_with(topic, of_subscriber, options)
            .unwrap();
        connected(&publisher, 1);
        let value = of_publisher.value_from_yaml("{mode: 7, text: five}").unwrap();
        publisher.publish_value(&value).unwrap();
        assert_eq!(
            yaml(&subscriber),
            format!(
                "{:?}",
                of_subscriber.value_from_yaml("{mode: 7, text: five}").unwrap()
            )
        );
    }
}

/// The bus's type names lack the folder; the hash identifies it.
#[test]
fn types_of_an_action_are_found_with_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let mut registry = ropewalk::Registry::new(Flavour::Ros2);
    let text = "int32 order\n---\nint32[] sequence\n---\nint32[] sequence\n";
    registry.add_action("test_msgs/Fibonacci", text).unwrap();
    let feedback = registry
        .schema("test_msgs/action/Fibonacci_FeedbackMessage")
        .unwrap();
    let _publisher = node.dynamic_publisher("/feedback", &feedback).unwrap();
    let found = node.discover("/feedback", Duration::from_secs(30)).unwrap();
    assert_eq!(
        (found.ros2_name(), found.type_hash()),
        (feedback.ros2_name(), feedback.type_hash())
    );
    let service = registry.service("test_msgs/action/Fibonacci_SendGoal").unwrap();
    let _server = node.dynamic_server("/send_goal", &service).unwrap();
    let found = node
        .discover_service("/send_goal", Duration::from_secs(30))
        .unwrap();
    assert_eq!(found.type_hash(), service.type_hash());
    assert_eq!(
        found.request().ros2_name(),
        "test_msgs/action/Fibonacci_SendGoal_Request"
    );
}
