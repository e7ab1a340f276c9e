//! Services, both ways.

use super::*;

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
