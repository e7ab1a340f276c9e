use super::*;
use crate::discovery::Offers;

const GOOD: &str = "
host: robot
radio: {bind: '127.0.0.1:7400', rate: 6Mbit/s}
peers:
  - {name: base, address: '127.0.0.1:7401'}
topics:
  - {name: /scan, priority: 100, direction: out, depth: 2, deadline: 100ms}
  - {name: /cmd_vel, direction: both, rate_limit: 10Hz}
";

fn refusal(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    Config::parse(&GOOD.replacen(from, to, 1))
        .expect_err(to)
        .to_string()
}

#[test]
fn reads_a_configuration_with_its_defaults() {
    let c = Config::parse(GOOD).expect("is good");
    assert_eq!(
        (c.radio.rate, c.radio.hops, c.radio.order),
        (Some(Rate::Set(6_000_000)), 1, Order::Priority)
    );
    assert_eq!(c.topics[0].deadline, Some(Duration::from_millis(100)));
    assert_eq!(
        (c.topics[1].priority, c.topics[1].depth(), c.topics[1].rate_limit),
        (50, 1, Some(10.0))
    );
    assert!(c.topics[1].direction.sends() && c.topics[1].direction.receives());
}

#[test]
fn peers_with_any_permission_influence_the_air_unless_denied() {
    for (peer, expected) in [
        ("", true),
        (", allow: {}", false),
        (", allow: {publish: [], call: []}", false),
        (", allow: {subscribe: [/scan]}", true),
        (", allow: {call: [/a]}", true),
        (", allow: {publish: [/cmd_vel], air: false}", false),
        (", allow: {air: true}", true),
        (", relay: true, allow: {}", true),
        (", relay: false, allow: {}", false),
        (", relay: [/scan], allow: {air: false}", false),
    ] {
        let text = GOOD.replace("127.0.0.1:7401'", &format!("127.0.0.1:7401'{peer}"));
        let c = Config::parse(&text).expect("is good");
        assert_eq!(c.peers[0].has_air(), expected, "{peer}");
    }
}

#[test]
fn a_rate_may_be_unknown_and_a_serial_line_s_is_not() {
    let c = Config::parse(&GOOD.replace("6Mbit/s", "auto")).expect("is good");
    assert_eq!(c.radio.rate, Some(Rate::Auto));
    assert_eq!(c.airtime(28).rate_bits, Rate::Auto.first());
    let serial =
        "{host: a, radio: {carrier: serial, line: /dev/ttyS0, baud: 9600, rate: auto}, peers: [{name: b}]}";
    let error = Config::parse(serial).expect_err("refused").to_string();
    assert!(error.contains("leave them out"), "{error}");
}

#[test]
fn a_wire_has_no_rate_to_guess() {
    let c = Config::parse(&GOOD.replace("6Mbit/s", "unlimited")).expect("is good");
    assert_eq!(c.radio.rate, Some(Rate::Unlimited));
    assert!(c.is_wire());
    // A full frame of gigabit Ethernet.
    assert_eq!(c.airtime(28).airtime(1472, 1), Duration::from_nanos(1538 * 8));
}

#[test]
fn reliability_has_defaults_of_its_own() {
    let reliable = GOOD.replace(
        "direction: both",
        "direction: both, reliability: reliable, latched: true",
    );
    let c = Config::parse(&reliable).expect("is good");
    let t = c.topics[1].announced("geometry_msgs/Twist");
    assert_eq!(
        (t.depth, t.expiry, t.latched),
        (64, Some(Duration::from_secs(10)), true)
    );
    assert_eq!(
        (t.reliability, t.ordering),
        (proto::Reliability::Reliable, proto::Ordering::InOrder)
    );
    let any = reliable.replace("latched: true", "ordered: false, expiry: 2s, depth: 5");
    let t = Config::parse(&any).expect("is good").topics[1].announced("geometry_msgs/Twist");
    assert_eq!(
        (t.depth, t.expiry, t.latched),
        (5, Some(Duration::from_secs(2)), false)
    );
    assert_eq!(t.ordering, proto::Ordering::Any);
}

#[test]
fn bulk_has_defaults_that_hold_large_messages() {
    let bulk = GOOD.replace("direction: both", "direction: both, reliability: bulk");
    let c = Config::parse(&bulk).expect("is good");
    let t = c.topics[1].announced("nav_msgs/OccupancyGrid");
    assert_eq!((t.depth, t.expiry), (4, Some(Duration::from_secs(600))));
    assert_eq!(
        (t.reliability, t.ordering),
        (proto::Reliability::Bulk, proto::Ordering::Any)
    );
    assert_eq!(c.queue_bytes(), 64 << 20);
    let few = bulk.replace("6Mbit/s", "6Mbit/s, queue_bytes: 20MB");
    assert_eq!(Config::parse(&few).expect("is good").queue_bytes(), 20_000_000);
    let received = GOOD.replace("direction: both", "direction: in, reliability: bulk");
    assert_eq!(Config::parse(&received).expect("is good").queue_bytes(), 8 << 20);
    let served = GOOD.replace(
        "topics:",
        "services: [{name: /map, role: serve, reliability: bulk}]\ntopics:",
    );
    assert_eq!(Config::parse(&served).expect("is good").queue_bytes(), 64 << 20);
    let ordered = bulk.replace(
        "reliability: bulk",
        "reliability: bulk, ordered: true, expiry: 1h, depth: 2",
    );
    let t = Config::parse(&ordered).expect("is good").topics[1].announced("t/T");
    assert_eq!((t.depth, t.expiry), (2, Some(Duration::from_secs(3600))));
    assert_eq!(t.ordering, proto::Ordering::InOrder);
}

#[test]
fn a_wire_costs_its_packets_bytes() {
    let wire = GOOD.replace("6Mbit/s", "10Mbit/s, medium: wire");
    let airtime = Config::parse(&wire).expect("is good").airtime(28).with_gain(1.0);
    assert_eq!(airtime.airtime(1_222, 1), Duration::from_millis(1));
    let serial =
        "{host: a, radio: {carrier: serial, line: /dev/ttyS0, baud: 9600, medium: wire}, peers: [{name: b}]}";
    let error = Config::parse(serial).expect_err("refused").to_string();
    assert!(error.contains("`radio.medium`"), "{error}");
}

#[test]
fn every_refusal_is_one_line_that_names_the_place_and_the_fix() {
    for (from, to, place, fix) in [
        ("6Mbit/s", "0Mbit/s", "configuration:3:", "6Mbit/s"),
        ("6Mbit/s", "6Mbit/s, min_share: 5", "configuration:3:", "20%"),
        ("6Mbit/s", "6Mbit/s, min_share: 95%", "configuration", "min_share"),
        (
            "6Mbit/s",
            "6Mbit/s, least_share: 0%",
            "configuration",
            "1% to 100%",
        ),
        ("6Mbit/s", "automatic", "configuration:3:", "auto if"),
        ("6Mbit/s", "unlimited, hops: 2", "configuration", "radio.hops"),
        ("6Mbit/s", "unlimited, gain: 1.1", "configuration", "radio.gain"),
        ("priority: 100", "priority: 200", "configuration:7:", "0 to 127"),
        ("direction: out", "direction: sideways", "configuration:7:", "out"),
        ("depth: 2", "depht: 2", "configuration:7:", "depht"),
        ("100ms", "soon", "configuration:7:", "250ms"),
        ("127.0.0.1:7400", "127.0.0.1", "configuration:3:", "address"),
        (
            "127.0.0.1:7401",
            "[fe80::7]:7401",
            "configuration",
            "[fe80::7%wlan0]:7400",
        ),
        (
            "127.0.0.1:7401",
            "[fe80::7%nowhere0]:7401",
            "configuration:5:",
            "no network device 'nowhere0'",
        ),
        (
            "127.0.0.1:7400",
            "[fe80::7]:7400",
            "configuration:3:",
            "[fe80::7%wlan0]:7400",
        ),
        (
            "127.0.0.1:7401",
            "192.0.2.1:7401",
            "configuration",
            "insecure_udp",
        ),
        ("6Mbit/s", "6Mbit/s, carrier: quic", "configuration", "keys host"),
        ("6Mbit/s", "6Mbit/s, carrier: tls", "configuration", "for cables"),
        (
            "6Mbit/s",
            "unlimited, carrier: tls",
            "configuration",
            "tls needs `keys`",
        ),
        (
            "6Mbit/s",
            "6Mbit/s, carrier: pigeon",
            "configuration:3:",
            "serial",
        ),
        (
            "6Mbit/s",
            "6Mbit/s, carrier: serial",
            "configuration",
            "radio.line",
        ),
        ("6Mbit/s", "6Mbit/s, baud: 9600", "configuration", "serial"),
        (", rate: 6Mbit/s", "", "configuration", "radio.rate"),
        ("bind: '127.0.0.1:7400', ", "", "configuration", "radio.bind"),
        (", address: '127.0.0.1:7401'", "", "configuration", "address"),
        (
            "address: '127.0.0.1:7401'",
            "address: '127.0.0.1:7401', allow: {publish: [scan]}",
            "configuration",
            "'scan'",
        ),
        (
            "address: '127.0.0.1:7401'",
            "address: '127.0.0.1:7401', allow: {listen: [/scan]}",
            "configuration:5:",
            "subscribe",
        ),
        (
            "host: robot",
            "host: Robot_1\nkeys: keys",
            "configuration",
            "lowercase",
        ),
        (
            "127.0.0.1:7401",
            "127.0.0.1:7400",
            "configuration",
            "`radio.bind`",
        ),
        (
            "name: base",
            "name: base, namespace: r1",
            "configuration",
            "/robot1",
        ),
        (
            "name: base",
            "name: base, namespace: '/{name}'",
            "configuration",
            "{peer}",
        ),
        (
            "  - {name: base, address: '127.0.0.1:7401'}",
            "  - {name: a, address: '127.0.0.1:7401', namespace: /r}
  - {name: b, address: '127.0.0.1:7402', namespace: /r}",
            "configuration",
            "give each its own",
        ),
        (
            "{name: base, address: '127.0.0.1:7401'}\ntopics:",
            "{name: a, address: '127.0.0.1:7401', namespace: /r}
  - {name: b, address: '127.0.0.1:7402'}
topics:
  - {name: /r/cmd_vel, direction: in}",
            "configuration",
            "/r/cmd_vel",
        ),
        ("name: base", "name: robot", "configuration", "own `host`"),
        ("/cmd_vel", "/scan", "configuration", "listed twice"),
        ("/scan", "scan", "configuration", "/scan"),
        ("depth: 2", "depth: 0", "configuration", "1 to 4096"),
        (
            "depth: 2",
            "depth: 2000, latched: true",
            "configuration:7:",
            "at most 1024",
        ),
        ("depth: 2", "every: 0", "configuration", "1 to 1000000"),
        ("depth: 2", "compress: gzip", "configuration:7:", "zstd"),
        ("depth: 2", "tf: {frame: [a]}", "configuration:7:", "frames"),
        ("depth: 2", "tf: {rate: often}", "configuration:7:", "Hz"),
        ("6Mbit/s", "6Mbit/s, name: wlan/0", "configuration", "underscores"),
        ("depth: 2", "when: seldom", "configuration:7:", "watched"),
        ("depth: 2", "reliability: sure", "configuration:7:", "reliable"),
        (
            "depth: 2",
            "redundancy: 0.5",
            "configuration",
            "`reliability: redundant`",
        ),
        (
            "depth: 2",
            "reliability: redundant, redundancy: 1.5",
            "configuration",
            "at most 1",
        ),
        ("depth: 2", "expiry: 2s", "configuration", "`deadline`"),
        (
            "depth: 2",
            "reliability: reliable, expiry: 0s",
            "configuration",
            "more than 0",
        ),
        ("host: robot", "host: [robot", "configuration:", ""),
    ] {
        let error = refusal(from, to);
        assert!(error.starts_with(place), "{to}: {error}");
        assert!(is_placed(&error), "{to}: {error}");
        assert!(error.contains(fix), "{to}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Returns whether the error begins with line and column.
fn is_placed(error: &str) -> bool {
    let mut parts = error.split(':');
    let mut number = || {
        parts
            .next()
            .is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n > 0))
    };
    error.starts_with("configuration:") && !number() && number() && number()
}

#[test]
fn contradictions_are_reported_where_they_stand() {
    let text = |radio: &str, rest: &str| format!("host: robot\nradio: {{{radio}}}\n{rest}");
    let udp = "bind: '127.0.0.1:7400', rate: 6Mbit/s";
    let one = "peers:\n  - {name: base, address: '127.0.0.1:7401'}\n";
    for (radio, rest, place, problem, fix) in [
        (
            udp,
            format!("{one}topics:\n  - {{name: /a, direction: out}}\n  - name: /a\n    direction: in\n"),
            "configuration:7:",
            "topic /a is listed twice",
            "`direction: both`",
        ),
        (
            udp,
            format!("{one}services:\n  - {{name: /a, role: serve}}\n  - {{name: /a, role: call}}\n"),
            "configuration:7:",
            "service /a is listed twice",
            "`role: both`",
        ),
        // Loading moves peers without an address behind the others, but the error names their place in the
        // text.
        (
            udp,
            "peers:\n  - {name: far}\n  - {name: far, address: '127.0.0.1:7401', relay: true}\n".into(),
            "configuration:4:",
            "the peer name 'far' is used twice",
            "its own",
        ),
        (
            udp,
            "peers:\n  - {name: a, address: '127.0.0.1:7401'}\n  - {name: b}\n".into(),
            "configuration:5:",
            "peer 'b' has no `address`",
            "192.168.1.7:7400",
        ),
        (
            udp,
            "peers:\n  - {name: a, relay: true}\n".into(),
            "configuration:4:",
            "peer 'a' is a relay",
            "`address`",
        ),
        (
            udp,
            format!("{one}relay: true\n"),
            "configuration:5:",
            "`relay`",
            "at least two",
        ),
        (
            udp,
            format!("{one}topics:\n  - {{name: /image, direction: in, when: watched}}\n"),
            "configuration:6:",
            "topic /image: `when`",
            "sender's host",
        ),
        (
            udp,
            "peers:\n  - {name: a, address: '127.0.0.1:7401', relay: true}\n\
             topics:\n  - {name: /image, direction: out, when: watched}\n"
                .into(),
            "configuration:6:",
            "topic /image: `when: watched`",
            "leave `when` out",
        ),
        (
            udp,
            "peers:\n  - {name: a, address: '127.0.0.1:7401'}\n  - {name: b, address: '127.0.0.1:7402'}\n\
             relay: true\ntopics:\n  - {name: /image, direction: out, when: watched}\n"
                .into(),
            "configuration:8:",
            "topic /image: `when: watched`",
            "leave `when` out",
        ),
        (
            udp,
            format!("{one}topics:\n  - {{name: /tf, direction: in, tf: {{frames: [a]}}}}\n"),
            "configuration:6:",
            "topic /tf: `tf`",
            "sender's host",
        ),
        (
            udp,
            format!("{one}topics:\n  - {{name: /a, direction: out, deadline: 0ms}}\n"),
            "configuration:6:",
            "topic /a: `deadline`",
            "leave it out",
        ),
        (
            udp,
            format!("{one}topics:\n  - {{name: '/a b', direction: out}}\n"),
            "configuration:6:",
            "topic '/a b'",
            "full name",
        ),
        (
            udp,
            format!(
                "{one}topics:\n  - {{name: /a, direction: out, min_share: 60%}}\n  - {{name: /b, direction: out, min_share: 50%}}\n"
            ),
            "configuration:7:",
            "the min_share",
            "at least 10 %",
        ),
        (
            "carrier: quic, bind: '127.0.0.1:7400', rate: 6Mbit/s",
            one.into(),
            "configuration:2:",
            "the carrier quic needs `keys`",
            "ropewalk keys host",
        ),
        (
            "carrier: serial, line: /dev/ttyS0, baud: 9600, bind: '127.0.0.1:1'",
            "peers: [{name: b}]\n".into(),
            "configuration:2:",
            "`radio.bind`",
            "leave them out",
        ),
    ] {
        let error = Config::parse(&text(radio, &rest)).expect_err(&rest).to_string();
        assert!(error.starts_with(place) && is_placed(&error), "{rest}: {error}");
        assert!(error.contains(problem) && error.contains(fix), "{rest}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn invalid_values_are_reported_without_library_jargon() {
    for (from, to, place, fix) in [
        (
            "depth: 2",
            "depth: -1",
            "configuration:7:",
            "depth is -1; it must be 1 to 4096",
        ),
        ("depth: 2", "depth: 100000", "configuration:7:", "1 to 4096"),
        ("6Mbit/s", "6Mbit/s, hops: 300", "configuration:3:", "1 to 16"),
        (
            "depth: 2",
            "depth: 2, depth: 3",
            "configuration:7:",
            "`depth` is written twice here: keep one",
        ),
        (
            "'127.0.0.1:7401'",
            "base.local",
            "configuration:5:",
            "192.168.1.7:7400",
        ),
        (
            "direction: out, ",
            "",
            "configuration:7:",
            "missing field `direction`",
        ),
    ] {
        let error = refusal(from, to);
        assert!(error.starts_with(place) && error.contains(fix), "{to}: {error}");
        assert!(is_placed(&error) && !error.contains("Options"), "{error}");
    }
    for (text, place, fix) in [
        ("", "configuration", "`ropewalk link --help`"),
        ("- 3\n", "configuration:1:1", "such as `host: robot`"),
        ("host robot\n", "configuration:1:1", "such as `host: robot`"),
        ("host: null\n", "configuration:1:", "leave the key out"),
        ("host: *robot\n", "configuration:1:", "put the text in quotes"),
        ("host: robot\n\tradio: 3\n", "configuration:", "no tabs"),
        (
            "host: robot\nradio: {bind: '127.0.0.1:1'\n",
            "configuration:",
            "brackets",
        ),
        (
            "host: robot\nradio:\n  rate: auto\n bind: a\n",
            "configuration:4:",
            "spaces",
        ),
        (
            "host: robot\nradio: {hops: many}\n",
            "configuration:2:",
            "a number belongs here",
        ),
        ("host: robot\npeers: base\n", "configuration:2:", "[{name: base}]"),
        (
            "radio: {bind: '127.0.0.1:1', rate: auto}\n",
            "configuration",
            "missing field `host`: write it",
        ),
    ] {
        let error = Config::parse(text).expect_err(text).to_string();
        assert!(error.starts_with(place) && error.contains(fix), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_lora_modem_has_its_airtime_and_a_duty_cycle() {
    let text = "
host: robot
radio: {carrier: serial, line: /dev/ttyUSB0, baud: 9600, duty: 1%, lora: {spreading: 7, bandwidth: 125000}}
peers: [{name: base}]
";
    let c = Config::parse(text).expect("is good");
    assert_eq!(c.radio.duty, 0.01);
    // With the framing 20.25 symbols of 1.024 ms and 32 blocks of 5 symbols, whatever the line's speed: 185 ms.
    let air = |bytes| c.airtime(8).airtime(bytes, 1).as_secs_f64() * 1e3;
    assert!((150.0..200.0).contains(&air(100)), "{}", air(100));
    for (from, to, fix) in [
        ("duty: 1%", "duty: 0%", "above 0%"),
        ("duty: 1%", "duty: 200%", "0 to 100 %"),
        ("spreading: 7", "spreading: 13", "7 to 12"),
        ("bandwidth: 125000", "bandwidth: 125", "bandwidth"),
        (
            "carrier: serial, line: /dev/ttyUSB0, baud: 9600",
            "carrier: udp, bind: '127.0.0.1:1', rate: 6Mbit/s",
            "serial line",
        ),
        (
            "carrier: serial, line: /dev/ttyUSB0, baud: 9600, duty: 1%, lora: {spreading: 7, bandwidth: 125000}",
            "carrier: udp, bind: '127.0.0.1:1', rate: auto, duty: 1%",
            "known rate",
        ),
    ] {
        let error = Config::parse(&text.replace(from, to)).expect_err(to).to_string();
        assert!(error.contains(fix) && error.lines().count() == 1, "{to}: {error}");
    }
}

#[test]
fn keys_make_it_quic_and_a_line_serial() {
    let c = Config::parse(GOOD).expect("is good");
    assert_eq!(c.carrier(), CarrierKind::Udp);
    let away = GOOD.replace("127.0.0.1:7401", "192.0.2.1:7401");
    let c = Config::parse(&format!("keys: keys/robot{away}")).expect("is good");
    assert_eq!(c.carrier(), CarrierKind::Quic);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("link.yaml");
    std::fs::write(&file, format!("keys: keys/robot{away}")).expect("writes");
    let c = Config::load(&file).expect("is good");
    assert_eq!(c.keys, Some(folder.path().join("keys/robot")));
    let serial = "
host: robot
radio: {carrier: serial, line: /dev/ttyUSB0, baud: 115200}
peers: [{name: base}]
";
    let c = Config::parse(serial).expect("is good");
    // 100 bytes and the framing, at 11,520 bytes per second.
    let airtime = c.airtime(8).airtime(100, 1);
    assert_eq!(airtime.as_micros(), 9375, "{airtime:?}");
    for (from, to, fix) in [
        (
            "{name: base}",
            "{name: base, address: '127.0.0.1:1'}",
            "leave it out",
        ),
        ("{name: base}", "{name: base}, {name: other}", "one peer"),
        ("115200", "115200, bind: '127.0.0.1:1'", "leave them out"),
        ("115200", "110", "300 to"),
    ] {
        let error = Config::parse(&serial.replace(from, to))
            .expect_err(to)
            .to_string();
        assert!(error.contains(fix), "{error}");
    }
}

#[test]
fn a_missing_or_huge_file_is_named() {
    let error = Config::load(Path::new("/nonexistent/link.yaml"))
        .expect_err("missing")
        .to_string();
    assert!(error.contains("/nonexistent/link.yaml"), "{error}");
    assert!(Config::load(Path::new("/")).is_err());
}

#[test]
fn a_topic_is_latched_as_its_publishers_say_unless_the_configuration_does() {
    let of = |text: &str, latching| {
        let c = Config::parse(&GOOD.replace("direction: both", &format!("direction: both{text}")));
        let mut topic = c.expect("is good").topics.remove(1);
        topic.settle(Offers {
            latching,
            ..Offers::default()
        });
        let t = topic.announced("geometry_msgs/Twist");
        (t.latched, t.depth)
    };
    assert!(!of("", 0).0 && !of(", latched: false", 1).0 && of(", latched: true", 0).0);
    let depth = of("", 0).1;
    assert_eq!((of("", 1), of("", 3)), ((true, depth), (true, 3)));
    assert_eq!(of(", reliability: reliable", 3), (true, 64));
}
