//! Calls between hosts, in virtual time.

mod world;

use super::header::{CallId, Header, Kind};
use super::{Failure, ServiceState, ServiceStatus};
use medium::{Loss, Path};
use stats::DropReason;
use std::time::Duration;
use world::{Manner, World, bad, ms};

const LONG: Duration = Duration::from_secs(30);
const AT_ONCE: Manner = Manner::Echo(Duration::ZERO);

/// A robot that serves `/grasp` to a base, with these settings.
fn pair(robot: &str, base: &str) -> World {
    World::new(&[
        &format!(
            "host: robot\npeers: [{{name: base, address: '127.0.0.1:7401'}}]\n\
             services: [{{name: /grasp, role: serve{robot}}}]"
        ),
        &format!(
            "host: base\npeers: [{{name: robot, address: '127.0.0.1:7401'}}]\n\
             services: [{{name: /grasp, role: call{base}}}]"
        ),
    ])
}

/// The same, once the service can be called.
fn served(robot: &str, base: &str, manner: Manner) -> World {
    let mut world = pair(robot, base);
    world.serve("robot", "/grasp", manner);
    world.connected("base", "/grasp");
    world
}

/// Checks that every call is answered, failed, or open, and how many are which.
fn counts(world: &mut World, host: &str, answered: u64, failed: &[(Failure, u64)]) -> ServiceStatus {
    let status = world.host(host).status().remove(0);
    let there: Vec<(Failure, u64)> = status.failed.iter().map(|(f, n)| (*f, *n)).collect();
    let over = status.answered + there.iter().map(|(_, n)| n).sum::<u64>();
    assert_eq!(status.calls, over + status.open, "{host}: {status:?}");
    assert_eq!(
        (status.answered, &there[..]),
        (answered, failed),
        "{host}: {status:?}"
    );
    status
}

#[test]
fn a_call_crosses_and_the_servers_answer_or_error_comes_back() {
    let mut world = served("", "", AT_ONCE);
    let call = world.call("base", "/grasp", b"cup", b"part", LONG);
    world.run(ms(100));
    let reply = (b"cup".to_vec(), b"part".to_vec());
    assert_eq!(world.host("base").outcome(call), &Ok(reply));
    world.serve("robot", "/grasp", Manner::Rejects);
    world.until("it is another server", |w| !w.host("base").offered.is_empty());
    world.run(ms(100));
    let call = world.ask("base", "/grasp", b"moon");
    let base = world.host("base");
    assert_eq!(base.failure(call), (Failure::Rejected, "out of reach"));
    let failed = [(Failure::Rejected, 1)];
    let here = counts(&mut world, "base", 1, &failed);
    let there = counts(&mut world, "robot", 1, &failed);
    assert_eq!(here.state, ServiceState::Ready);
    assert_eq!(there.state, ServiceState::Ready);
    assert_eq!(here.type_name.as_deref(), Some("test_srvs/Blob"));
    assert_eq!(here.request_bytes, there.request_bytes);
    assert_eq!(
        here.reply_bytes,
        there.reply_bytes + 20 + "out of reach".len() as u64
    );
}

#[test]
fn calls_arrive_once_over_bad_air() {
    let mut world = served(", depth: 64", ", depth: 64", Manner::Echo(ms(1)));
    world.path(bad());
    let part = |n: u32| vec![n as u8; if n.is_multiple_of(3) { 20_000 } else { 5 }];
    let mut calls = Vec::new();
    for n in 0..200u32 {
        calls.push(world.call("base", "/grasp", &n.to_le_bytes(), &part(n), LONG));
        world.run(ms(20));
    }
    world.run(LONG);
    for (n, call) in (0..).zip(calls) {
        let reply = (u32::to_le_bytes(n).to_vec(), part(n));
        assert_eq!(world.host("base").outcome(call), &Ok(reply), "{n}");
    }
    assert_eq!(world.host("robot").requests.len(), 200, "each once");
    counts(&mut world, "base", 200, &[]);
    counts(&mut world, "robot", 200, &[]);
}

#[test]
fn large_replies_use_fountain_coding_where_configured() {
    let mut world = served(", reliability: bulk", "", Manner::Bytes(300_000));
    world.path(bad());
    for _ in 0..5 {
        let call = world.ask("base", "/grasp", b"map");
        let reply = world.host("base").outcome(call).as_ref();
        assert_eq!(reply.expect("an answer").1.len(), 300_000);
    }
    let topics = world.host("robot").radio().topics();
    let replies = topics.map(|(_, t)| t).find(|t| t.name == "/grasp?reply");
    let replies = replies.expect("a topic for replies");
    assert!(
        replies.parity_bytes > 0 && replies.drops.total() == 0,
        "{replies:?}"
    );
}

#[test]
fn a_request_that_comes_twice_is_carried_out_once() {
    let mut world = served("", "", AT_ONCE);
    world.host("robot").hears_double();
    world.host("base").hears_double();
    for n in 0..10u8 {
        let call = world.ask("base", "/grasp", &[n]);
        assert_eq!(world.host("base").outcome(call), &Ok((vec![n], vec![])));
    }
    assert_eq!(world.host("robot").requests.len(), 10);
    assert_eq!(counts(&mut world, "robot", 10, &[]).repeated, 10);
    assert_eq!(counts(&mut world, "base", 10, &[]).late, 10);
}

#[test]
fn a_server_that_dies_ends_its_calls_and_its_successor_is_called() {
    let mut world = served("", "", Manner::Silent);
    let call = world.call("base", "/grasp", b"", b"", LONG);
    world.run(ms(50));
    world.die("robot", "/grasp", None);
    let died = world.now;
    world.run(ms(200));
    let end = &world.host("base").ends[&call];
    assert!(
        end.with_service && end.at.since(died) < ms(50),
        "{end:?} of {died:?}"
    );
    assert!(world.host("base").offered.is_empty());
    counts(&mut world, "base", 0, &[(Failure::ServerDied, 1)]);
    counts(&mut world, "robot", 0, &[(Failure::ServerDied, 1)]);
    // Its successor has another type.
    world.serve_as("robot", "/grasp", AT_ONCE, 8);
    world.connected("base", "/grasp");
    let call = world.ask("base", "/grasp", b"again");
    assert!(world.host("base").outcome(call).is_ok());
    assert_eq!(world.host("robot").requests.len(), 2);
}

#[test]
fn a_server_that_is_replaced_at_once_leaves_no_caller_waiting() {
    let mut world = served("", "", Manner::Silent);
    for round in 0..4u8 {
        world.connected("base", "/grasp");
        let call = world.call("base", "/grasp", &[round], b"", LONG);
        // The request is sent, under way, or with the server.
        world.run(ms(u64::from(round)));
        world.die("robot", "/grasp", None);
        world.serve("robot", "/grasp", Manner::Silent);
        let asked = world.now;
        world.until("the caller gets a result", |w| {
            w.host("base").ends.contains_key(&call) || w.host("robot").requests.len() > usize::from(round)
        });
        assert!(world.now.since(asked) < ms(500), "round {round}");
        if !world.host("base").ends.contains_key(&call) {
            // The successor has it.
            world.die("robot", "/grasp", None);
            world.until("the caller learns of its death", |w| {
                w.host("base").ends.contains_key(&call)
            });
            world.serve("robot", "/grasp", Manner::Silent);
        }
        world.run(ms(300));
    }
}

#[test]
fn the_answer_of_a_server_that_ends_with_it_arrives() {
    let mut world = pair("", "");
    world.path(bad());
    for round in 0..5u8 {
        world.serve("robot", "/grasp", Manner::Silent);
        world.connected("base", "/grasp");
        let call = world.call("base", "/grasp", &[round], b"", LONG);
        world.until("the server has it", |w| {
            w.host("robot").requests.len() > usize::from(round)
        });
        world.die("robot", "/grasp", Some(b"going down"));
        world.until("it is gone at the base", |w| w.host("base").offered.is_empty());
        let reply = world.host("base").outcome(call).as_ref();
        assert_eq!(reply.expect("an answer").0, b"going down", "round {round}");
    }
}

#[test]
fn a_serving_host_that_restarts_ends_its_calls_and_repeats_none() {
    let mut world = served("", "", Manner::Silent);
    let call = world.call("base", "/grasp", b"stay", b"", LONG);
    world.run(ms(50));
    world.restart("robot");
    world.until("the call ends", |w| w.host("base").ends.contains_key(&call));
    let end = &world.host("base").ends[&call];
    let is_truthful = match &end.with {
        Err(failed) => failed.failure.may_be_executed(),
        Ok(_) => false,
    };
    assert!(is_truthful, "{end:?}");
    world.run(LONG);
    assert!(
        world.host("base").offered.is_empty(),
        "its earlier offers are void"
    );
    world.serve("robot", "/grasp", AT_ONCE);
    world.connected("base", "/grasp");
    let call = world.ask("base", "/grasp", b"done");
    assert!(world.host("base").outcome(call).is_ok());
    let requests: Vec<&[u8]> = world.host("robot").requests.iter().map(|(_, r)| &r[..]).collect();
    assert_eq!(requests, [&b"stay"[..], b"done"]);
}

#[test]
fn a_calling_host_that_restarts_gets_no_answer_to_its_earlier_calls() {
    let mut world = served("", "", Manner::Echo(ms(400)));
    let first = world.call("base", "/grasp", b"before", b"", LONG);
    world.run(ms(20));
    assert_eq!(world.host("robot").requests.len(), 1);
    world.restart("base");
    world.connected("base", "/grasp");
    assert!(world.now.since(world.host("robot").requests[0].0) < ms(400));
    // Its first call has the number of the call before.
    let second = world.call("base", "/grasp", b"after", b"", LONG);
    world.run(LONG);
    let base = world.host("base");
    assert_eq!(base.outcome(second), &Ok((b"after".to_vec(), vec![])));
    assert!(!base.ends.contains_key(&first));
    counts(&mut world, "base", 1, &[]);
}

#[test]
fn a_lost_peer_ends_calls_and_its_services_return_with_it() {
    let mut world = served("", "", Manner::Silent);
    let call = world.call("base", "/grasp", b"", b"", LONG);
    world.run(ms(50));
    world.connect("robot", "base", false);
    let lost = world.now;
    world.until("the call ends", |w| w.host("base").ends.contains_key(&call));
    assert!(world.now.since(lost) < Duration::from_secs(2));
    let (why, text) = world.host("base").failure(call);
    assert!(
        why == Failure::Unreachable && text.contains("the link to robot is lost"),
        "{text}"
    );
    assert!(world.host("base").offered.is_empty());
    let state = world.host("base").status()[0].state;
    assert_eq!(state, ServiceState::NoPeer);
    world.connect("robot", "base", true);
    world.connected("base", "/grasp");
    world.serve("robot", "/grasp", AT_ONCE);
    world.run(ms(200));
    let call = world.ask("base", "/grasp", b"back");
    assert!(world.host("base").outcome(call).is_ok());
}

#[test]
fn a_service_at_its_limit_fails_further_calls_at_once() {
    let mut world = served(", depth: 64", ", depth: 4", Manner::Silent);
    for _ in 0..4 {
        world.call("base", "/grasp", b"", b"", LONG);
    }
    let fifth = world.call("base", "/grasp", b"", b"", LONG);
    let (why, text) = world.host("base").failure(fifth);
    assert_eq!(
        (why, text),
        (
            Failure::Busy,
            "4 calls are open to /grasp of robot, the limit (`depth` in the link's configuration); call again later"
        )
    );
    world.run(ms(100));
    assert_eq!(world.host("robot").requests.len(), 4);
    world.die("robot", "/grasp", None);
    world.serve("robot", "/grasp", AT_ONCE);
    world.run(ms(500));
    world.connected("base", "/grasp");
    let call = world.ask("base", "/grasp", b"free");
    assert!(world.host("base").outcome(call).is_ok());
    let failed = [(Failure::Busy, 1), (Failure::ServerDied, 4)];
    counts(&mut world, "base", 1, &failed);
}

#[test]
fn a_serving_host_has_a_limit_of_its_own() {
    let mut world = served(", depth: 2", ", depth: 64", Manner::Silent);
    let calls = [(); 5].map(|()| world.call("base", "/grasp", b"", b"", LONG));
    world.run(ms(200));
    assert_eq!(world.host("robot").requests.len(), 2);
    let ended: Vec<usize> = world.host("base").ends.keys().copied().collect();
    assert_eq!(ended, calls[2..]);
    for call in &calls[2..] {
        let (why, text) = world.host("base").failure(*call);
        let expected = "robot: 2 calls are open there, the limit; call again later";
        assert_eq!((why, text), (Failure::Busy, expected));
    }
    counts(&mut world, "robot", 0, &[(Failure::Busy, 3)]);
}

#[test]
fn a_link_has_a_limit_over_all_its_services() {
    let services = |role: &str| {
        let each = (0..3).map(|i| format!("{{name: /s{i}, role: {role}, depth: 100}}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let mut world = World::new(&[
        &format!(
            "host: robot\npeers: [{{name: base, address: '127.0.0.1:7401'}}]\nservices: [{}]",
            services("serve")
        ),
        &format!(
            "host: base\npeers: [{{name: robot, address: '127.0.0.1:7401'}}]\nservices: [{}]",
            services("call")
        ),
    ]);
    for i in 0..3 {
        world.serve("robot", &format!("/s{i}"), Manner::Silent);
    }
    world.connected("base", "/s2");
    world.run(ms(200));
    let all: Vec<usize> = (0..300)
        .map(|n| world.call("base", &format!("/s{}", n / 100), b"", b"", LONG))
        .collect();
    world.run(ms(500));
    assert_eq!(world.host("robot").requests.len(), 256);
    let ended: Vec<usize> = world.host("base").ends.keys().copied().collect();
    assert_eq!(ended, all[256..]);
    let (why, text) = world.host("base").failure(all[256]);
    let expected = "256 calls are open over this link, the limit; call again later";
    assert_eq!((why, text), (Failure::Busy, expected));
}

#[test]
fn a_peer_that_asks_without_end_gets_a_bounded_number_of_answers() {
    let mut world = served(", depth: 1, timeout: 5s", "", Manner::Silent);
    world.call("base", "/grasp", b"", b"", LONG);
    world.run(ms(100));
    let flood = |world: &mut World, numbers: std::ops::Range<u64>| {
        let now = world.now;
        for number in numbers {
            let call = CallId { run: 77, number };
            let kind = Kind::Request(Duration::from_secs(5));
            let head = Header { call, kind }.encode();
            world.host("robot").inject(now, "base", head).expect("is taken");
        }
        world.turn("robot");
    };
    // Nothing that the robot sends arrives, so nothing is acknowledged.
    world.mute("robot", "base");
    flood(&mut world, 1..1501);
    let offered = |world: &mut World| {
        let mut topics = world.host("robot").radio().topics();
        let replies = topics.find(|(_, t)| t.name == "/grasp?reply");
        replies.expect("a topic for replies").1.offered
    };
    assert_eq!(offered(&mut world), 1000, "the others get none");
    assert_eq!(world.host("robot").requests.len(), 1, "one is open");
    // Answers whose callers no longer wait make room.
    world.connect("robot", "base", true);
    world.run(Duration::from_secs(6));
    flood(&mut world, 2001..2011);
    assert_eq!(offered(&mut world), 1010);
}

#[test]
fn a_call_ends_when_its_time_or_the_services_is_over() {
    let mut world = served("", ", timeout: 300ms", Manner::Silent);
    let begun = world.now;
    let short = world.call("base", "/grasp", b"", b"", ms(100));
    let long = world.call("base", "/grasp", b"", b"", LONG);
    world.run(LONG);
    let base = world.host("base");
    for (call, after) in [(short, ms(100)), (long, ms(300))] {
        let (why, text) = base.failure(call);
        let expected = "robot has not answered in time; it may still execute the request";
        assert_eq!((why, text), (Failure::TimedOut, expected));
        assert_eq!(base.ends[&call].at, begun + after);
    }
    counts(&mut world, "base", 0, &[(Failure::TimedOut, 2)]);
}

#[test]
fn an_answer_that_is_too_late_is_not_sent_and_answers_no_other_call() {
    let mut world = served("", "", Manner::Echo(ms(150)));
    let late = world.call("base", "/grasp", b"late", b"", ms(100));
    world.run(ms(120));
    let next = world.call("base", "/grasp", b"next", b"", LONG);
    world.run(LONG);
    let base = world.host("base");
    assert_eq!(base.failure(late).0, Failure::TimedOut);
    assert_eq!(base.outcome(next), &Ok((b"next".to_vec(), vec![])));
    assert_eq!(world.host("robot").refused, [DropReason::Expired]);
    counts(&mut world, "base", 1, &[(Failure::TimedOut, 1)]);
    counts(&mut world, "robot", 1, &[(Failure::TimedOut, 1)]);
}

#[test]
fn a_request_that_is_too_old_when_it_arrives_is_not_carried_out() {
    let mut world = served("", "", AT_ONCE);
    for _ in 0..10 {
        world.ask("base", "/grasp", b"good");
        world.run(ms(200));
    }
    let clock = world.host("robot").clock_of("base");
    assert!(clock.is_some(), "the clocks are known by now");
    world.path(Path::delay(ms(200)));
    let late = world.call("base", "/grasp", b"late", b"", ms(150));
    let good = world.call("base", "/grasp", b"good", b"", LONG);
    world.run(LONG);
    let base = world.host("base");
    assert_eq!(base.failure(late).0, Failure::TimedOut);
    assert_eq!(base.outcome(good), &Ok((b"good".to_vec(), vec![])));
    let requests = &world.host("robot").requests;
    assert!(requests.iter().all(|(_, r)| r == b"good"), "{requests:?}");
    counts(&mut world, "robot", 11, &[(Failure::TimedOut, 1)]);
}

#[test]
fn a_peer_without_permission_to_call_is_refused_with_the_reason() {
    let mut world = World::new(&[
        "host: robot\npeers: [{name: base, address: '127.0.0.1:7401', allow: {call: [/look]}}]\n\
         services: [{name: /grasp, role: serve}, {name: /look, role: serve}]",
        "host: base\npeers: [{name: robot, address: '127.0.0.1:7401'}]\n\
         services: [{name: /grasp, role: call}, {name: /look, role: call}]",
    ]);
    for service in ["/grasp", "/look"] {
        world.serve("robot", service, AT_ONCE);
        world.connected("base", service);
    }
    let allowed = world.ask("base", "/look", b"up");
    assert!(world.host("base").outcome(allowed).is_ok());
    for _ in 0..2 {
        let refused = world.ask("base", "/grasp", b"cup");
        let (why, text) = world.host("base").failure(refused);
        assert!(
            why == Failure::Refused && text.contains("`allow: call`"),
            "{text}"
        );
    }
    let requests = world.host("robot").requests.len();
    assert_eq!(requests, 1);
    for host in ["base", "robot"] {
        let state = world.host(host).status()[0].state;
        assert_eq!(state, ServiceState::Refused, "{host}");
    }
    counts(&mut world, "base", 0, &[(Failure::Refused, 2)]);
}

#[test]
fn what_is_too_large_for_the_link_is_reported() {
    let mut world = served("", "", AT_ONCE);
    let huge = vec![1; 9 << 20];
    let call = world.call("base", "/grasp", b"", &huge, LONG);
    let (why, text) = world.host("base").failure(call);
    assert!(
        why == Failure::Dropped && text.contains("the request is too large"),
        "{text}"
    );
    world.serve("robot", "/grasp", Manner::Bytes(9 << 20));
    world.run(ms(200));
    let call = world.ask("base", "/grasp", b"");
    let (why, text) = world.host("base").failure(call);
    assert!(
        why == Failure::Dropped && text.contains("the reply is too large"),
        "{text}"
    );
    counts(&mut world, "base", 0, &[(Failure::Dropped, 2)]);
    counts(&mut world, "robot", 0, &[(Failure::Dropped, 1)]);
    assert_eq!(world.host("robot").refused, [DropReason::TooLarge]);
}

#[test]
fn services_of_two_robots_stand_below_their_names_and_the_base_serves_both() {
    let robot = |name: &str| {
        format!(
            "host: {name}\npeers: [{{name: base, address: '127.0.0.1:7401'}}]\n\
             services: [{{name: /grasp, role: serve}}, {{name: /map, role: call}}]"
        )
    };
    let mut world = World::new(&[
        &robot("r-1"),
        &robot("r-2"),
        "host: base\npeers: [{name: r-1, address: '127.0.0.1:7401', namespace: '/{peer}'}, \
         {name: r-2, address: '127.0.0.1:7402', namespace: '/{peer}'}]\n\
         services: [{name: /grasp, role: call}, {name: /map, role: serve}]",
    ]);
    world.serve("base", "/map", AT_ONCE);
    for (host, service, size) in [("r-1", "/r_1/grasp", 1), ("r-2", "/r_2/grasp", 2)] {
        world.serve(host, "/grasp", Manner::Bytes(size));
        world.connected("base", service);
        let call = world.ask("base", service, b"");
        let base = world.host("base");
        assert_eq!(base.outcome(call), &Ok((vec![], vec![1; size])));
        world.connected(host, "/map");
        let call = world.ask(host, "/map", b"area");
        assert!(world.host(host).outcome(call).is_ok());
    }
    assert_eq!(world.host("base").requests.len(), 2);
}

/// A robot that serves `/grasp` to a base behind a relay, with these settings of the base's service.
fn relayed(base: &str) -> World {
    let relay = "{name: relay, address: '127.0.0.1:7402', relay: true, allow: {}}";
    let mut world = World::new(&[
        &format!("host: robot\npeers: [{{name: base}}, {relay}]\nservices: [{{name: /grasp, role: serve}}]"),
        &format!(
            "host: base\npeers: [{{name: robot}}, {relay}]\n\
             services: [{{name: /grasp, role: call, from: robot{base}}}]"
        ),
        "host: relay\nrelay: [/grasp]\npeers: [{name: robot, address: '127.0.0.1:7401'}, \
         {name: base, address: '127.0.0.1:7402'}]",
    ]);
    world.serve("robot", "/grasp", AT_ONCE);
    world.connected("base", "/grasp");
    world
}

#[test]
fn calls_go_over_a_relay_and_end_with_it() {
    let mut world = relayed("");
    world.path(Path::loss(Loss::Uniform(0.05)));
    for n in 0..30u8 {
        let part = vec![n; if n % 3 == 0 { 20_000 } else { 5 }];
        let call = world.call("base", "/grasp", &[n], &part, LONG);
        world.until("the call ends", |w| w.host("base").ends.contains_key(&call));
        let reply = world.host("base").outcome(call);
        assert!(reply == &Ok((vec![n], part)), "{n}");
    }
    assert_eq!(world.host("robot").requests.len(), 30);
    counts(&mut world, "base", 30, &[]);
    world.serve("robot", "/grasp", Manner::Silent);
    world.until("it is another server", |w| {
        w.run(ms(300));
        !w.host("base").offered.is_empty()
    });
    let open = world.call("base", "/grasp", b"", b"", LONG);
    world.until("the robot has it", |w| w.host("robot").requests.len() == 31);
    world.power("relay", false);
    world.until("the call ends", |w| w.host("base").ends.contains_key(&open));
    let (why, text) = world.host("base").failure(open);
    assert!(
        why == Failure::Unreachable && text.contains("the link to robot is lost"),
        "{text}"
    );
    assert!(world.host("base").offered.is_empty());
    world.power("relay", true);
    world.connected("base", "/grasp");
}

#[test]
fn a_request_that_a_relay_has_for_longer_than_its_caller_waits_is_not_carried_out() {
    let mut world = relayed("");
    let call = world.ask("base", "/grasp", b"first");
    assert!(world.host("base").outcome(call).is_ok());
    // The relay takes the request while it does not reach the robot.
    world.connect("relay", "robot", false);
    let late = world.call("base", "/grasp", b"late", b"", ms(250));
    world.run(ms(600));
    world.connect("relay", "robot", true);
    world.run(LONG);
    world.connected("base", "/grasp");
    let second = world.ask("base", "/grasp", b"second");
    let base = world.host("base");
    assert!(base.outcome(late).is_err());
    assert!(base.outcome(second).is_ok());
    let requests: Vec<&[u8]> = world.host("robot").requests.iter().map(|(_, r)| &r[..]).collect();
    assert_eq!(requests, [&b"first"[..], b"second"]);
    let topics = world.host("relay").radio().topics();
    let to_robot = topics.map(|(_, t)| t).filter(|t| t.name == "/grasp?request");
    let given_up = to_robot.map(|t| t.drops.count(DropReason::Expired)).sum::<u64>();
    assert_eq!(given_up, 1, "the relay had it and gave it up");
}

#[test]
fn services_of_robots_behind_one_relay_do_not_touch_each_other() {
    let relay = "{name: relay, address: '127.0.0.1:7402', relay: true, allow: {}}";
    let robot = |name: &str| {
        format!(
            "host: {name}\npeers: [{{name: base}}, {relay}]\n\
             services: [{{name: /grasp, role: serve}}, {{name: /map, role: call}}]"
        )
    };
    let mut world = World::new(&[
        &robot("r-1"),
        &robot("r-2"),
        "host: relay\nrelay: true\npeers: [{name: r-1, address: '127.0.0.1:7401'}, \
         {name: r-2, address: '127.0.0.1:7402'}, {name: base, address: '127.0.0.1:7403'}]",
        &format!(
            "host: base\npeers: [{{name: r-1, namespace: '/{{peer}}'}}, {{name: r-2, namespace: '/{{peer}}'}}, {relay}]\n\
             services: [{{name: /grasp, role: call, depth: 2}}, {{name: /map, role: serve}}]"
        ),
    ]);
    // The first keeps its callers waiting; the second has another type of gripper.
    world.serve("r-1", "/grasp", Manner::Silent);
    world.serve_as("r-2", "/grasp", AT_ONCE, 8);
    world.serve("base", "/map", AT_ONCE);
    world.connected("base", "/r_1/grasp");
    world.connected("base", "/r_2/grasp");
    let open = [(); 2].map(|()| world.call("base", "/r_1/grasp", b"", b"", LONG));
    for _ in 0..5 {
        let call = world.ask("base", "/r_2/grasp", b"cup");
        assert!(world.host("base").outcome(call).is_ok());
    }
    for host in ["r-1", "r-2"] {
        world.connected(host, "/map");
        let call = world.ask(host, "/map", host.as_bytes());
        let reply = (host.as_bytes().to_vec(), vec![]);
        assert_eq!(world.host(host).outcome(call), &Ok(reply));
    }
    world.die("r-1", "/grasp", None);
    world.run(ms(500));
    let base = world.host("base");
    assert!(
        open.iter()
            .all(|call| base.failure(*call).0 == Failure::ServerDied)
    );
    let call = world.ask("base", "/r_2/grasp", b"cup");
    assert!(world.host("base").outcome(call).is_ok());
}
