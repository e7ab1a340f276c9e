//! iceoryx2: publish/subscribe of byte slices in shared memory, with an event service that wakes the subscribers, as in
//! its example `event_based_communication`.

use std::hash::{DefaultHasher, Hash, Hasher};

use iceoryx2::port::listener::Listener;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::sample_mut_uninit::SampleMutUninit;
use iceoryx2::service::port_factory::{event, publish_subscribe};
use peer::{Log, Options, Orchestrator, Program, need};

/// Queue depth of the subscribers, and the minimum that the service allows.
const DEPTH: usize = 16;

const SENT: EventId = EventId::new(0);
const STOP: EventId = EventId::new(1);

type Service = ipc::Service;
type Payloads = publish_subscribe::PortFactory<Service, [u8], ()>;
type Loan = SampleMutUninit<Service, [std::mem::MaybeUninit<u8>], ()>;
type Events = event::PortFactory<Service>;

fn main() {
    let o = peer::parse(&Program {
        systems: &["iceoryx2"],
        commands: &["publish", "subscribe", "ping", "pong"],
    });
    if o.command == "version" {
        return peer::say_version(&o, "0.10.0", &["block", "spin"]);
    }
    set_log_level(LogLevel::Fatal);
    let orchestrator = Orchestrator::new();
    peer::enter_fifo(&o);
    match o.command.as_str() {
        "publish" => publish(&o, &orchestrator),
        "subscribe" => subscribe(&o, &orchestrator),
        "ping" => ping(&o, &orchestrator),
        _ => pong(&o, &orchestrator),
    }
    clean_up(&o);
}

/// Removes the library's leftovers: empty folders, and one file that all nodes share. Only the last process of the cell
/// finds the folder of the nodes empty.
fn clean_up(o: &Options) {
    let folder = peer::runtime_folder().join("iceoryx2");
    if std::fs::remove_dir(folder.join("nodes")).is_err() {
        return;
    }
    let _ = std::fs::remove_dir(folder.join("services"));
    let _ = std::fs::remove_dir(folder);
    let prefix = prefix(o);
    for file in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if file
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".global_mgmt"))
        {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Prefix of this cell's files in /dev/shm, whose names do not contain the root path.
fn prefix(o: &Options) -> String {
    let mut hasher = DefaultHasher::new();
    (peer::runtime_folder(), &o.topic).hash(&mut hasher);
    format!("ropewalk_{:016x}_", hasher.finish())
}

fn publish(o: &Options, orchestrator: &Orchestrator) {
    let node = node(o);
    let payloads = payloads(o, &node, "");
    let events = events(o, &node);
    let publisher = publisher(o, &payloads, o.limit);
    let notifier = need(
        events.notifier_builder().default_event_id(SENT).create(),
        "iceoryx2 notifier",
    );
    // A spinning subscriber has no listener, so only the payload service shows who is connected.
    peer::wait_connected(orchestrator, o.subscribers, || {
        payloads.dynamic_config().number_of_subscribers()
    });
    peer::ready_and_go(orchestrator);
    peer::send_all(
        o,
        orchestrator,
        || publisher.loan_slice_uninit(o.size).ok(),
        |sample: &mut Loan| sample.payload_mut(),
        |sample| {
            // SAFETY: `fill` wrote all of it.
            let sample = unsafe { sample.assume_init() };
            sample.send().is_ok_and(|receivers| receivers == o.subscribers) && (notifier.notify().is_ok())
        },
    );
    orchestrator.wait_stop();
}

fn subscribe(o: &Options, orchestrator: &Orchestrator) {
    let mut log = Log::new(o);
    let node = node(o);
    let payloads = payloads(o, &node, "");
    let subscriber = subscriber(o, &payloads);
    if o.spin {
        peer::say("ready");
        while !orchestrator.stopped() {
            take_all(&subscriber, &mut log);
        }
        return log.print();
    }
    let events = events(o, &node);
    let listener = need(events.listener_builder().create(), "iceoryx2 listener");
    let waker = wake_on_stop(o, orchestrator);
    peer::say("ready");
    wait(&listener, orchestrator, || take_all(&subscriber, &mut log));
    log.print();
    let _ = waker.join();
}

/// Blocks in the wait set until `stop`; calls `on_sent` after each wake-up.
fn wait(listener: &Listener<Service>, orchestrator: &Orchestrator, mut on_sent: impl FnMut()) {
    let waitset = WaitSetBuilder::new()
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<Service>();
    let waitset = need(waitset, "iceoryx2 wait set");
    let _guard = need(waitset.attach_notification(listener), "iceoryx2 wait set");
    let result = waitset.wait_and_process(|_| {
        let _ = listener.try_wait(|_| {});
        on_sent();
        if orchestrator.stopped() {
            CallbackProgression::Stop
        } else {
            CallbackProgression::Continue
        }
    });
    need(result, "iceoryx2 wait set");
}

fn take_all(subscriber: &Subscriber<Service, [u8], ()>, log: &mut Log) {
    while let Some(sample) = need(subscriber.receive(), "iceoryx2 receive") {
        log.receive(sample.payload());
    }
}

/// Starts a thread that wakes the subscribers' listeners on `stop`.
fn wake_on_stop(o: &Options, orchestrator: &Orchestrator) -> std::thread::JoinHandle<()> {
    let o = Options {
        topic: o.topic.clone(),
        size: o.size,
        subscribers: o.subscribers,
        depth: o.depth,
        ..Options::default()
    };
    let orchestrator = orchestrator.clone();
    std::thread::spawn(move || {
        orchestrator.wait_stop();
        let events = events(&o, &node(&o));
        let notifier = need(events.notifier_builder().create(), "iceoryx2 notifier");
        need(notifier.notify_with_custom_event_id(STOP), "iceoryx2 notify");
    })
}

fn ping(o: &Options, orchestrator: &Orchestrator) {
    let node = node(o);
    let (there, back) = (payloads(o, &node, ".ping"), payloads(o, &node, ".pong"));
    let subscriber = subscriber(o, &back);
    let publisher = publisher(o, &there, 0);
    peer::wait_connected(orchestrator, 2, || {
        there.dynamic_config().number_of_subscribers() + back.dynamic_config().number_of_publishers()
    });
    peer::ready_and_go(orchestrator);
    peer::ping_all(
        o,
        orchestrator,
        || publisher.loan_slice_uninit(o.size).ok(),
        |sample: &mut Loan| sample.payload_mut(),
        |sample, sequence| {
            // SAFETY: `fill` wrote all of it.
            need(unsafe { sample.assume_init() }.send(), "iceoryx2 send");
            loop {
                if let Some(reply) = need(subscriber.receive(), "iceoryx2 receive") {
                    return peer::sequence_of(reply.payload()) == sequence;
                }
                if orchestrator.stopped() {
                    return false;
                }
            }
        },
    );
    orchestrator.wait_stop();
}

fn pong(o: &Options, orchestrator: &Orchestrator) {
    let node = node(o);
    let (there, back) = (payloads(o, &node, ".ping"), payloads(o, &node, ".pong"));
    let subscriber = subscriber(o, &there);
    let publisher = publisher(o, &back, 0);
    peer::say("ready");
    let mut left = o.total();
    while left > 0 && !orchestrator.stopped() {
        let Some(sample) = need(subscriber.receive(), "iceoryx2 receive") else {
            continue;
        };
        let mut reply = need(publisher.loan_slice_uninit(o.size), "iceoryx2 loan");
        peer::write(&mut reply.payload_mut()[8..16], &sample.payload()[8..16]);
        // SAFETY: bytes of mapped memory always have some value; ping reads only the sequence number.
        need(unsafe { reply.assume_init() }.send(), "iceoryx2 send");
        left -= 1;
    }
    orchestrator.wait_stop();
}

/// A node whose files are in the runtime folder of this cell, and in /dev/shm under a prefix of the cell's own.
fn node(o: &Options) -> Node<Service> {
    let folder = peer::runtime_folder().join("iceoryx2");
    let mut config = Config::default();
    let root = need(
        Path::new(folder.as_os_str().as_encoded_bytes()),
        "iceoryx2 root path",
    );
    config.global.set_root_path(&root);
    config.global.prefix = need(FileName::new(prefix(o).as_bytes()), "iceoryx2 prefix");
    let node = NodeBuilder::new()
        .config(&config)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<Service>();
    need(node, "iceoryx2 node")
}

fn payloads(o: &Options, node: &Node<Service>, suffix: &str) -> Payloads {
    let name = need(
        format!("{}{suffix}", o.topic).as_str().try_into(),
        "iceoryx2 service name",
    );
    let service = node
        .service_builder(&name)
        .publish_subscribe::<[u8]>()
        .max_publishers(1)
        .max_subscribers(o.subscribers)
        .max_nodes(o.subscribers * 2 + 2)
        .subscriber_max_buffer_size(DEPTH.max(o.depth))
        .enable_safe_overflow(o.depth > 0)
        .history_size(0)
        .open_or_create();
    need(service, "iceoryx2 service")
}

fn events(o: &Options, node: &Node<Service>) -> Events {
    let name = need(
        format!("{}.sent", o.topic).as_str().try_into(),
        "iceoryx2 service name",
    );
    let service = node
        .service_builder(&name)
        .event()
        .max_listeners(o.subscribers)
        .max_notifiers(o.subscribers + 1)
        .max_nodes(o.subscribers * 2 + 2)
        .event_id_max_value(1)
        .open_or_create();
    need(service, "iceoryx2 event service")
}

/// At a fixed rate a full queue refuses; as fast as possible, publishing waits for room.
fn publisher(o: &Options, payloads: &Payloads, limit: usize) -> Publisher<Service, [u8], ()> {
    let strategy = if o.rate > 0.0 {
        BackpressureStrategy::DiscardData
    } else {
        BackpressureStrategy::RetryUntilDelivered
    };
    let builder = payloads
        .publisher_builder()
        .initial_max_slice_len(o.size)
        .max_loaned_samples(1)
        .backpressure_strategy(strategy);
    let size = o.size;
    let builder = match limit {
        0 => builder,
        _ => builder.override_sample_preallocation(move |worst| worst.min(limit / size)),
    };
    need(builder.create(), "iceoryx2 publisher")
}

fn subscriber(o: &Options, payloads: &Payloads) -> Subscriber<Service, [u8], ()> {
    let depth = if o.depth > 0 { o.depth } else { DEPTH };
    need(
        payloads.subscriber_builder().buffer_size(depth).create(),
        "iceoryx2 subscriber",
    )
}
