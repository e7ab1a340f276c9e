//! Zenoh between peers of one host: `zenoh-tcp` over loopback TCP, `zenoh-shm` with payloads in POSIX shared memory
//! (the descriptors still use loopback TCP).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use peer::{Log, Options, Orchestrator, Program, fail, need};
use zenoh::qos::CongestionControl;
use zenoh::sample::SampleKind;
use zenoh::shm::{
    BlockOn, GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder, ZShmMut,
};
use zenoh::{Config, Session, Wait};

/// Number of messages that fit into the shared memory at once.
const DEPTH: usize = 18;

fn main() {
    let o = peer::parse(&Program {
        systems: &["zenoh-shm", "zenoh-tcp"],
        commands: &["publish", "subscribe"],
    });
    if o.command == "version" {
        return peer::say_version(&o, "1.10.2", &["block"]);
    }
    let orchestrator = Orchestrator::new();
    peer::enter_fifo(&o);
    match o.command.as_str() {
        "publish" => publish(&o, &orchestrator),
        _ => subscribe(&o, &orchestrator),
    }
}

fn publish(o: &Options, orchestrator: &Orchestrator) {
    let session = open(o, "listen");
    let publisher = session
        .declare_publisher(payload_key(o))
        // Zenoh's default drops when its queue is full for a millisecond, which loses messages even at 30 Hz.
        .congestion_control(CongestionControl::Block)
        .express(true)
        .wait();
    let publisher = need(publisher, "zenoh publisher");

    // Each subscriber declares a token after its subscription, and declarations arrive in order.
    let connected = Arc::new(AtomicUsize::new(0));
    let counter = connected.clone();
    let tokens = session
        .liveliness()
        .declare_subscriber(format!("{}/*", token_key(o)))
        .history(true)
        .callback(move |token| {
            match token.kind() {
                SampleKind::Put => counter.fetch_add(1, Ordering::Relaxed),
                SampleKind::Delete => counter.fetch_sub(1, Ordering::Relaxed),
            };
        })
        .wait();
    let _tokens = need(tokens, "zenoh liveliness");
    peer::wait_connected(orchestrator, o.subscribers, || connected.load(Ordering::Relaxed));
    peer::ready_and_go(orchestrator);

    // It must outlive the messages in transit, or the last of them is lost.
    let memory = (o.system == "zenoh-shm").then(|| memory(o));
    if let Some(memory) = &memory {
        peer::send_all(
            o,
            orchestrator,
            || loan(o, memory),
            |loan| peer::uninit(loan),
            |loan| publisher.put(loan).wait().is_ok(),
        );
    } else {
        // The library keeps the vector until it is sent, so each message has its own.
        peer::send_all(
            o,
            orchestrator,
            || Some(vec![MaybeUninit::<u8>::uninit(); o.size]),
            |loan| loan.as_mut_slice(),
            |loan| publisher.put(initialized(loan)).wait().is_ok(),
        );
    }
    orchestrator.wait_stop();
    drop(publisher);
    close(&session);
}

fn memory(o: &Options) -> ShmProvider<PosixShmProviderBackend> {
    // Room for the allocator's own metadata and alignment with each message.
    let each = o.size + 4096;
    let count = if o.limit > 0 {
        (o.limit / o.size).min(DEPTH)
    } else {
        DEPTH
    };
    if count == 0 {
        fail(
            2,
            format!("--limit {} holds no message of --size: raise it", o.limit),
        );
    }
    need(
        ShmProviderBuilder::default_backend(each * count).wait(),
        "zenoh shared memory",
    )
}

fn loan(o: &Options, memory: &ShmProvider<PosixShmProviderBackend>) -> Option<ZShmMut> {
    if o.rate > 0.0 {
        memory.alloc(o.size).with_policy::<GarbageCollect>().wait().ok()
    } else {
        memory
            .alloc(o.size)
            .with_policy::<BlockOn<GarbageCollect>>()
            .wait()
            .ok()
    }
}

/// Converts the vector, which `fill` wrote completely.
fn initialized(bytes: Vec<MaybeUninit<u8>>) -> Vec<u8> {
    let mut bytes = std::mem::ManuallyDrop::new(bytes);
    // SAFETY: the vector's own parts; u8 and MaybeUninit<u8> have one layout, and all bytes are initialized.
    unsafe { Vec::from_raw_parts(bytes.as_mut_ptr().cast(), bytes.len(), bytes.capacity()) }
}

fn subscribe(o: &Options, orchestrator: &Orchestrator) {
    let log = Arc::new(Mutex::new(Log::new(o)));
    let session = open(o, "connect");
    let (callback_log, shared, size) = (log.clone(), o.system == "zenoh-shm", o.size);
    let subscriber = session
        .declare_subscriber(payload_key(o))
        .callback(move |sample| {
            let payload = sample.payload();
            // A large message over TCP has several pieces; the stamp is in the first.
            let first = payload.slices().next().unwrap_or_default();
            // Only this callback and the end lock it.
            let Ok(mut log) = callback_log.lock() else { return };
            log.receive(first);
            if payload.len() != size || shared && payload.as_shm().is_none() {
                fail(
                    1,
                    "zenoh: a message of another size, or one that did not come through shared memory",
                );
            }
        })
        .wait();
    let subscriber = need(subscriber, "zenoh subscriber");
    let token = need(
        session
            .liveliness()
            .declare_token(format!("{}/{}", token_key(o), o.index))
            .wait(),
        "zenoh liveliness",
    );
    peer::say("ready");
    orchestrator.wait_stop();
    let _ = subscriber.undeclare().wait();
    let _ = token.undeclare().wait();
    close(&session);
    if let Ok(log) = log.lock() {
        log.print();
    }
}

/// Closes the session, and removes the files in /dev/shm that the library leaves: those that this process has mapped.
/// Other processes that have mapped them keep them.
fn close(session: &Session) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let _ = session.close().wait();
    for path in maps.lines().filter_map(|line| line.split_whitespace().nth(5)) {
        if path.starts_with("/dev/shm/") && path.ends_with(".zenoh") {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn payload_key(o: &Options) -> String {
    format!("ropewalk/payload/{}", o.file_name())
}

fn token_key(o: &Options) -> String {
    format!("ropewalk/token/{}", o.file_name())
}

/// The publisher listens on a loopback port derived from the cell, and subscribers retry to connect until it is there.
/// There is no scouting, so nothing leaves or enters this host.
fn open(o: &Options, side: &str) -> Session {
    let mut hasher = DefaultHasher::new();
    (peer::runtime_folder(), &o.system, &o.topic).hash(&mut hasher);
    let endpoint = format!("[\"tcp/127.0.0.1:{}\"]", 20000 + hasher.finish() % 12000);
    let mut config = Config::default();
    let other = if side == "listen" { "connect" } else { "listen" };
    for (key, value) in [
        ("mode", "\"peer\""),
        (&format!("{side}/endpoints"), &endpoint),
        (&format!("{other}/endpoints"), "[]"),
        ("connect/timeout_ms", "-1"),
        ("connect/exit_on_failure", "false"),
        (
            "connect/retry",
            "{period_init_ms: 20, period_max_ms: 100, period_increase_factor: 2}",
        ),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
        (
            "transport/shared_memory/enabled",
            if o.system == "zenoh-shm" { "true" } else { "false" },
        ),
        (
            "transport/shared_memory/mode",
            if o.system == "zenoh-shm" {
                "\"init\""
            } else {
                "\"lazy\""
            },
        ),
    ] {
        need(config.insert_json5(key, value), key);
    }
    let what = format!(
        "zenoh cannot listen at {endpoint}, which follows from --topic and the runtime folder; choose another topic"
    );
    need(zenoh::open(config).wait(), &what)
}
