//! Services: each request reaches one server, each reply its request, and every failure has its own error.
#![allow(missing_docs)]

mod common;

use bus::{
    Bus, CallError, Client, ClientOptions, PublisherOptions, Reply, Request, RespondError, Server,
    ServerOptions, ServiceType, Stamp, SubscriberOptions, TopicType,
};
use common::{LONG, Random, bus, eventually, folder};
use rustix::event::{PollFd, PollFlags, poll};
use stats::DropReason;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(50);

fn service(name: &str) -> ServiceType {
    ServiceType {
        service: name.into(),
        type_name: "test_srvs/Echo".into(),
        type_hash: [0x5A; 16],
        flavour: Default::default(),
        definition: "uint8[] data\n---\nuint8[] data\n".into(),
    }
}

fn client(bus: &Bus, name: &str) -> Client {
    bus.client(service(name), ClientOptions::default()).unwrap()
}

fn server(bus: &Bus, name: &str) -> Server {
    bus.server(service(name), ServerOptions::default()).unwrap()
}

fn pair(bus: &Bus, name: &str) -> (Client, Server) {
    let pair = (client(bus, name), server(bus, name));
    assert!(pair.0.wait_for_server(LONG).unwrap());
    pair
}

fn request(client: &Client, value: u64) -> bus::Loan {
    let mut loan = client.loan(8, &[]).unwrap();
    loan.control_mut().copy_from_slice(&value.to_le_bytes());
    loan
}

fn value(control: &[u8]) -> u64 {
    u64::from_le_bytes(control.try_into().unwrap())
}

fn answer(server: &Server, request: Request, value: u64) -> Result<(), RespondError> {
    let mut loan = server.loan(8, &[]).unwrap();
    loan.control_mut().copy_from_slice(&value.to_le_bytes());
    server.respond(request, loan)
}

fn take(server: &Server) -> Request {
    server.take_timeout(LONG).unwrap().expect("a request")
}

fn readable(fd: &impl AsFd) -> bool {
    let now = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)).unwrap() > 0
}

fn ok(outcome: Result<Reply, CallError>) -> u64 {
    value(outcome.unwrap().control())
}

#[test]
fn every_reply_finds_its_request_among_many_clients_and_threads() {
    const CLIENTS: u64 = 5;
    const THREADS: u64 = 4;
    const CALLS: u64 = 100;
    let dir = folder();
    let buses = [bus(&dir), bus(&dir)];
    let server = server(&buses[0], "/square");
    let clients: Vec<_> = (0..CLIENTS).map(|_| client(&buses[1], "/square")).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // Two at a time, answered in reverse order.
                    let first = server.take_timeout(SHORT).unwrap();
                    let second = server.take().unwrap();
                    for request in [second, first].into_iter().flatten() {
                        let n = value(request.control());
                        answer(&server, request, n * n).unwrap();
                    }
                }
            });
        }
        std::thread::scope(|scope| {
            for (c, client) in (0..).zip(&clients) {
                for t in 0..THREADS {
                    scope.spawn(move || {
                        assert!(client.wait_for_server(LONG).unwrap());
                        for i in 0..CALLS {
                            let n = c << 20 | t << 16 | i;
                            let reply = client.call(request(client, n), LONG);
                            assert_eq!(ok(reply), n * n);
                        }
                    });
                }
            }
        });
        done.store(true, Ordering::Relaxed);
    });
    let stats = server.stats();
    assert_eq!(stats.answered, CLIENTS * THREADS * CALLS, "{stats:?}");
    for client in &clients {
        let stats = client.stats();
        assert_eq!(
            (stats.answered, stats.outstanding),
            (THREADS * CALLS, 0),
            "{stats:?}"
        );
    }
}

#[test]
fn many_requests_are_answered_in_any_order() {
    let dir = folder();
    let bus = bus(&dir);
    let (client, server) = pair(&bus, "/any");
    let pending: Vec<_> = (0..16)
        .map(|n| client.send(request(&client, n), LONG).unwrap())
        .collect();
    let mut taken: Vec<_> = (0..16).map(|_| take(&server)).collect();
    assert_eq!(taken[3].number(), 4);
    assert_eq!(taken[3].client(), client.id());
    let mut random = Random(3);
    while !taken.is_empty() {
        let request = taken.swap_remove(random.next(taken.len() as u64) as usize);
        let n = value(request.control());
        answer(&server, request, n + 100).unwrap();
    }
    for (n, pending) in (0..).zip(pending) {
        assert_eq!(ok(pending.wait()), n + 100);
    }
}

#[test]
fn bytes_go_both_ways_without_a_copy() {
    let dir = folder();
    let buses = [bus(&dir), bus(&dir)];
    let (client, server) = (client(&buses[0], "/big"), server(&buses[1], "/big"));
    assert!(client.wait_for_server(LONG).unwrap());
    let mut loan = client.loan(0, &[1_000_000, 7]).unwrap();
    loan.parts_mut().for_each(|part| part.fill(1));
    let asked = loan.part_ptr(0).unwrap();
    let pending = client.send(loan, LONG).unwrap();
    let request = take(&server);
    assert_eq!((request.part(0).bytes()[999_999], request.part_count()), (1, 2));
    // The server reads what is now in the client's memory.
    client.poison(asked, 1_000_000, 2);
    assert_eq!(request.part(0).bytes()[999_999], 2);

    let mut loan = server.loan(3, &[2_000_000]).unwrap();
    loan.control_mut().copy_from_slice(b"abc");
    loan.part_mut(0).fill(3);
    let answered = loan.part_ptr(0).unwrap();
    server.respond(request, loan).unwrap();
    let reply = pending.wait().unwrap();
    assert_eq!(
        (reply.control(), reply.part(0).bytes()[1_999_999]),
        (&b"abc"[..], 3)
    );
    server.poison(answered, 2_000_000, 4);
    assert_eq!(reply.part(0).bytes()[1_999_999], 4);
}

#[test]
fn silence_is_a_timeout_and_late_requests_are_not_carried_out() {
    let dir = folder();
    let bus = bus(&dir);
    let (client, server) = pair(&bus, "/slow");
    let error = client.call(request(&client, 1), SHORT).unwrap_err();
    assert!(
        matches!(&error, CallError::Timeout { waited, .. } if *waited == SHORT),
        "{error}"
    );
    assert!(error.to_string().contains("/slow"), "{error}");
    // It is still queued, and is not returned.
    let pending = client.send(request(&client, 2), LONG).unwrap();
    let taken = take(&server);
    assert_eq!(value(taken.control()), 2);
    assert_eq!(server.stats().expired, 1);
    // A reply that nobody waits for is not sent.
    let hurried = client.send(request(&client, 3), SHORT).unwrap();
    let slow = take(&server);
    assert!(matches!(hurried.wait().unwrap_err(), CallError::Timeout { .. }));
    assert!(matches!(answer(&server, slow, 3), Err(RespondError::Expired)));
    assert_eq!(server.stats().expired, 2);
    answer(&server, taken, 20).unwrap();
    assert_eq!(ok(pending.wait()), 20);
    assert_eq!(client.stats().timed_out, 2);
}

#[test]
fn a_full_queue_is_reported_at_once() {
    let dir = folder();
    let bus = bus(&dir);
    let server = bus
        .server(service("/full"), ServerOptions::default().with_depth(2))
        .unwrap();
    let client = client(&bus, "/full");
    assert!(client.wait_for_server(LONG).unwrap());
    let pending = [1, 2].map(|n| client.send(request(&client, n), LONG).unwrap());
    let error = client.call(request(&client, 3), LONG).unwrap_err();
    assert!(
        matches!(
            error,
            CallError::Dropped {
                reason: DropReason::QueueFull,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("queue_full") && error.to_string().contains("depth"),
        "{error}"
    );
    // The requests before it are executed, and the server learns of the refusal.
    for n in 1..=2 {
        let request = take(&server);
        assert_eq!(value(request.control()), n);
        answer(&server, request, n).unwrap();
    }
    assert_eq!(pending.map(|p| ok(p.wait())), [1, 2]);
    let last = client.send(request(&client, 4), LONG).unwrap();
    let taken = take(&server);
    assert_eq!(taken.lost().count(DropReason::QueueFull), 1);
    answer(&server, taken, 4).unwrap();
    assert_eq!(ok(last.wait()), 4);
    assert_eq!(client.stats().refused, 1);
}

#[test]
fn without_a_server_a_call_fails_at_once_and_a_late_one_can_be_awaited() {
    let dir = folder();
    let bus = bus(&dir);
    let client = client(&bus, "/late");
    let error = client.call(request(&client, 1), LONG).unwrap_err();
    assert!(matches!(error, CallError::NoServer { .. }), "{error}");
    assert!(!client.wait_for_server(SHORT).unwrap() && !client.has_server());
    std::thread::scope(|scope| {
        // Several wait, and all are woken.
        let waiting: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| client.wait_for_server(LONG).unwrap()))
            .collect();
        std::thread::sleep(SHORT);
        let server = server(&bus, "/late");
        assert!(waiting.into_iter().all(|w| w.join().unwrap()));
        let pending = client.send(request(&client, 2), LONG).unwrap();
        answer(&server, take(&server), 3).unwrap();
        assert_eq!(ok(pending.wait()), 3);
    });
}

#[test]
fn a_server_says_no_in_its_own_words_or_by_silence() {
    let dir = folder();
    let bus = bus(&dir);
    let (client, server) = pair(&bus, "/no");
    let mut pending: Vec<_> = (0..3)
        .map(|n| client.send(request(&client, n), LONG).unwrap())
        .collect();
    server.reject(take(&server), "the gripper is open").unwrap();
    let long = "ä".repeat(1000);
    server.reject(take(&server), &long).unwrap();
    drop(take(&server));
    let mut text = || match pending.remove(0).wait().unwrap_err() {
        CallError::Rejected { code: 0, text } => text,
        other => panic!("{other}"),
    };
    assert_eq!(text(), "the gripper is open");
    assert_eq!(text(), "ä".repeat(bus::MAX_REJECTION / 2));
    assert_eq!(text(), "the server dropped the request unanswered");
    let pending = client.send(request(&client, 3), LONG).unwrap();
    server.reject_as(take(&server), 4, "16 calls are open").unwrap();
    let error = pending.wait().unwrap_err();
    assert!(matches!(error, CallError::Rejected { code: 4, .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the call failed between hosts: 16 calls are open"
    );
    assert_eq!(server.stats().rejected, 4);
}

#[test]
fn each_request_goes_to_one_server_and_to_another_when_that_is_gone() {
    let dir = folder();
    let bus = bus(&dir);
    let client = client(&bus, "/two");
    let mut servers = vec![server(&bus, "/two"), server(&bus, "/two")];
    servers.iter().for_each(|s| assert!(s.wait_for_clients(1, LONG)));
    assert!(client.wait_for_server(LONG).unwrap());
    let count = |servers: &[Server]| servers.iter().map(|s| s.stats().taken).collect::<Vec<_>>();
    for round in 1..=5 {
        let pending = client.send(request(&client, round), LONG).unwrap();
        let mut found = None;
        eventually("one has it", || {
            found = servers.iter().find_map(|s| Some((s, s.take().unwrap()?)));
            found.is_some()
        });
        let (server, request) = found.unwrap();
        answer(server, request, round).unwrap();
        assert_eq!(ok(pending.wait()), round);
        assert!(
            servers.iter().all(|s| s.take().unwrap().is_none()),
            "nobody else has it"
        );
    }
    let mut taken = count(&servers);
    let used = taken.iter().position(|n| *n == 5).expect("it keeps to one");
    taken.remove(used);
    assert_eq!(taken, [0]);

    // A request that waits at the server that leaves ends at once; the next request goes to the other server.
    let lost = client.send(request(&client, 6), LONG).unwrap();
    drop(servers.remove(used));
    let error = lost.wait().unwrap_err();
    assert!(matches!(error, CallError::ServerDied { .. }), "{error}");
    assert!(client.wait_for_server(LONG).unwrap());
    let pending = client.send(request(&client, 7), LONG).unwrap();
    answer(&servers[0], take(&servers[0]), 8).unwrap();
    assert_eq!(ok(pending.wait()), 8);
}

#[test]
fn different_types_are_named() {
    let dir = folder();
    let bus = bus(&dir);
    let client = client(&bus, "/typed");
    let other = ServiceType {
        type_hash: [0x11; 16],
        ..service("/typed")
    };
    let server = bus.server(other, ServerOptions::default()).unwrap();
    let named = |reasons: Vec<bus::Refusal>| {
        reasons
            .iter()
            .any(|r| r.reason.contains(&"5a".repeat(16)) && r.reason.contains(&"11".repeat(16)))
    };
    eventually("both sides know", || {
        named(client.refusals()) && named(server.refusals())
    });
    let error = client.call(request(&client, 1), LONG).unwrap_err().to_string();
    assert!(
        error.contains("no server of /typed") && error.contains(&"11".repeat(16)),
        "{error}"
    );
}

#[test]
fn an_event_loop_polls_the_descriptor() {
    let dir = folder();
    let bus = bus(&dir);
    let (client, server) = pair(&bus, "/loop");
    let mut pending: Vec<_> = (0..3)
        .map(|n| client.send(request(&client, n), LONG).unwrap())
        .collect();
    assert!(pending.iter_mut().all(|p| p.poll().is_none()));
    assert!(!readable(&client));
    answer(&server, take(&server), 10).unwrap();
    answer(&server, take(&server), 11).unwrap();
    eventually("it tells", || readable(&client));
    assert_eq!(ok(pending[0].poll().expect("answered")), 10);
    assert!(pending[0].poll().is_none(), "only once");
    assert_eq!(ok(pending[1].poll().expect("answered")), 11);
    assert!(pending[2].poll().is_none() && !readable(&client));
    drop(server);
    eventually("it also reports the end", || readable(&client));
    let mut last = None;
    eventually("the end is known", || {
        last = pending[2].poll();
        last.is_some()
    });
    assert!(matches!(last, Some(Err(CallError::ServerDied { .. }))));
    let mut hurried = {
        let server = crate::server(&bus, "/loop");
        assert!(client.wait_for_server(LONG).unwrap());
        let pending = client
            .send(request(&client, 1), Duration::from_millis(1))
            .unwrap();
        std::thread::sleep(SHORT);
        (pending, server)
    };
    assert!(matches!(hurried.0.poll(), Some(Err(CallError::Timeout { .. }))));
}

#[test]
fn cancelled_and_unanswered_requests_are_bounded() {
    let dir = folder();
    let bus = bus(&dir);
    let options = ClientOptions::default().with_max_outstanding(3);
    let client = bus.client(service("/few"), options).unwrap();
    let server = server(&bus, "/few");
    assert!(client.wait_for_server(LONG).unwrap());
    for _ in 0..3 {
        drop(client.send(request(&client, 1), LONG).unwrap());
    }
    let error = client.send(request(&client, 1), LONG).unwrap_err();
    assert!(
        matches!(error, CallError::TooMany { outstanding: 3, .. }),
        "{error}"
    );
    for _ in 0..3 {
        answer(&server, take(&server), 2).unwrap();
    }
    let pending = client.send(request(&client, 5), LONG).unwrap();
    answer(&server, take(&server), 6).unwrap();
    assert_eq!(ok(pending.wait()), 6);
    assert_eq!((client.stats().late, client.stats().outstanding), (3, 0));
}

#[test]
fn held_replies_hold_up_nobody_else() {
    let dir = folder();
    let bus = bus(&dir);
    let options = ClientOptions::default().with_max_outstanding(1).with_max_held(1);
    let greedy = bus.client(service("/held"), options).unwrap();
    let (modest, server) = pair(&bus, "/held");
    assert!(greedy.wait_for_server(LONG).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if let Some(request) = server.take_timeout(SHORT).unwrap() {
                    let n = value(request.control());
                    let _ = answer(&server, request, n);
                }
            }
        });
        let mut held: Vec<_> = (0..2)
            .map(|n| greedy.call(request(&greedy, n), LONG).unwrap())
            .collect();
        let error = greedy.call(request(&greedy, 2), SHORT).unwrap_err();
        assert!(matches!(error, CallError::HoldLimit { .. }), "{error}");
        assert_eq!(ok(modest.call(request(&modest, 3), LONG)), 3);
        held.pop();
        assert_eq!(ok(greedy.call(request(&greedy, 4), LONG)), 4);
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_reply_wakes_only_its_client() {
    let dir = folder();
    let bus = bus(&dir);
    let server = server(&bus, "/quiet");
    let clients: Vec<_> = (0..30).map(|_| client(&bus, "/quiet")).collect();
    assert!(server.wait_for_clients(30, LONG));
    for (n, client) in (0..).zip(&clients) {
        assert!(client.wait_for_server(LONG).unwrap());
        // A wait that ends without a reply leaves the doorbell armed.
        let mut pending = client.send(request(client, n), LONG).unwrap();
        assert!(pending.poll().is_none());
        answer(&server, take(&server), n).unwrap();
        assert_eq!(ok(pending.wait()), n);
        assert!(client.send(request(client, n), LONG).unwrap().poll().is_none());
        assert!(!readable(client));
        drop(take(&server));
    }
    // Rejections of the dropped ones arrived; take them.
    clients.iter().for_each(|c| {
        eventually("the rejection is there", || readable(c));
        assert!(c.send(request(c, 1), LONG).unwrap().poll().is_none() && !readable(c));
    });
    let mut random = Random(1);
    for _ in 0..30 {
        let request = take(&server);
        let asker = clients.iter().position(|c| c.id() == request.client()).unwrap();
        let others: Vec<_> = (0..30)
            .filter(|i| *i != asker && !readable(&clients[*i]))
            .collect();
        answer(&server, request, random.next(9)).unwrap();
        eventually("the asker hears", || readable(&clients[asker]));
        assert!(
            others.iter().all(|i| !readable(&clients[*i])),
            "others were woken"
        );
    }
}

#[test]
fn garbage_costs_its_sender_the_connection_and_nobody_else() {
    let dir = folder();
    let bus = bus(&dir);
    let (client, server) = pair(&bus, "/garbage");
    // A plain publisher on the service's topic: no correlation header at all.
    let topic = |suffix: &str| TopicType {
        topic: format!("/garbage?{suffix}"),
        type_name: "test_srvs/Echo".into(),
        type_hash: [0x5A; 16],
        flavour: Default::default(),
        definition: "".into(),
    };
    let liar = bus
        .publisher(topic("request"), PublisherOptions::default())
        .unwrap();
    assert!(liar.wait_for_subscribers(1, LONG));
    let loan = liar.loan(8, &[]).unwrap();
    assert_eq!(liar.publish(loan, Stamp::default()).unwrap().queued_to, 1);
    assert!(server.take_timeout(SHORT).unwrap().is_none());
    assert_eq!(server.stats().malformed, 1);
    eventually("it is left", || liar.subscriber_count() == 0);

    // The same for replies; its messages reach no call.
    let liar = bus
        .publisher(topic("reply"), PublisherOptions::default())
        .unwrap();
    assert!(liar.wait_for_subscribers(1, LONG));
    let pending = client.send(request(&client, 1), LONG).unwrap();
    liar.publish(liar.loan(8, &[]).unwrap(), Stamp::default())
        .unwrap();
    answer(&server, take(&server), 2).unwrap();
    assert_eq!(ok(pending.wait()), 2);
    eventually("it is left", || {
        let _ = client.send(request(&client, 1), LONG).map(|mut p| p.poll());
        let _ = server.take().unwrap();
        client.stats().malformed == 1 && liar.subscriber_count() == 0
    });

    // A peer that only listens to replies receives nothing, not even when it asks under another identity.
    let spy = bus
        .subscriber(topic("reply"), SubscriberOptions::default())
        .unwrap();
    assert!(spy.wait_for_publishers(1, LONG));
    let pending = client.send(request(&client, 3), LONG).unwrap();
    answer(&server, take(&server), 4).unwrap();
    assert_eq!(ok(pending.wait()), 4);
    assert!(spy.take().unwrap().is_none());
}

#[test]
fn mutated_headers_are_refused_or_harmless() {
    let dir = folder();
    let bus = bus(&dir);
    let mut random = Random(11);
    let server = server(&bus, "/mutant");
    let honest = client(&bus, "/mutant");
    assert!(honest.wait_for_server(LONG).unwrap());
    let (mut refused, mut passed) = (0, 0);
    for round in 0..200 {
        let client = client(&bus, "/mutant");
        assert!(client.wait_for_server(LONG).unwrap());
        let loan = client.loan(64, &[64]).unwrap();
        // Header with its table: 128 bytes, correlation header: 64, control part: 64, then the data part.
        let block = loan.part_ptr(0).unwrap().wrapping_sub(256);
        let pending = client.send(loan, LONG).unwrap();
        for _ in 0..=random.next(3) {
            // The position of the correlation header, or its content.
            let at = if random.next(4) == 0 {
                56 + random.next(8)
            } else {
                128 + random.next(64)
            };
            client.poison(block.wrapping_add(at as usize), 1, random.next(256) as u8);
        }
        let before = server.stats();
        match server.take().unwrap() {
            // Changed into another valid meaning: another number, another deadline.
            Some(request) => {
                passed += 1;
                let _ = answer(&server, request, 1);
            }
            None => refused += 1,
        }
        let after = server.stats();
        assert!(after.malformed + after.expired >= before.malformed + before.expired);
        drop(pending);
        if round % 20 == 0 {
            let pending = honest.send(request(&honest, round), LONG).unwrap();
            answer(&server, take(&server), round).unwrap();
            assert_eq!(ok(pending.wait()), round);
        }
    }
    assert!(refused > 50 && passed > 10, "{refused} refused, {passed} passed");

    // The same for those of a server's replies.
    let answered = AtomicU64::new(0);
    for round in 0..50u64 {
        let name = format!("/mutant{round}");
        let (client, server) = pair(&bus, &name);
        let pending = client
            .send(request(&client, round), Duration::from_millis(20))
            .unwrap();
        let Some(request) = server.take_timeout(LONG).unwrap() else {
            continue;
        };
        let loan = server.loan(64, &[64]).unwrap();
        let block = loan.part_ptr(0).unwrap().wrapping_sub(256);
        if server.respond(request, loan).is_err() {
            continue;
        }
        server.poison(
            block.wrapping_add(128 + random.next(64) as usize),
            1,
            random.next(256) as u8,
        );
        match pending.wait() {
            Ok(reply) => drop((answered.fetch_add(1, Ordering::Relaxed), reply)),
            Err(CallError::Timeout { .. } | CallError::ServerDied { .. } | CallError::Rejected { .. }) => {}
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn services_are_listed_and_bad_options_refused() {
    let dir = folder();
    let bus = bus(&dir);
    let (client, _server) = pair(&bus, "/listed");
    let found = bus.services(LONG).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].service, *client.service());
    assert_eq!((found[0].servers.len(), found[0].clients.len()), (1, 1));
    assert!(
        bus.topics(LONG)
            .unwrap()
            .iter()
            .all(bus::TopicInfo::is_of_service)
    );
    assert!(bus.client(service(""), ClientOptions::default()).is_err());
    assert!(
        bus.client(service("/x"), ClientOptions::default().with_max_outstanding(0))
            .is_err()
    );
    assert!(
        bus.server(service("/x"), ServerOptions::default().with_client_quota(0))
            .is_err()
    );
    let (other, loan) = (crate::server(&bus, "/other"), client.loan(1, &[]).unwrap());
    let pending = client.send(loan, LONG).unwrap();
    let request = take(&_server);
    let loan = other.loan(1, &[]).unwrap();
    assert!(matches!(
        other.respond(request, loan),
        Err(RespondError::ForeignRequest)
    ));
    assert!(matches!(pending.wait().unwrap_err(), CallError::Rejected { .. }));
    let loan = other.loan(1, &[]).unwrap();
    assert!(matches!(
        client.send(loan, LONG).unwrap_err(),
        CallError::Publish(_)
    ));
}

/// Like a thread that forwards the results of many requests.
#[test]
fn one_thread_sleeps_for_the_ends_of_many_requests() {
    let dir = folder();
    let (there, here) = (bus(&dir), bus(&dir));
    let client = client(&here, "/x");
    assert!(!client.rearm().unwrap(), "nothing is known yet");
    let options = ServerOptions::default().with_max_held(2);
    let server = there.server(service("/x"), options).unwrap();
    eventually("a server that comes rings", || readable(&client));
    assert!(client.wait_for_server(LONG).unwrap());
    let mut pending: Vec<_> = (0..3)
        .map(|n| Some(client.send(request(&client, n), LONG).unwrap()))
        .collect();
    assert!(!client.rearm().unwrap());
    eventually("it falls silent", || {
        !client.rearm().unwrap() && !readable(&client)
    });
    let held = [take(&server), take(&server)];
    assert!(server.take().is_err(), "as many are held as may be");
    assert!(!server.wait_takeable(SHORT).unwrap(), "so it waits on");
    assert!(held.iter().all(|r| server.can_answer(r)));
    for (n, request) in held.into_iter().enumerate() {
        answer(&server, request, n as u64).unwrap();
    }
    assert!(server.wait_takeable(LONG).unwrap());
    let last = take(&server);
    answer(&server, last, 2).unwrap();
    assert!(readable(&client), "answers ring");
    let mut came = 0;
    while came < 3 {
        assert!(client.rearm().unwrap(), "an end is known that nobody asked for");
        for (n, slot) in pending.iter_mut().enumerate() {
            if let Some(outcome) = slot.as_mut().and_then(bus::Pending::poll) {
                assert_eq!(ok(outcome), n as u64);
                *slot = None;
                came += 1;
            }
        }
    }
    assert!(!client.rearm().unwrap() && !readable(&client));
    // Answering a client that is gone does not block either.
    drop(client.send(request(&client, 9), LONG).unwrap());
    let asked = take(&server);
    drop((client, pending, here));
    eventually("it is gone", || server.can_answer(&asked));
}
