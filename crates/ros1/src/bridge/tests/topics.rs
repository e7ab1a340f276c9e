//! Listeners and topics of one bridge, and a master that restarts.

use super::*;

#[test]
fn listeners_of_another_type_learn_what_differs() {
    let master = FakeMaster::start();
    let robot = robot(&master, topic("/chatter", Direction::ToRos));
    let _publisher = robot.node.dynamic_publisher("/chatter", &string()).unwrap();
    let stream = listen(&robot, "/chatter");
    let sum = "0123456789abcdef0123456789abcdef";
    let (_, header) = ask(
        &robot,
        &[
            ("callerid", "/deaf"),
            ("topic", "/chatter"),
            ("type", "std_msgs/String"),
            ("md5sum", sum),
        ],
    );
    let error = header.get("error").unwrap();
    assert!(
        [
            "/deaf",
            sum,
            "992ce8a1687cec8c8bd883ec73ca41d1",
            "std_msgs/String.msg"
        ]
        .iter()
        .all(|w| error.contains(w)),
        "{error}"
    );
    until("it is reported here, too", || {
        robot.handle.status().problems.values().any(|p| p == error)
    });
    let (_, header) = ask(
        &robot,
        &[
            ("callerid", "/deaf"),
            ("topic", "/chatter"),
            ("type", "std_msgs/Int32"),
            ("md5sum", "*"),
        ],
    );
    assert!(header.get("error").unwrap().contains("it is a std_msgs/String"));
    let (_, header) = ask(
        &robot,
        &[
            ("callerid", "/deaf"),
            ("topic", "/other"),
            ("type", "*"),
            ("md5sum", "*"),
        ],
    );
    assert!(header.get("error").unwrap().contains("does not publish /other"));
    drop(stream);
}

#[test]
fn a_latched_topic_reaches_listeners_that_come_later() {
    let master = FakeMaster::start();
    let robot = robot(&master, topic("/map", Direction::ToRos));
    let options = ropewalk::PublisherOptions::default().with_history(1);
    let publishers: Vec<_> = (0..2)
        .map(|_| {
            robot
                .node
                .dynamic_publisher_with("/map", &string(), options.clone())
                .unwrap()
        })
        .collect();
    for text in [&b"\x01\0\0\0a"[..], b"\x01\0\0\0b"] {
        for publisher in &publishers {
            publisher.publish_ros1(text).unwrap();
        }
    }
    let stream = listen(&robot, "/map");
    // The last message of each publisher, and nothing else.
    let got = [next(&stream, LONG).unwrap(), next(&stream, LONG).unwrap()];
    assert_eq!(got, [b"\x01\0\0\0b", b"\x01\0\0\0b"]);
    let (_, header) = ask(
        &robot,
        &[
            ("callerid", "/ear"),
            ("topic", "/map"),
            ("type", "*"),
            ("md5sum", "*"),
        ],
    );
    assert_eq!(header.get("latching"), Some("1"));
}

#[test]
fn a_topic_of_ros_2_reaches_listeners_of_ros_1_in_their_type() {
    let master = FakeMaster::start();
    let robot = robot(&master, topic("/image", Direction::ToRos));
    let image = |flavour| Registry::new(flavour).schema("sensor_msgs/Image").unwrap();
    let (one, two) = (image(Flavour::Ros1), image(Flavour::Ros2));
    let options = ropewalk::PublisherOptions::default().with_history(1);
    let publisher = robot
        .node
        .dynamic_publisher_with("/image", &two, options)
        .unwrap();
    let data = vec!["7"; 1000].join(", ");
    let text = format!("{{header: {{stamp: {{sec: 5}}, frame_id: cam}}, height: 1, data: [{data}]}}");
    publisher
        .publish_value(&two.value_from_yaml(&text).unwrap())
        .unwrap();
    let stream = listen(&robot, "/image");
    let bytes = next(&stream, LONG).unwrap();
    let expected = one.value_from_yaml(&text.replace("sec:", "secs:")).unwrap();
    assert_eq!(one.decode_ros1(&bytes).unwrap(), expected);
    let (_, header) = ask(
        &robot,
        &[
            ("callerid", "/ear"),
            ("topic", "/image"),
            ("type", "*"),
            ("md5sum", "*"),
        ],
    );
    assert_eq!(header.get("md5sum"), Some(&*one.md5_hex()));
}

#[test]
fn everything_is_registered_again_with_a_restarted_master() {
    let master = FakeMaster::start();
    let config = topic("/chatter", Direction::ToBus).with_topic(TopicRule::new("/cmd", Direction::ToRos));
    let robot = robot(&master, config);
    let _publisher = robot.node.dynamic_publisher("/cmd", &string()).unwrap();
    let talker = FakeNode::start("/talker", |a| talk(&a, &[]));
    master.add_publisher("/chatter", "std_msgs/String", &talker);
    let subscriber = robot.node.dynamic_subscriber("/chatter", &string()).unwrap();
    assert!(subscriber.take_timeout(LONG).unwrap().is_some());
    let known = |table: fn(&Graph) -> &Table, topic: &str| {
        let graph = lock(&master.graph);
        table(&graph)
            .get(topic)
            .is_some_and(|all| all.iter().any(|(n, _)| n == "/ropewalk"))
    };
    until("both are registered", || {
        known(|g| &g.subscribers, "/chatter") && known(|g| &g.publishers, "/cmd")
    });
    master.forget_all();
    // Data keeps flowing while the master knows nothing.
    while subscriber.take().unwrap().is_some() {}
    assert!(subscriber.take_timeout(LONG).unwrap().is_some());
    until("the publication is registered again", || {
        known(|g| &g.publishers, "/cmd")
    });
    let late = FakeNode::start("/late", |a| talk(&a, &[("callerid", "/late")]));
    master.add_publisher("/chatter", "std_msgs/String", &late);
    until("the subscription is registered again", || {
        known(|g| &g.subscribers, "/chatter")
    });
    until("the new publisher's messages arrive", || {
        robot.handle.status().to_bus["/chatter"].connected == 2
    });
    drop(master);
    until("an unreachable master is reported", || {
        !robot.handle.status().master_reached
    });
    assert!(
        robot
            .handle
            .status()
            .problems
            .values()
            .any(|p| p.contains("retrying"))
    );
    while subscriber.take().unwrap().is_some() {}
    assert!(subscriber.take_timeout(LONG).unwrap().is_some());
}

#[test]
fn publishers_are_found_although_the_master_s_answers_and_calls_get_lost() {
    let master = FakeMaster::start();
    lock(&master.graph).lost = 2;
    lock(&master.graph).silent = true;
    let robot = robot(&master, topic("/chatter", Direction::ToBus));
    let [first, second] = ["/one", "/two"].map(|name| FakeNode::start(name, |accepted| talk(&accepted, &[])));
    let connected = || robot.handle.status().to_bus.get("/chatter").map(|f| f.connected);
    master.add_publisher("/chatter", "std_msgs/String", &first);
    until("it hears the first", || connected() == Some(1));
    master.add_publisher("/chatter", "std_msgs/String", &second);
    until("it hears the second", || connected() == Some(2));
}
