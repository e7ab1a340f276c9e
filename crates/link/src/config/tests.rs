use super::*;

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
    // A full frame of a gigabit Ethernet.
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
fn every_refusal_is_one_line_that_names_the_place_and_the_mend() {
    for (from, to, place, mend) in [
        ("6Mbit/s", "0Mbit/s", "configuration:3:", "6Mbit/s"),
        ("6Mbit/s", "6Mbit/s, min_share: 5", "configuration:3:", "20%"),
        ("6Mbit/s", "6Mbit/s, min_share: 95%", "configuration", "min_share"),
        (
            "6Mbit/s",
            "6Mbit/s, least_share: 0%",
            "configuration",
            "1% to 100%",
        ),
        ("6Mbit/s", "automatic", "configuration:3:", "auto where"),
        ("6Mbit/s", "unlimited, hops: 2", "configuration", "radio.hops"),
        ("6Mbit/s", "unlimited, gain: 1.1", "configuration", "radio.gain"),
        ("priority: 100", "priority: 200", "configuration:7:", "0 to 127"),
        ("direction: out", "direction: sideways", "configuration:7:", "out"),
        ("depth: 2", "depht: 2", "configuration:7:", "depht"),
        ("100ms", "soon", "configuration:7:", "250ms"),
        ("127.0.0.1:7400", "127.0.0.1", "configuration:3:", "address"),
        (
            "127.0.0.1:7401",
            "192.0.2.1:7401",
            "configuration",
            "insecure_udp",
        ),
        ("6Mbit/s", "6Mbit/s, carrier: quic", "configuration", "keys host"),
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
        ("127.0.0.1:7401", "127.0.0.1:7400", "configuration", "used twice"),
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
        ("name: base", "name: robot", "configuration", "used twice"),
        ("/cmd_vel", "/scan", "configuration", "listed twice"),
        ("/scan", "scan", "configuration", "/scan"),
        ("depth: 2", "depth: 0", "configuration", "1 to 1024"),
        ("depth: 2", "every: 0", "configuration", "1 (all)"),
        ("depth: 2", "compress: gzip", "configuration:7:", "zstd"),
        ("depth: 2", "tf: {frame: [a]}", "configuration:7:", "frames"),
        ("depth: 2", "tf: {rate: often}", "configuration:7:", "Hz"),
        ("6Mbit/s", "6Mbit/s, name: wlan/0", "configuration", "underscores"),
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
        assert!(error.contains(mend), "{to}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
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
    // 100 bytes and the framing at 11,520 bytes a second.
    let airtime = c.airtime(8).airtime(100, 1);
    assert_eq!(airtime.as_micros(), 9375, "{airtime:?}");
    for (from, to, mend) in [
        (
            "{name: base}",
            "{name: base, address: '127.0.0.1:1'}",
            "leave it out",
        ),
        ("{name: base}", "{name: base}, {name: other}", "one peer"),
        ("115200", "115200, bind: '127.0.0.1:1'", "leave them out"),
        ("115200", "110", "at least 300"),
    ] {
        let error = Config::parse(&serial.replace(from, to))
            .expect_err(to)
            .to_string();
        assert!(error.contains(mend), "{error}");
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
