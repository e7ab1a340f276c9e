//! Calls between hosts: services of one bus for callers on another, over real sockets. What happens to the
//! calls on the air is tested in virtual time, in `src/engine/calls/tests`.

use crate::common::*;
use bus::{CallError, Client, ClientOptions, Reply, Request, Server, ServerOptions, ServiceType};
use link::{Failure, ServiceRole, ServiceState, ServiceStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

fn service(name: &str) -> ServiceType {
    ServiceType {
        service: name.into(),
        type_name: "test_srvs/Blob".into(),
        type_hash: [9; 16],
        flavour: Default::default(),
        definition: "uint8[] data\n---\nuint8[] data\n".into(),
    }
}

/// A server that runs until it is dropped.
struct Serving {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// A server's answer: a control part and data parts, its error, or nothing at all for now.
type Answer = Result<Option<(Vec<u8>, Vec<Vec<u8>>)>, String>;

impl Serving {
    fn start(
        host: &Host,
        kind: ServiceType,
        answer: impl Fn(&Request) -> Answer + Send + 'static,
    ) -> Serving {
        let options = ServerOptions::default().with_depth(256).with_max_held(256);
        let server = host.bus.server(kind, options).expect("serves");
        let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (stop.clone(), calls.clone());
        let thread = std::thread::spawn(move || {
            let mut kept = Vec::new();
            while !stopped.load(Ordering::Acquire) {
                let Some(request) = server.take_timeout(Duration::from_millis(20)).expect("takes") else {
                    continue;
                };
                count.fetch_add(1, Ordering::AcqRel);
                match answer(&request) {
                    Ok(Some((control, parts))) => respond(&server, request, &control, &parts),
                    Ok(None) => kept.push(request),
                    Err(text) => drop(server.reject(request, &text)),
                }
            }
            // As if the process ended: the server is gone before its requests are dropped.
            drop(server);
            drop(kept);
        });
        Serving {
            stop,
            calls,
            thread: Some(thread),
        }
    }

    /// Answers with the request's content.
    fn echo(host: &Host, name: &str) -> Serving {
        Self::start(host, service(name), |r| {
            Ok(Some((r.control().to_vec(), parts(r.message()))))
        })
    }

    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn respond(server: &Server, request: Request, control: &[u8], parts: &[Vec<u8>]) {
    let lens: Vec<usize> = parts.iter().map(Vec::len).collect();
    let mut loan = server.loan(control.len(), &lens).expect("a loan");
    loan.control_mut().copy_from_slice(control);
    for (i, part) in parts.iter().enumerate() {
        loan.part_mut(i).copy_from_slice(part);
    }
    // Its caller may be gone.
    let _ = server.respond(request, loan);
}

fn parts(message: &bus::Message) -> Vec<Vec<u8>> {
    (0..message.part_count())
        .map(|i| {
            let mut part = vec![0; message.part_len(i)];
            message.part(i).copy_to(0, &mut part);
            part
        })
        .collect()
}

fn client(host: &Host, name: &str) -> Client {
    let options = ClientOptions::default().with_max_outstanding(256);
    host.bus.client(service(name), options).expect("a client")
}

/// A client whose server is present.
fn connected(host: &Host, name: &str) -> Client {
    let client = client(host, name);
    assert!(
        client.wait_for_server(LONG).expect("waits"),
        "{name} is not served"
    );
    client
}

fn call(client: &Client, control: &[u8], parts: &[&[u8]], timeout: Duration) -> Result<Reply, CallError> {
    let lens: Vec<usize> = parts.iter().map(|p| p.len()).collect();
    let mut loan = client.loan(control.len(), &lens).expect("a loan");
    loan.control_mut().copy_from_slice(control);
    for (i, part) in parts.iter().enumerate() {
        loan.part_mut(i).copy_from_slice(part);
    }
    client.call(loan, timeout)
}

fn rejection(result: Result<Reply, CallError>) -> String {
    match result {
        Err(CallError::Rejected { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

/// Why the link rejected a call, and its text.
fn failure(result: Result<Reply, CallError>) -> (Failure, String) {
    let failure = result.as_ref().err().and_then(Failure::of).expect("is rejected");
    (failure, rejection(result))
}

fn robot(own: u16, base: u16, rest: &str, services: &str) -> Host {
    Host::start(&format!(
        "host: robot
radio: {{bind: '127.0.0.1:{own}', rate: 600Mbit/s}}
peers: [{{name: base, address: '127.0.0.1:{base}'{rest}}}]
services: [{services}]
"
    ))
}

fn base(own: u16, robot: u16, services: &str) -> Host {
    Host::start(&format!(
        "host: base
radio: {{bind: '127.0.0.1:{own}', rate: 600Mbit/s}}
peers: [{{name: robot, address: '127.0.0.1:{robot}'}}]
services: [{services}]
"
    ))
}

/// A robot that serves `/grasp`, and a base that calls it.
fn pair() -> (Host, Host) {
    let [x, y] = ports();
    let robot = robot(x, y, "", "{name: /grasp, role: serve, depth: 64}");
    (
        robot,
        base(y, x, "{name: /grasp, role: call, from: robot, depth: 64}"),
    )
}

fn status(host: &Host) -> ServiceStatus {
    let all = host.status().services;
    all.into_iter().next().expect("a service is configured")
}

/// Checks that every call is open, answered or failed, once the status has caught up.
fn settled(host: &Host, role: ServiceRole, calls: u64, answered: u64, failed: &[(Failure, u64)]) {
    let mut last = None;
    let start = Instant::now();
    loop {
        let s = status(host);
        let failed_there: Vec<(Failure, u64)> = s.failed.iter().map(|(f, n)| (*f, *n)).collect();
        assert_eq!(
            s.calls,
            s.answered + s.open + failed_there.iter().map(|f| f.1).sum::<u64>(),
            "{s:?}"
        );
        if (s.role, s.calls, s.answered, s.open) == (role, calls, answered, 0) && failed_there == failed {
            return;
        }
        last.replace(s);
        assert!(
            start.elapsed() < LONG,
            "never {calls} {answered} {failed:?}: {last:?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_call_crosses_and_the_servers_answer_or_error_comes_back() {
    let (robot, base) = pair();
    let early = client(&base, "/grasp");
    assert!(matches!(
        call(&early, b"x", &[], LONG),
        Err(CallError::NoServer { .. })
    ));
    until("the status shows it", || {
        let all = base.status().services;
        all.first().is_some_and(|s| s.state == ServiceState::NotOffered)
    });
    let grasping = Serving::start(&robot, service("/grasp"), |r| match r.control() {
        b"cup" => Ok(Some((b"held".to_vec(), parts(r.message())))),
        _ => Err("out of reach".into()),
    });
    assert!(early.wait_for_server(LONG).expect("waits"));
    let reply = call(&early, b"cup", &[b"", b"part"], LONG).expect("an answer");
    assert_eq!(reply.control(), b"held");
    assert_eq!(parts(reply.message()), [b"".to_vec(), b"part".to_vec()]);
    let of_server = failure(call(&early, b"moon", &[], LONG));
    assert_eq!(of_server, (Failure::Rejected, "out of reach".into()));
    let empty = rejection(call(&early, b"", &[], LONG));
    assert_eq!(empty, "out of reach", "a request may be empty");
    let failed = [(Failure::Rejected, 2)];
    settled(&base, ServiceRole::Call, 3, 1, &failed);
    settled(&robot, ServiceRole::Serve, 3, 1, &failed);
    assert_eq!(grasping.calls(), 3);
    let (there, here) = (status(&robot), status(&base));
    assert_eq!(
        (there.state, here.state),
        (ServiceState::Ready, ServiceState::Ready)
    );
    assert_eq!(here.type_name.as_deref(), Some("test_srvs/Blob"));
    assert_eq!(here.request_bytes, there.request_bytes);
    // The link's internal topics of services are not among those of users.
    let bus = base.bus.services(Duration::from_secs(1)).expect("a survey");
    assert!(
        bus.iter()
            .any(|s| s.service.service == "/grasp" && s.servers.len() == 1)
    );
}

#[test]
fn large_requests_and_replies_stay_whole() {
    let (robot, base) = pair();
    let _echo = Serving::echo(&robot, "/grasp");
    let client = connected(&base, "/grasp");
    let noise: Vec<u8> = (0..2_000_003u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    for n in [0, 1, 100_000, noise.len()] {
        let reply = call(
            &client,
            &noise[..n.min(50_000)],
            &[&noise[..n], &noise[..n / 2]],
            LONG,
        );
        let reply = reply.unwrap_or_else(|e| panic!("{n}: {e}"));
        assert!(
            reply.control() == &noise[..n.min(50_000)],
            "{n}: the control part differs"
        );
        assert!(
            parts(reply.message()) == [&noise[..n], &noise[..n / 2]],
            "{n}: a data part differs"
        );
    }
    // A request larger than the radio's queue fails at once, with a reason.
    let huge = vec![1; 9 << 20];
    let (why, text) = failure(call(&client, b"", &[&huge], LONG));
    assert!(
        why == Failure::Dropped && text.contains("radio.queue_bytes"),
        "{text}"
    );
    settled(&base, ServiceRole::Call, 5, 4, &[(Failure::Dropped, 1)]);
}

#[test]
fn many_callers_each_get_their_own_answer() {
    let (robot, base) = pair();
    let echo = Serving::echo(&robot, "/grasp");
    let base = Arc::new(base);
    let callers: Vec<_> = (0..8u32)
        .map(|caller| {
            let base = base.clone();
            std::thread::spawn(move || {
                let client = connected(&base, "/grasp");
                for n in 0..40u32 {
                    let text = format!("{caller} {n}");
                    let reply = call(&client, text.as_bytes(), &[text.as_bytes()], LONG);
                    let reply = reply.unwrap_or_else(|e| panic!("{text}: {e}"));
                    assert_eq!(reply.control(), text.as_bytes());
                    assert_eq!(parts(reply.message()), [text.as_bytes()]);
                }
            })
        })
        .collect();
    callers
        .into_iter()
        .for_each(|c| c.join().expect("all are answered"));
    assert_eq!(echo.calls(), 320);
    settled(&base, ServiceRole::Call, 320, 320, &[]);
    settled(&robot, ServiceRole::Serve, 320, 320, &[]);
}

#[test]
fn a_server_that_dies_during_a_call_is_reported_and_its_successor_is_called() {
    let (robot, base) = pair();
    let silent = Serving::start(&robot, service("/grasp"), |_| Ok(None));
    let client = connected(&base, "/grasp");
    let mut loan = client.loan(0, &[]).expect("a loan");
    loan.control_mut().fill(0);
    let pending = client.send(loan, LONG).expect("sends");
    until("the server has it", || silent.calls() == 1);
    drop(silent);
    let result = pending.wait();
    assert!(matches!(result, Err(CallError::ServerDied { .. })), "{result:?}");
    let result = call(&client, b"", &[], LONG);
    assert!(matches!(result, Err(CallError::NoServer { .. })), "{result:?}");
    // Of another type this time: the bus refuses a caller with the old one, as without a link.
    let other = ServiceType {
        type_name: "test_srvs/Other".into(),
        type_hash: [8; 16],
        ..service("/grasp")
    };
    let changed = Serving::start(&robot, other.clone(), |_| Ok(Some((b"other".to_vec(), vec![]))));
    let by_new = base
        .bus
        .client(other, ClientOptions::default())
        .expect("a client");
    assert!(by_new.wait_for_server(LONG).expect("waits"));
    assert_eq!(
        call(&by_new, b"", &[], LONG).expect("an answer").control(),
        b"other"
    );
    assert!(!client.has_server());
    drop(changed);
    let _again = Serving::echo(&robot, "/grasp");
    assert!(client.wait_for_server(LONG).expect("waits"));
    assert_eq!(
        call(&client, b"back", &[], LONG).expect("an answer").control(),
        b"back"
    );
}

#[test]
fn a_link_that_dies_during_a_call_makes_the_peer_unreachable_until_it_is_back() {
    let (mut robot, base) = pair();
    let served = Serving::start(&robot, service("/grasp"), |r| match r.control() {
        b"stay" => Ok(None),
        _ => Ok(Some((b"done".to_vec(), vec![]))),
    });
    let client = connected(&base, "/grasp");
    let mut loan = client.loan(4, &[]).expect("a loan");
    loan.control_mut().copy_from_slice(b"stay");
    let pending = client.send(loan, LONG).expect("sends");
    until("the server has it", || served.calls() == 1);
    let start = Instant::now();
    robot.stop_link();
    let (why, text) = failure(pending.wait());
    assert!(why == Failure::Unreachable && text.contains("robot"), "{text}");
    println!("reported after {:?}", start.elapsed());
    until("it is no longer served", || !client.has_server());
    let result = call(&client, b"", &[], LONG);
    assert!(matches!(result, Err(CallError::NoServer { .. })), "{result:?}");
    settled(&base, ServiceRole::Call, 1, 0, &[(Failure::Unreachable, 1)]);
    // Restarted, also while its server is not running: its earlier offers are void.
    drop(served);
    robot.start_link();
    until("the link is back", || base.status().peers[0].stats.up);
    assert!(!client.has_server());
    let served = Serving::echo(&robot, "/grasp");
    assert!(client.wait_for_server(LONG).expect("waits"));
    assert_eq!(
        call(&client, b"done", &[], LONG).expect("an answer").control(),
        b"done"
    );
    assert_eq!(served.calls(), 1, "nothing was executed twice");
}

#[test]
fn a_server_that_restarts_at_once_leaves_no_caller_waiting() {
    let (robot, base) = pair();
    let mut silent = Serving::start(&robot, service("/grasp"), |_| Ok(None));
    let client = connected(&base, "/grasp");
    for round in 0..4 {
        let mut pending = None;
        until("a request is sent", || {
            let loan = client.loan(0, &[]).expect("a loan");
            pending = client.send(loan, LONG).ok();
            pending.is_some()
        });
        std::thread::sleep(Duration::from_millis(50));
        drop(silent);
        let echo = Serving::echo(&robot, "/grasp");
        // Whatever the outcome, and whichever server got the request, the caller receives a result.
        let result = pending.expect("was sent").wait();
        assert!(
            !matches!(result, Err(CallError::Timeout { .. })),
            "round {round}: {result:?}"
        );
        drop(echo);
        silent = Serving::start(&robot, service("/grasp"), |_| Ok(None));
    }
}

#[test]
fn the_answer_of_a_server_that_ends_with_it_arrives() {
    let (robot, base) = pair();
    for round in 0..5u8 {
        let server = robot
            .bus
            .server(service("/grasp"), ServerOptions::default())
            .expect("serves");
        let client = connected(&base, "/grasp");
        let once = std::thread::spawn(move || {
            let request = server.take_timeout(LONG).expect("takes").expect("a request");
            respond(&server, request, b"going down", &[vec![1; 100_000]]);
        });
        let reply = call(&client, &[round], &[], LONG).unwrap_or_else(|e| panic!("round {round}: {e}"));
        assert_eq!(reply.control(), b"going down");
        once.join().expect("no panic");
        until("it is gone here too", || !client.has_server());
    }
}

#[test]
fn a_peer_without_permission_to_call_is_refused_with_the_reason() {
    let [x, y] = ports();
    let services = "{name: /grasp, role: serve}, {name: /look, role: serve}";
    let robot = robot(x, y, ", allow: {call: [/look]}", services);
    let base = base(y, x, "{name: /grasp, role: call}, {name: /look, role: call}");
    let (grasp, look) = (Serving::echo(&robot, "/grasp"), Serving::echo(&robot, "/look"));
    let allowed = connected(&base, "/look");
    assert_eq!(
        call(&allowed, b"up", &[], LONG).expect("an answer").control(),
        b"up"
    );
    let refused = connected(&base, "/grasp");
    let (why, text) = failure(call(&refused, b"cup", &[], LONG));
    assert!(
        why == Failure::Refused && text.contains("`allow: call`"),
        "{text}"
    );
    let (why, _) = failure(call(&refused, b"cup", &[], LONG));
    assert_eq!(why, Failure::Refused);
    assert_eq!((grasp.calls(), look.calls()), (0, 1));
    settled(&base, ServiceRole::Call, 2, 0, &[(Failure::Refused, 2)]);
    until("both ends report it", || {
        [&base, &robot]
            .iter()
            .all(|h| status(h).state == ServiceState::Refused)
    });
    until("the refusal is counted", || {
        robot.status().peers[0].refused_topics >= 1
    });
}

#[test]
fn a_call_ends_when_its_time_or_the_services_is_over() {
    let [x, y] = ports();
    let robot = robot(x, y, "", "{name: /grasp, role: serve}");
    let base = base(y, x, "{name: /grasp, role: call, timeout: 300ms}");
    let silent = Serving::start(&robot, service("/grasp"), |r| {
        assert!(r.time_left() <= Duration::from_millis(300), "{:?}", r.time_left());
        Ok(None)
    });
    let client = connected(&base, "/grasp");
    let result = call(&client, b"", &[], Duration::from_millis(100));
    assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");
    let (why, _) = failure(call(&client, b"", &[], LONG));
    assert_eq!(why, Failure::TimedOut);
    settled(&base, ServiceRole::Call, 2, 0, &[(Failure::TimedOut, 2)]);
    settled(&robot, ServiceRole::Serve, 2, 0, &[(Failure::TimedOut, 2)]);
    assert_eq!(silent.calls(), 2);
}

/// Held by tests that measure the shared memory of their process.
static MEASURED: Mutex<()> = Mutex::new(());

/// Bytes of this process's shared memory, which contains all hosts of a test, and small messages of others.
fn shared() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut seen = std::collections::BTreeMap::new();
    for fd in std::fs::read_dir("/proc/self/map_files").expect("reads") {
        let path = fd.expect("an entry").path();
        let is_ours = std::fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:"));
        if let Some(about) = is_ours.then(|| std::fs::metadata(&path).ok()).flatten() {
            seen.insert(about.ino(), about.blocks() * 512);
        }
    }
    seen.values().sum()
}

#[test]
fn calls_of_one_peer_take_no_memory_from_others_and_return_it() {
    let _alone = MEASURED.lock();
    let [x, y, z] = ports();
    let server = Host::start(&format!(
        "host: server
radio: {{bind: '127.0.0.1:{x}', rate: unlimited, queue_bytes: 128MiB}}
peers:
  - {{name: greedy, address: '127.0.0.1:{y}'}}
  - {{name: base, address: '127.0.0.1:{z}'}}
services: [{{name: /grasp, role: serve}}]
"
    ));
    let caller = |name: &str, own: u16| {
        Host::start(&format!(
            "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: unlimited, queue_bytes: 128MiB}}
peers: [{{name: server, address: '127.0.0.1:{x}'}}]
services: [{{name: /grasp, role: call}}]
"
        ))
    };
    let (greedy, base) = (caller("greedy", y), caller("base", z));
    // It keeps some requests for long, and answers the rest.
    let grasp = Serving::start(&server, service("/grasp"), |r| {
        Ok((r.control() != b"keep").then(|| (r.control().to_vec(), vec![])))
    });
    let (large, small) = (vec![7; 30 << 20], vec![8; 10 << 20]);
    let ask = || {
        let client = connected(&base, "/grasp");
        let reply = call(&client, b"go", &[&small], LONG);
        assert_eq!(reply.expect("an answer").control(), b"go");
    };
    ask();
    // The rest is what small messages need.
    let mut least = u64::MAX;
    until("the memory of requests is freed", || {
        least = least.min(shared());
        least < 4 << 20
    });
    let asking = connected(&greedy, "/grasp");
    let mut asked: Vec<_> = (0..2)
        .map(|_| {
            let loan = asking.loan(4, &[large.len()]);
            let mut loan = loan.expect("a loan");
            loan.control_mut().copy_from_slice(b"keep");
            loan.part_mut(0).copy_from_slice(&large);
            asking.send(loan, LONG * 2).expect("is sent")
        })
        .collect();
    until("both are kept", || {
        let ended = asked.iter_mut().find_map(|call| call.poll());
        assert!(ended.is_none(), "{ended:?}");
        grasp.calls() == 2
    });
    ask();
    drop(asked);
}

#[test]
fn replies_that_callers_keep_fill_their_service_alone_and_are_given_back() {
    let _alone = MEASURED.lock();
    let [x, y] = ports();
    let end = |name: &str, own: u16, other: &str, port: u16, role: &str| {
        Host::start(&format!(
            "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: unlimited, queue_bytes: 128MiB}}
peers: [{{name: {other}, address: '127.0.0.1:{port}'}}]
services: [{{name: /grasp, role: {role}}}, {{name: /look, role: {role}}}]
"
        ))
    };
    let robot = end("robot", x, "base", y, "serve");
    let base = end("base", y, "robot", x, "call");
    let large = vec![7; 30 << 20];
    let _grasp = Serving::start(&robot, service("/grasp"), move |r| {
        let parts = if r.control() == b"large" {
            vec![large.clone()]
        } else {
            vec![]
        };
        Ok(Some((r.control().to_vec(), parts)))
    });
    let _look = Serving::echo(&robot, "/look");
    let callers: Vec<Client> = (0..9).map(|_| connected(&base, "/grasp")).collect();
    let look = connected(&base, "/look");
    // A client keeps at most an eighth of the memory, so eight of them fill it.
    let (last, others) = callers.split_last().expect("nine");
    let keep = |c| call(c, b"large", &[], LONG).expect("an answer");
    let kept: Vec<Reply> = others.iter().map(keep).collect();
    assert!(shared() > 240 << 20);
    let more = call(last, b"large", &[], Duration::from_secs(3));
    assert!(more.is_err(), "{more:?}");
    assert!(shared() < 320 << 20, "{}", shared());
    for (caller, control) in [(last, b"small"), (&look, b"small")] {
        let reply = call(caller, control, &[], LONG).expect("an answer");
        assert_eq!(reply.control(), control);
    }
    drop(kept);
    // The rest is the server's own message, at the robot.
    let mut least = u64::MAX;
    until("the memory of replies is freed", || {
        least = least.min(shared());
        least < 40 << 20
    });
    keep(last);
}

#[test]
fn calls_go_over_a_relay_and_only_to_their_receiver() {
    let [x, y, z] = ports();
    let end = |name: &str, own: u16, other: &str, services: &str| {
        Host::start(&format!(
            "host: {name}
radio: {{bind: '127.0.0.1:{own}', rate: 600Mbit/s}}
peers:
  - {{name: {other}}}
  - {{name: relay, address: '127.0.0.1:{y}', relay: true, allow: {{}}}}
services: [{services}]
"
        ))
    };
    let robot = end("robot", x, "base", "{name: /grasp, role: serve}");
    let base = end(
        "base",
        z,
        "robot",
        "{name: /grasp, role: call, from: robot, timeout: 20s}",
    );
    let middle = Host::start(&format!(
        "host: relay
radio: {{bind: '127.0.0.1:{y}', rate: 600Mbit/s}}
relay: [/grasp]
peers:
  - {{name: robot, address: '127.0.0.1:{x}'}}
  - {{name: base, address: '127.0.0.1:{z}'}}
"
    ));
    let echo = Serving::echo(&robot, "/grasp");
    let client = connected(&base, "/grasp");
    let large = vec![3; 300_000];
    for n in 0..10u8 {
        let reply = call(&client, &[n], &[&large], LONG).unwrap_or_else(|e| panic!("{n}: {e}"));
        assert_eq!(
            (reply.control(), parts(reply.message())),
            (&[n][..], vec![large.clone()])
        );
    }
    assert_eq!(echo.calls(), 10);
    settled(&base, ServiceRole::Call, 10, 10, &[]);
    let at_relay = middle.bus.services(Duration::from_secs(1)).expect("a survey");
    assert!(at_relay.iter().all(|s| s.service.service != "/grasp"));
    drop(middle);
    until("the robot is no longer served", || !client.has_server());
}
