//! Silent, broken and hostile peers.

use super::*;

#[test]
fn silent_hostile_and_broken_publishers_hurt_only_themselves() {
    let master = FakeMaster::start();
    let robot = robot(&master, topic("/chatter", Direction::ToBus));
    let silent = FakeNode::start("/silent", |a| drop((&*a.stream).read_to_end(&mut Vec::new())));
    let hostile = FakeNode::start("/hostile", |a| {
        let _ = Header::read(&mut Timed::new(&a.stream, LONG), MAX_HEADER);
        let _ = (&*a.stream).write_all(&[0xff; 64]);
        let _ = (&*a.stream).read_to_end(&mut Vec::new());
    });
    let long = FakeNode::start("/long", |a| {
        let _ = Header::read(&mut Timed::new(&a.stream, LONG), MAX_HEADER);
        let schema = string();
        let header = Header::new(&[
            ("callerid", "/long"),
            ("type", "std_msgs/String"),
            ("md5sum", &schema.md5_hex()),
        ]);
        let _ = header.write(&mut &*a.stream);
        let _ = (&*a.stream).write_all(&[0xff; 64]);
        let _ = (&*a.stream).read_to_end(&mut Vec::new());
    });
    let other = FakeNode::start("/other", |a| {
        talk(
            &a,
            &[
                ("callerid", "/other"),
                ("md5sum", "0123456789abcdef0123456789abcdef"),
            ],
        )
    });
    let wrong = FakeNode::start("/wrong", |a| {
        talk(
            &a,
            &[
                ("type", "std_msgs/Int32"),
                ("md5sum", "da5909fbe378aeaf85e547e830cc1bb7"),
                ("message_definition", "int32 data\n"),
            ],
        )
    });
    let good = FakeNode::start("/good", |a| talk(&a, &[]));
    for node in [&silent, &hostile, &long, &other, &wrong, &good] {
        master.add_publisher("/chatter", "std_msgs/String", node);
    }
    let subscriber = robot.node.dynamic_subscriber("/chatter", &string()).unwrap();
    let message = subscriber
        .take_timeout(LONG)
        .unwrap()
        .expect("the good one arrives");
    assert_eq!(message.ros1().unwrap(), HELLO);
    for words in [
        vec!["4294967295 bytes", "not TCPROS"],
        vec!["/long sends a message of 4294967295 bytes", "max_message"],
        vec![
            "/other",
            "0123456789abcdef0123456789abcdef",
            "992ce8a1687cec8c8bd883ec73ca41d1",
            "same std_msgs/String.msg",
        ],
        vec!["silent"],
        // A message longer than an Int32.
        vec!["/talker", "not a std_msgs/Int32"],
    ] {
        until(&format!("{words:?} is reported"), || {
            robot
                .handle
                .status()
                .problems
                .values()
                .any(|p| words.iter().all(|w| p.contains(w)))
        });
    }
    assert!(subscriber.take_timeout(LONG).unwrap().is_some(), "and goes on");
}

#[test]
fn silent_callers_and_garbage_leave_the_nodes_own_methods_working() {
    let master = FakeMaster::start();
    let robot = robot(&master, topic("/chatter", Direction::ToRos));
    let api = HostPort::parse(&robot.handle.hub.master.api, "http").unwrap();
    let mut held = Vec::new();
    for garbage in [
        &b""[..],
        b"\0\0\0\0",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n<<<<<",
        b"POST / HTTP/1.1\r\nContent-Length: 31\r\n\r\n<methodCall><methodName></params",
    ] {
        for address in [&api, &robot.handle.hub.tcpros] {
            let mut stream = address.connect(LONG).unwrap();
            stream.write_all(garbage).unwrap();
            held.push(stream);
        }
    }
    for _ in 0..200 {
        held.push(api.connect(LONG).unwrap());
        held.push(robot.handle.hub.tcpros.connect(LONG).unwrap());
    }
    let call = |method, params: &[crate::xmlrpc::Value]| crate::master::call(&api, method, params);
    assert_eq!(
        call("getPid", &["/x".into()]).unwrap().as_int(),
        Some(std::process::id().into())
    );
    // Malformed calls are answered.
    assert!(
        call("publisherUpdate", &["/x".into(), 7.into()])
            .unwrap_err()
            .is_refusal()
    );
    assert!(call("requestTopic", &[]).unwrap_err().is_refusal());
    assert!(
        call("noSuchMethod", &[])
            .unwrap_err()
            .to_string()
            .contains("noSuchMethod")
    );
    call(
        "publisherUpdate",
        &[
            "/x".into(),
            "/y".into(),
            ["nonsense".into(), "http://\u{1}:x".into()].into(),
        ],
    )
    .unwrap();
    // And a subscriber gets its topic.
    let publisher = robot.node.dynamic_publisher("/chatter", &string()).unwrap();
    let stream = listen(&robot, "/chatter");
    until("it arrives", || {
        publisher.publish_ros1(HELLO).unwrap();
        next(&stream, Duration::from_millis(200)).is_some_and(|m| m == HELLO)
    });
}
