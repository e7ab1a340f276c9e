//! Several bridges of one master, one bus, or one name.

use super::*;

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
