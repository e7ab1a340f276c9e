//! A callback that panics loses only its current message: the failure is logged and counted, and the callback
//! continues.
#![allow(missing_docs)]

use ropewalk::{
    BusConfig, CallError, CallbackOptions, Executor, Flavour, Node, Publisher, Registry, Schema, Service,
    Value,
};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(120);

fn node(folder: &tempfile::TempDir) -> Node {
    Node::with_config("tester", BusConfig::new(folder.path())).expect("a node")
}

fn byte() -> Schema {
    Registry::new(Flavour::Ros1)
        .schema("std_msgs/UInt8")
        .expect("a type")
}

fn set_bool() -> Service {
    Registry::new(Flavour::Ros1)
        .service("std_srvs/SetBool")
        .expect("a type")
}

fn publisher(node: &Node) -> Publisher {
    let publisher = node.dynamic_publisher("/number", &byte()).expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LONG));
    publisher
}

/// A callback that panics on even numbers and sends the odd ones.
fn picky(heard: Sender<u8>) -> impl FnMut(ropewalk::Message) + Send + 'static {
    move |message| {
        let number = message.ros1().expect("bytes")[0];
        assert!(number % 2 == 1, "an even number");
        heard.send(number).expect("somebody listens");
    }
}

fn hears(heard: &Receiver<u8>, wanted: &[u8]) {
    for number in wanted {
        assert_eq!(heard.recv_timeout(LONG).expect("a number"), *number);
    }
}

/// Waits, with a watchdog, until `what` holds.
fn comes(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < LONG, "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_subscribers_callback_goes_on_after_a_panic_and_counts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(&folder);
    let (tx, rx) = channel();
    let subscriber = node.dynamic_subscriber("/number", &byte()).expect("a subscriber");
    let callback = subscriber.callback(picky(tx)).expect("a thread");
    let publisher = publisher(&node);
    for number in 1..=6 {
        publisher.publish_ros1(&[number]).expect("publishes");
    }
    hears(&rx, &[1, 3, 5]);
    comes(|| callback.errors() == 3);
    assert!(callback.is_running());
    publisher.publish_ros1(&[7]).expect("publishes");
    hears(&rx, &[7]);
}

#[test]
fn a_callback_that_is_to_end_on_errors_ends_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(&folder);
    let (tx, rx) = channel();
    let subscriber = node.dynamic_subscriber("/number", &byte()).expect("a subscriber");
    let options = CallbackOptions::default().with_end_on_error(true);
    let callback = subscriber.callback_with(options, picky(tx)).expect("a thread");
    let publisher = publisher(&node);
    for number in [1, 2, 3] {
        publisher.publish_ros1(&[number]).expect("publishes");
    }
    hears(&rx, &[1]);
    comes(|| !callback.is_running());
    assert_eq!(callback.errors(), 1);
    assert!(
        rx.recv_timeout(LONG).is_err(),
        "the function is dropped with its thread"
    );
}

#[test]
fn a_client_is_notified_of_its_servers_panic_and_the_next_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(&folder);
    let service = set_bool();
    let answer = service.response().default_value();
    let server = node
        .dynamic_service("/arm", &service, move |request| {
            let request = request.value().map_err(|e| e.to_string())?;
            match request.get("data") {
                Ok(Value::Bool(true)) => Ok(answer.clone()),
                _ => panic!("no arm"),
            }
        })
        .expect("serves");
    let client = node.dynamic_client("/arm", &service).expect("a client");
    assert!(client.wait_for_server(LONG).expect("waits"));
    let ask = |on: bool| {
        let mut request = service.request().default_value();
        request.set("data", Value::Bool(on)).expect("fits");
        client.call_value(&request, LONG)
    };
    for _ in 0..3 {
        match ask(false) {
            Err(CallError::Call(bus::CallError::Rejected { text, .. })) => {
                assert_eq!(text, "the handler of /arm panicked: no arm");
            }
            other => panic!("{other:?}"),
        }
        ask(true).expect("an answer");
    }
    assert_eq!(server.errors(), 3);
}

#[test]
fn an_executor_goes_on_after_a_panic_or_lets_it_through_if_it_is_to_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(&folder);
    for ends in [false, true] {
        let (tx, rx) = channel();
        let options = CallbackOptions::default().with_end_on_error(ends);
        let executor = Executor::new(&node).expect("an executor");
        let mut executor = executor.with_callback_options(options);
        executor
            .subscribe_dynamic("/number", &byte(), picky(tx))
            .expect("subscribes");
        let publisher = publisher(&node);
        for number in [1, 2, 3] {
            publisher.publish_ros1(&[number]).expect("publishes");
        }
        let mut spin =
            || std::panic::catch_unwind(AssertUnwindSafe(|| executor.spin_once(LONG).expect("spins")));
        assert_eq!(spin().ok(), Some(1));
        assert_eq!(spin().ok(), (!ends).then_some(1));
        assert_eq!(spin().ok(), Some(1), "the next message is handled in either case");
        hears(&rx, &[1, 3]);
        assert_eq!(executor.errors(), 1);
    }
}
