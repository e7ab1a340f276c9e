use super::fake::{FakeMaster, FakeNode, Graph, Table};
use super::*;
use crate::config::{ServiceRule, TopicRule};
use crate::header::{Header, MAX_HEADER};
use crate::net::Timed;
use bus::Stamp;
use schema::Schema;
use schema::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A watchdog: whatever takes longer hangs.
const LONG: Duration = Duration::from_secs(60);
const HELLO: &[u8] = b"\x05\0\0\0hello";

fn string() -> Schema {
    Registry::new(Flavour::Ros1).schema("std_msgs/String").unwrap()
}

/// A bus with a bridge on it, which end with the test.
struct Robot {
    handle: Handle,
    thread: Option<JoinHandle<Result<(), BridgeError>>>,
    node: Node,
    folder: Arc<tempfile::TempDir>,
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.handle.stop();
        let ended = self.thread.take().map(|t| t.join().unwrap());
        assert!(
            std::thread::panicking() || matches!(ended, Some(Ok(()) | Err(BridgeError::Dismissed { .. })))
        );
    }
}

fn robot(master: &FakeMaster, config: Config) -> Robot {
    robot_on(master, config, Arc::new(tempfile::tempdir().unwrap()))
}

fn robot_on(master: &FakeMaster, mut config: Config, folder: Arc<tempfile::TempDir>) -> Robot {
    config.master = Some(master.uri());
    config.listen = Some([127, 0, 0, 1].into());
    let bus = BusConfig::new(folder.path());
    let bridge = Bridge::open(config, bus.clone()).unwrap();
    let handle = bridge.handle();
    let thread = Some(std::thread::spawn(move || bridge.run()));
    Robot {
        handle,
        thread,
        node: Node::with_config("test", bus).unwrap(),
        folder,
    }
}

fn topic(name: &str, direction: Direction) -> Config {
    Config::default().with_topic(TopicRule::new(name, direction))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Greets as a publisher of strings, then sends `hello` every 50 ms.
fn talk(accepted: &crate::listener::Accepted, fields: &[(&str, &str)]) {
    let mut stream = &*accepted.stream;
    if Header::read(&mut Timed::new(stream, LONG), MAX_HEADER).is_err() {
        return;
    }
    let schema = string();
    let (sum, definition) = (schema.md5_hex(), schema.definition());
    let mut all = vec![
        ("callerid", "/talker"),
        ("type", "std_msgs/String"),
        ("md5sum", &sum),
        ("message_definition", &definition),
    ];
    all.retain(|(k, _)| !fields.iter().any(|(f, _)| f == k));
    all.extend(fields);
    let mut sent = Header::new(&all).write(&mut stream);
    while sent.is_ok() {
        sent = stream.write_all(&[&(HELLO.len() as u32).to_le_bytes(), HELLO].concat());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Subscribes at the bridge like a node, and returns the header of the answer.
fn ask(robot: &Robot, fields: &[(&str, &str)]) -> (TcpStream, Header) {
    let stream = robot.handle.hub.tcpros.connect(LONG).unwrap();
    let mut timed = Timed::new(&stream, LONG);
    Header::new(fields).write(&mut timed).unwrap();
    let header = Header::read(&mut timed, MAX_HEADER).unwrap();
    (stream, header)
}

fn listen(robot: &Robot, topic: &str) -> TcpStream {
    let published = |t: &str| robot.handle.status().to_ros.contains_key(t);
    until("the topic is published in ROS", || published(topic));
    let (stream, header) = ask(
        robot,
        &[
            ("callerid", "/ear"),
            ("topic", topic),
            ("type", "*"),
            ("md5sum", "*"),
        ],
    );
    assert_eq!(header.get("error"), None);
    stream
}

fn next(stream: &TcpStream, patience: Duration) -> Option<Vec<u8>> {
    let mut timed = Timed::new(stream, patience);
    let mut len = [0; 4];
    timed.read_exact(&mut len).ok()?;
    let mut bytes = vec![0; u32::from_le_bytes(len) as usize];
    timed.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

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

#[test]
fn listeners_of_another_type_are_told_what_differs() {
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
fn a_master_that_was_restarted_is_told_everything_again() {
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
fn two_bridges_of_one_master_and_one_bus_make_no_circle() {
    let master = FakeMaster::start();
    let talker = FakeNode::start("/talker", |a| {
        // One message, then silence.
        let mut stream = &*a.stream;
        let Ok(_) = Header::read(&mut Timed::new(stream, LONG), MAX_HEADER) else {
            return;
        };
        let schema = string();
        let header = Header::new(&[
            ("callerid", "/talker"),
            ("type", "std_msgs/String"),
            ("md5sum", &schema.md5_hex()),
            ("latching", "1"),
        ]);
        header.write(&mut stream).unwrap();
        stream
            .write_all(&[&(HELLO.len() as u32).to_le_bytes(), HELLO].concat())
            .unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    master.add_publisher("/chatter", "std_msgs/String", &talker);
    let named = |name: &str| Config {
        node: Some(name.into()),
        ..topic("/chatter", Direction::Both)
    };
    let first = robot(&master, named("/first"));
    let second = robot_on(&master, named("/second"), first.folder.clone());
    let native = first.node.dynamic_publisher("/chatter", &string()).unwrap();
    let subscriber = first.node.dynamic_subscriber("/chatter", &string()).unwrap();
    let ears = [listen(&first, "/chatter"), listen(&second, "/chatter")];
    // Each bridge brings the talker's message once, and nothing returns.
    let mut came = 0;
    let quiet = Instant::now() + Duration::from_secs(4);
    while Instant::now() < quiet {
        let Some(message) = subscriber.take_timeout(Duration::from_millis(100)).unwrap() else {
            continue;
        };
        came += 1;
        // The message carries its topic's properties: its node, and that its last message is kept.
        let offer = message.bus().offer();
        assert_eq!((offer.node.as_str(), offer.history), ("/talker", 1));
    }
    assert_eq!(came, 2);
    for ear in &ears {
        assert_eq!(
            next(ear, Duration::from_millis(500)),
            None,
            "messages from ROS do not return"
        );
    }
    // Each bridge publishes in ROS, once, what the bus's own node publishes.
    native.publish_ros1(b"\x02\0\0\0hi").unwrap();
    for ear in &ears {
        assert_eq!(next(ear, LONG).unwrap(), b"\x02\0\0\0hi");
        assert_eq!(next(ear, Duration::from_millis(500)), None);
    }
}

#[test]
fn two_robots_whose_buses_are_joined_echo_nothing() {
    let masters = [FakeMaster::start(), FakeMaster::start()];
    let robots = [0, 1].map(|i: usize| robot(&masters[i], topic("/chatter", Direction::Both)));
    let stop = Arc::<AtomicBool>::default();
    // Like a link: republishes with the original origin, and ignores its own messages.
    let ends = [0, 1].map(|i: usize| {
        let publisher = robots[i].node.dynamic_publisher("/chatter", &string()).unwrap();
        (
            publisher,
            robots[i].node.dynamic_subscriber("/chatter", &string()).unwrap(),
        )
    });
    let carry = |from: &ropewalk::Subscriber, own: u64, to: &ropewalk::Publisher| {
        let Ok(Some(message)) = from.bus().take_timeout(Duration::from_millis(10)) else {
            return;
        };
        if message.publisher() == own {
            return;
        }
        let mut loan = to.loan(message.control().len(), &[]).unwrap();
        loan.control_mut().copy_from_slice(message.control());
        let stamp = Stamp {
            time: None,
            origin: Some(message.origin()),
        };
        to.bus().publish(loan, stamp).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                carry(&ends[0].1, ends[0].0.bus().id(), &ends[1].0);
                carry(&ends[1].1, ends[1].0.bus().id(), &ends[0].0);
            }
        });
        let ears = [listen(&robots[0], "/chatter"), listen(&robots[1], "/chatter")];
        let (said, say) = mpsc::channel::<()>();
        let say = Mutex::new(say);
        let talker = FakeNode::start("/talker", move |a| {
            let mut stream = &*a.stream;
            let Ok(_) = Header::read(&mut Timed::new(stream, LONG), MAX_HEADER) else {
                return;
            };
            let schema = string();
            let header = Header::new(&[
                ("callerid", "/talker"),
                ("type", "std_msgs/String"),
                ("md5sum", &schema.md5_hex()),
            ]);
            header.write(&mut stream).unwrap();
            let _ = lock(&say).recv_timeout(LONG);
            stream
                .write_all(&[&(HELLO.len() as u32).to_le_bytes(), HELLO].concat())
                .unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        masters[0].add_publisher("/chatter", "std_msgs/String", &talker);
        until("the talker's message arrives", || {
            robots[0]
                .handle
                .status()
                .to_bus
                .get("/chatter")
                .is_some_and(|f| f.connected == 1)
        });
        // Meanwhile the subscribers of its publisher on the bus connect.
        std::thread::sleep(Duration::from_secs(1));
        said.send(()).unwrap();
        let heard = next(&ears[1], LONG);
        let (again, echo) = (
            next(&ears[1], Duration::from_secs(1)),
            next(&ears[0], Duration::from_secs(1)),
        );
        stop.store(true, Ordering::Relaxed);
        assert_eq!((heard.as_deref(), again, echo), (Some(HELLO), None, None));
    });
}

#[test]
fn services_cross_both_ways_and_their_failures_too() {
    let master = FakeMaster::start();
    let config = Config::default()
        .with_service(ServiceRule::new("/ros/set", Direction::ToBus))
        .with_service(ServiceRule::new("/bus/set", Direction::ToRos));
    let robot = robot(&master, config);
    let kind = Registry::new(Flavour::Ros1).service("std_srvs/SetBool").unwrap();
    let sum = kind.md5_hex();
    // In ROS: answers true with a response, false with an error.
    let server = FakeNode::start("/server", move |a| {
        let mut stream = Timed::new(&a.stream, LONG);
        let Ok(asked) = Header::read(&mut stream, MAX_HEADER) else {
            return;
        };
        assert_eq!(asked.get("service"), Some("/ros/set"));
        let header = Header::new(&[
            ("callerid", "/server"),
            ("type", "std_srvs/SetBool"),
            ("md5sum", &sum),
        ]);
        header.write(&mut stream).unwrap();
        let mut request = [0; 5];
        if stream.read_exact(&mut request).is_err() {
            return;
        }
        let answer: &[u8] = match request {
            [1, 0, 0, 0, 1] => b"\x01\x07\0\0\0\x01\x02\0\0\0ok",
            _ => b"\x00\x06\0\0\0broken",
        };
        stream.write_all(answer).unwrap();
    });
    lock(&master.graph).services.insert(
        "/ros/set".into(),
        vec![(
            "/server".into(),
            format!("rosrpc://127.0.0.1:{}", server.tcpros.port()),
        )],
    );
    let client = robot.node.dynamic_client("/ros/set", &kind).unwrap();
    assert!(client.wait_for_server(LONG).unwrap());
    assert_eq!(
        client.call_ros1(&[1], LONG).unwrap().ros1().unwrap(),
        b"\x01\x02\0\0\0ok"
    );
    let error = client.call_ros1(&[0], LONG).unwrap_err().to_string();
    assert!(error.contains("broken"), "{error}");

    let answer = kind
        .response()
        .value_from_yaml("{success: true, message: done}")
        .unwrap();
    let _server = robot.node.dynamic_service("/bus/set", &kind, move |request| {
        match request.value().unwrap().get("data").unwrap() {
            Value::Bool(true) => Ok(answer.clone()),
            _ => Err("not so".into()),
        }
    });
    until("it is served in ROS", || {
        lock(&master.graph).services.contains_key("/bus/set")
    });
    let fields = [
        ("callerid", "/caller"),
        ("service", "/bus/set"),
        ("md5sum", "*"),
        ("persistent", "1"),
    ];
    let (stream, header) = ask(&robot, &fields);
    assert_eq!(header.get("type"), Some("std_srvs/SetBool"));
    let mut stream = Timed::new(&stream, LONG);
    stream.write_all(&[1, 0, 0, 0, 1]).unwrap();
    let mut answer = [0; 14];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"\x01\x09\0\0\0\x01\x04\0\0\0done");
    stream.write_all(&[1, 0, 0, 0, 0]).unwrap();
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let mut text = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
    stream.read_exact(&mut text).unwrap();
    assert!(head[0] == 0 && String::from_utf8_lossy(&text).contains("not so"));
    // A length beyond all memory is refused with a reason.
    stream.write_all(&[0xff; 4]).unwrap();
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[0], 0);
    let (_, header) = ask(
        &robot,
        &[
            ("callerid", "/caller"),
            ("service", "/bus/set"),
            ("md5sum", "0123"),
        ],
    );
    assert!(header.get("error").unwrap().contains("std_srvs/SetBool.srv"));
}

#[test]
fn a_second_bridge_of_one_name_ends_with_what_to_do() {
    let master = FakeMaster::start();
    let mut robot = robot(&master, topic("/chatter", Direction::ToBus));
    let api = HostPort::parse(&robot.handle.hub.master.api, "http").unwrap();
    crate::master::call(
        &api,
        "shutdown",
        &["/master".into(), "new node registered with same name".into()],
    )
    .unwrap();
    let error = robot
        .thread
        .take()
        .unwrap()
        .join()
        .unwrap()
        .unwrap_err()
        .to_string();
    assert!(error.contains("same name") && error.contains("`node`"), "{error}");
    robot.thread = Some(std::thread::spawn(|| Ok(())));
}
