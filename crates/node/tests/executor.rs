//! The executor is fair, idle when there is nothing to do, and not blocked by one greedy callback.
#![allow(missing_docs)]

use ropewalk::{
    BusConfig, Executor, Flavour, Message, Node, Publisher, Registry, Schema, SubscriberOptions, Value,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

fn node(folder: &tempfile::TempDir) -> Node {
    Node::with_config("tester", BusConfig::new(folder.path().join("bus"))).expect("a node")
}

fn byte() -> Schema {
    Registry::new(Flavour::Ros1)
        .schema("std_msgs/UInt8")
        .expect("a type")
}

fn publisher(node: &Node, topic: &str) -> Publisher {
    let publisher = node.dynamic_publisher(topic, &byte()).expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LONG));
    publisher
}

fn counting(counter: &Arc<AtomicUsize>) -> impl FnMut(Message) + Send + 'static {
    let counter = counter.clone();
    move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Processor time of this thread, in nanoseconds.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel that counts");
    text.split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number")
}

/// Runs `f` and checks that it slept for nearly all of a second.
fn sleeps(f: impl FnOnce()) {
    let before = processor_time();
    f();
    let used = Duration::from_nanos(processor_time() - before);
    assert!(used < Duration::from_millis(50), "it was awake for {used:?}");
}

#[test]
fn each_has_its_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(&folder);
    let mut executor = Executor::new(&node).expect("an executor");
    let (many, few) = (Arc::default(), Arc::default());
    executor
        .subscribe_dynamic("/many", &byte(), counting(&many))
        .expect("subscribes");
    executor
        .subscribe_dynamic("/few", &byte(), counting(&few))
        .expect("subscribes");
    let (busy, calm) = (publisher(&node, "/many"), publisher(&node, "/few"));
    for _ in 0..10 {
        busy.publish_ros1(&[1]).expect("publishes");
    }
    calm.publish_ros1(&[1]).expect("publishes");
    assert_eq!(executor.spin_once(LONG).expect("spins"), 2);
    assert_eq!(
        (many.load(Ordering::Relaxed), few.load(Ordering::Relaxed)),
        (1, 1)
    );
    for n in 2..=10 {
        assert_eq!(executor.spin_once(LONG).expect("spins"), 1);
        assert_eq!(many.load(Ordering::Relaxed), n);
    }
    sleeps(|| assert_eq!(executor.spin_once(Duration::from_secs(1)).expect("spins"), 0));
}

#[test]
fn callbacks_that_keep_too_much_block_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(&folder);
    let mut executor = Executor::new(&node).expect("an executor");
    let kept: Arc<Mutex<Vec<Message>>> = Arc::default();
    let shelf = kept.clone();
    let options = SubscriberOptions::default().with_max_held(2);
    let stray = node
        .dynamic_subscriber_with("/kept", &byte(), options.clone())
        .expect("a subscriber");
    let error = executor.add(stray, |_| {}).expect_err("not in the set");
    assert!(
        error.to_string().contains("/kept") && error.to_string().contains("wait_set"),
        "{error}"
    );
    let greedy = node
        .dynamic_subscriber_with("/kept", &byte(), options.with_wait_set(executor.wait_set()))
        .expect("a subscriber");
    executor
        .add(greedy, move |message| shelf.lock().expect("whole").push(message))
        .expect("is in the set");
    let count = Arc::default();
    executor
        .subscribe_dynamic("/free", &byte(), counting(&count))
        .expect("subscribes");
    let (keeping, free) = (publisher(&node, "/kept"), publisher(&node, "/free"));
    for _ in 0..5 {
        keeping.publish_ros1(&[1]).expect("publishes");
        free.publish_ros1(&[1]).expect("publishes");
    }
    let spin = |executor: &mut Executor, n: usize| {
        let mut handled = 0;
        while handled < n {
            handled += executor.spin_once(LONG).expect("spins");
        }
        assert_eq!(handled, n);
    };
    spin(&mut executor, 7);
    assert_eq!(
        (kept.lock().expect("whole").len(), count.load(Ordering::Relaxed)),
        (2, 5)
    );
    sleeps(|| assert_eq!(executor.spin_once(Duration::from_secs(1)).expect("spins"), 0));
    // Dropping one message wakes it.
    let shelf = kept.clone();
    let helper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        shelf.lock().expect("whole").remove(0);
    });
    spin(&mut executor, 1);
    helper.join().expect("helps");
    assert_eq!(kept.lock().expect("whole").len(), 2);
}

#[test]
fn it_serves_beside_subscribing_and_stops_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (node(&folder), node(&folder));
    let trigger = Registry::new(Flavour::Ros1)
        .service("std_srvs/Trigger")
        .expect("a service");
    let mut executor = Executor::new(&one).expect("an executor");
    let stopper = executor.stopper();
    let count: Arc<AtomicUsize> = Arc::default();
    executor
        .subscribe_dynamic("/count", &byte(), counting(&count))
        .expect("subscribes");
    let (response, counted) = (trigger.response().clone(), count.clone());
    let answer = move |_: &ropewalk::Request| {
        let mut answer = response.default_value();
        let text = format!("{} so far", counted.load(Ordering::Relaxed));
        answer
            .set("message", Value::String(text))
            .map_err(|e| e.to_string())?;
        Ok(answer)
    };
    executor
        .serve_dynamic("/how_many", &trigger, answer)
        .expect("serves");
    let (send, ended) = channel();
    let spinning = std::thread::spawn(move || {
        executor.spin().expect("spins");
        send.send(()).expect("is awaited");
    });
    let publisher = publisher(&two, "/count");
    let client = two.dynamic_client("/how_many", &trigger).expect("a client");
    assert!(client.wait_for_server(LONG).expect("waits"));
    for n in 1..=3 {
        publisher.publish_ros1(&[1]).expect("publishes");
        while count.load(Ordering::Relaxed) < n {
            std::thread::sleep(Duration::from_millis(1));
        }
        let answer = client
            .call_value(&trigger.request().default_value(), LONG)
            .expect("an answer");
        let text = answer.get("message").expect("a field");
        assert_eq!(text.as_str(), Some(&*format!("{n} so far")));
    }
    assert!(ended.try_recv().is_err());
    stopper.stop();
    ended.recv_timeout(LONG).expect("stops while it sleeps");
    spinning.join().expect("ends");
}
