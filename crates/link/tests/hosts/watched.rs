//! Topics that cross only while someone on the far host's bus subscribes to them (`when: watched`).

use crate::common::*;
use link::{Config, Daemon};
use proto::TopicState;
use std::time::Duration;

/// Long enough for several rounds of statements between links.
const WHILE: Duration = Duration::from_millis(600);

fn text(name: &str, own: u16, (peer, port): (&str, u16), topics: &str) -> String {
    format!(
        "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: unlimited}}
peers: [{{name: {peer}, address: '127.0.0.1:{port}'}}]
topics:
{topics}"
    )
}

/// A robot that sends `/image` to a base.
fn pair() -> (Host, Host) {
    let [x, y] = ports();
    let out = "  - {name: /image, direction: out, when: watched}\n  - {name: /always, direction: out}\n";
    let into = "  - {name: /image, direction: in}\n  - {name: /always, direction: in}\n";
    let robot = Host::start(&text("robot", x, ("base", y), out));
    let base = Host::start(&text("base", y, ("robot", x), into));
    (robot, base)
}

fn state(robot: &Host) -> Option<TopicState> {
    let sent = robot.status().sent;
    Some(sent.iter().find(|t| t.stats.name == "/image")?.stats.state)
}

fn sent(robot: &Host) -> u64 {
    let sent = robot.status().sent;
    let of_it = sent.iter().filter(|t| t.stats.name == "/image");
    of_it.map(|t| t.stats.fragments).sum()
}

/// Publishes for a while, and returns how many fragments were sent meanwhile.
fn sent_while(robot: &Host, p: &bus::Publisher) -> u64 {
    let before = sent(robot);
    for _ in 0..30 {
        publish(p, "image");
        std::thread::sleep(WHILE / 30);
    }
    std::thread::sleep(Duration::from_millis(250));
    sent(robot) - before
}

#[test]
fn nothing_crosses_while_nobody_subscribes() {
    let (mut robot, mut base) = pair();
    let p = robot.publisher("/image");
    let always = robot.publisher("/always");
    let other = base.subscriber("/always");
    publish_until(&always, "x", || !texts(&other).is_empty());
    until("it rests", || state(&robot) == Some(TopicState::Unwatched));
    assert_eq!(sent_while(&robot, &p), 0);
    // The publisher sees it, too, and may pause its camera.
    until("the link leaves the bus", || p.subscriber_count() == 0);
    let shown = base.status().received;
    let shown = shown.iter().find(|t| t.stats.name == "/image").expect("a topic");
    assert_eq!(shown.stats.watched, Some(false));
    assert!(robot.status().ready(), "nothing is amiss");

    let s = base.subscriber("/image");
    publish_until(&p, "image", || !texts(&s).is_empty());
    assert_eq!(state(&robot), Some(TopicState::Ready));
    drop(s);
    until("it rests again", || state(&robot) == Some(TopicState::Unwatched));
    assert_eq!(sent_while(&robot, &p), 0);

    // Someone watches while the links restart, one after the other.
    let s = base.subscriber("/image");
    publish_until(&p, "image", || !texts(&s).is_empty());
    base.stop_link();
    base.start_link();
    texts(&s);
    publish_until(&p, "image", || !texts(&s).is_empty());
    robot.stop_link();
    robot.start_link();
    texts(&s);
    publish_until(&p, "image", || !texts(&s).is_empty());
    drop(s);
    until("it rests after restarts", || {
        state(&robot) == Some(TopicState::Unwatched)
    });
    // Nobody does, either, after another restart.
    base.stop_link();
    base.start_link();
    publish_until(&always, "x", || !texts(&other).is_empty());
    until("it rests after one more", || {
        state(&robot) == Some(TopicState::Unwatched)
    });
    assert_eq!(sent_while(&robot, &p), 0);
}

#[test]
fn new_subscribers_get_what_the_publisher_keeps() {
    let (robot, base) = pair();
    let options = bus::PublisherOptions::default().with_history(1);
    let p = (robot.bus.publisher(kind("/image", "test_msgs/Blob"), options)).expect("a publisher");
    publish(&p, "old");
    publish(&p, "new");
    until("it rests", || state(&robot) == Some(TopicState::Unwatched));
    std::thread::sleep(WHILE);
    assert_eq!(sent(&robot), 0);
    let first = base.subscriber("/image");
    let mut got = Vec::new();
    until("the newest", || {
        got.extend(texts(&first));
        got.contains(&"new".to_owned())
    });
    assert_eq!(got, ["new"]);
    drop(first);
    until("it rests again", || state(&robot) == Some(TopicState::Unwatched));
    publish(&p, "newer");
    std::thread::sleep(WHILE);
    let second = base.subscriber("/image");
    let mut got = Vec::new();
    until("the message of meanwhile", || {
        got.extend(texts(&second));
        got.contains(&"newer".to_owned())
    });
}

#[test]
fn the_links_own_subscriber_does_not_watch() {
    let [x, y] = ports();
    let both = "  - {name: /image, direction: both, when: watched}\n";
    let robot = Host::start(&text("robot", x, ("base", y), both));
    let base = Host::start(&text("base", y, ("robot", x), both));
    let (here, there) = (robot.publisher("/image"), base.publisher("/image"));
    for host in [&robot, &base] {
        until("both rest", || {
            publish(&here, "a");
            publish(&there, "b");
            state(host) == Some(TopicState::Unwatched)
        });
    }
    assert_eq!((sent_while(&robot, &here), sent(&base)), (0, 0));
    // A subscriber on the robot wants the base's.
    let s = robot.subscriber("/image");
    let mut got = Vec::new();
    publish_until(&there, "b", || {
        got.extend(texts(&s));
        got.contains(&"b".to_owned())
    });
    assert_eq!(sent(&robot), 0);
    assert_eq!(state(&robot), Some(TopicState::Unwatched));
}

#[test]
fn two_links_in_a_row_pass_on_their_watchers() {
    let [x, y] = ports();
    let [b, z] = ports();
    let out = "  - {name: /image, direction: out, when: watched}\n";
    let into = "  - {name: /image, direction: in}\n";
    let robot = Host::start(&text("robot", x, ("base", y), out));
    let base = Host::start(&text("base", y, ("robot", x), into));
    let room = Host::start(&text("room", z, ("base", b), into));
    let second = Config::parse(&text("base", b, ("room", z), out)).unwrap_or_else(|e| panic!("{e}"));
    let carrier = link::open_carrier(&second).expect("a carrier");
    let second = Daemon::new(second, base.bus.clone(), carrier).expect("a daemon");
    let (handle, thread) = (second.handle(), std::thread::spawn(move || second.run()));

    let p = robot.publisher("/image");
    until("it rests on both", || {
        let there = handle.status().sent;
        let rests = there.first().map(|t| t.stats.state) == Some(TopicState::Unwatched);
        rests && state(&robot) == Some(TopicState::Unwatched)
    });
    assert_eq!(sent_while(&robot, &p), 0);
    let s = room.subscriber("/image");
    publish_until(&p, "image", || !texts(&s).is_empty());
    drop(s);
    until("it rests again", || state(&robot) == Some(TopicState::Unwatched));
    handle.stop();
    thread.join().expect("no panic").expect("no error");
}
