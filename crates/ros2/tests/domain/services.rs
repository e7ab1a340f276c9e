//! Services and actions, both ways, in both framings.

use crate::kit::{
    A_WHILE, Client, Domain, Framing, LONG, Peer, Robot, Server, cdr, node, schema, service, until,
};
use bus::CallError as Unanswered;
use ropewalk::{CallError, Pending};
use ros2::{ActionRule, Config, Direction, ServiceRule};
use schema::{Flavour, Registry, Service};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn config(direction: Direction) -> Config {
    Config::default().with_service(ServiceRule::new("/switch", direction))
}

fn set_bool() -> Service {
    service("std_srvs/SetBool")
}

fn request(on: bool) -> Vec<u8> {
    cdr(set_bool().request(), &format!("data: {on}"))
}

fn response(text: &str) -> Vec<u8> {
    cdr(
        set_bool().response(),
        &format!("{{success: true, message: {text:?}}}"),
    )
}

fn vendored(domain: &Domain, framing: Framing) -> Peer {
    Peer::with(domain, |config| {
        config.vendor = framing.vendor();
        let rtps::VendorId(vendor) = config.vendor;
        config.prefix.0[..2].copy_from_slice(&vendor);
    })
}

/// A client of the bus that is connected.
fn caller(robot: &Robot, name: &str, service: &Service) -> ropewalk::Client {
    let client = robot.node.dynamic_client(name, service).expect("a client");
    assert!(client.wait_for_server(LONG).expect("a bus"));
    client
}

fn ended(pending: &mut Pending) -> Result<Vec<u8>, CallError> {
    until("the end of the call", || pending.poll()).and_then(|reply| reply.cdr())
}

fn calls_of_the_bus_are_answered(framing: Framing) {
    let domain = Domain::new();
    let robot = Robot::new(&domain, config(Direction::ToBus));
    let peer = vendored(&domain, framing);
    let server = Server::new(&peer, "/switch", &set_bool(), framing);
    // Concurrent calls of several clients, answered in another order.
    let nodes: Vec<_> = (0..3)
        .map(|n| node(robot.folder.path(), &format!("caller{n}")))
        .collect();
    let clients: Vec<_> = nodes
        .iter()
        .map(|node| {
            let client = node.dynamic_client("/switch", &set_bool()).expect("a client");
            assert!(client.wait_for_server(LONG).expect("a bus"));
            client
        })
        .collect();
    let mut pending = Vec::new();
    for round in 0..20 {
        for (i, client) in clients.iter().enumerate() {
            let sent = client
                .send_cdr(&request((round + i) % 2 == 0), LONG)
                .expect("sent");
            pending.push(((round + i) % 2 == 0, sent));
        }
    }
    let mut requests: Vec<_> = (0..60)
        .map(|_| server.request(&peer, LONG).expect("a request"))
        .collect();
    requests.reverse();
    for (sample, payload) in &requests {
        assert!(
            [request(true), request(false)]
                .iter()
                .any(|r| payload.starts_with(r)),
            "{payload:?}"
        );
        let on = payload.starts_with(&request(true));
        server.respond(&peer, sample, &response(&format!("{on} {}", sample.sequence)));
    }
    let mut texts = BTreeMap::new();
    for (on, pending) in &mut pending {
        let reply = ended(pending).expect("an answer");
        let value = set_bool().response().decode_cdr(&reply).expect("a response");
        let text = value
            .get("message")
            .expect("a text")
            .as_str()
            .expect("a text")
            .to_owned();
        assert!(text.starts_with(&on.to_string()), "{text}");
        texts.insert(text, ());
    }
    assert_eq!(texts.len(), 60, "each has its own");
    let status = &robot.status().services["/switch"];
    assert_eq!((status.calls, status.failed, status.direction), (60, 0, "to_bus"));
}

#[test]
fn a_client_of_the_bus_may_call_as_often_at_once_as_calls_may_be_open() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, config(Direction::ToBus));
    let peer = vendored(&domain, Framing::Fast);
    let _server = Server::new(&peer, "/switch", &set_bool(), Framing::Fast);
    let client = caller(&robot, "/switch", &set_bool());
    let most = bus::ClientOptions::default().max_outstanding;
    let calls: Vec<_> = (0..most)
        .map(|n| client.send_cdr(&request(n % 2 == 0), LONG).expect("is queued"))
        .collect();
    assert_eq!(calls.len(), most as usize);
}

#[test]
fn calls_of_the_bus_are_answered_by_servers_of_fast_dds() {
    calls_of_the_bus_are_answered(Framing::Fast);
}

#[test]
fn calls_of_the_bus_are_answered_by_servers_of_cyclone_dds() {
    calls_of_the_bus_are_answered(Framing::Cyclone);
}

/// Serves with the numbers of requests, and answers late ones first.
fn serve(robot: &Robot) -> ropewalk::Callback {
    let schema = set_bool().response().clone();
    let served = robot
        .node
        .dynamic_service("/switch", &set_bool(), move |request| {
            let on = request
                .value()
                .map_err(|e| e.to_string())?
                .get("data")
                .map_err(|e| e.to_string())?;
            let on = matches!(on, schema::Value::Bool(true));
            schema
                .value_from_yaml(&format!("{{success: {on}, message: '{on}'}}"))
                .map_err(|e| e.to_string())
        });
    served.expect("a server")
}

fn calls_of_the_domain_are_answered(framings: &[Framing]) {
    let domain = Domain::new();
    let robot = Robot::new(&domain, config(Direction::ToRos));
    let _serves = serve(&robot);
    let mut clients: Vec<_> = framings
        .iter()
        .map(|framing| {
            let peer = vendored(&domain, *framing);
            let client = Client::new(&peer, "/switch", &set_bool(), *framing);
            client.connected(&peer);
            (peer, client)
        })
        .collect();
    let mut asked = Vec::new();
    for round in 0..20 {
        for (i, (peer, client)) in clients.iter_mut().enumerate() {
            asked.push((
                i,
                client.ask(peer, &request((round + i) % 2 == 0)),
                (round + i) % 2 == 0,
            ));
        }
    }
    for (i, (peer, client)) in clients.iter().enumerate() {
        let mut got = BTreeMap::new();
        while got.len() < 20 {
            let (number, payload) = client.answer(peer, LONG).expect("an answer");
            assert!(got.insert(number, payload).is_none(), "an answer twice");
        }
        for (_, number, on) in asked.iter().filter(|(of, ..)| *of == i) {
            let expected = cdr(
                set_bool().response(),
                &format!("{{success: {on}, message: '{on}'}}"),
            );
            assert!(got[number].starts_with(&expected), "{number}: {:?}", got[number]);
        }
        assert!(client.answer(peer, A_WHILE).is_none());
    }
}

#[test]
fn clients_of_fast_dds_get_each_its_own_answers() {
    calls_of_the_domain_are_answered(&[Framing::Fast, Framing::Fast]);
}

#[test]
fn clients_of_cyclone_dds_get_each_its_own_answers() {
    calls_of_the_domain_are_answered(&[Framing::Cyclone, Framing::Cyclone]);
}

#[test]
fn clients_of_both_call_one_server_of_the_bus() {
    calls_of_the_domain_are_answered(&[Framing::Fast, Framing::Cyclone]);
}

#[test]
fn two_clients_of_one_participant_get_each_its_own_answers() {
    for framing in [Framing::Fast, Framing::Cyclone] {
        let domain = Domain::new();
        let robot = Robot::new(&domain, config(Direction::ToRos));
        let _serves = serve(&robot);
        let peer = vendored(&domain, framing);
        let mut clients = [0, 1].map(|_| Client::new(&peer, "/switch", &set_bool(), framing));
        for (n, client) in clients.iter_mut().enumerate() {
            client.connected(&peer);
            let number = client.ask(&peer, &request(n == 0));
            let (answered, payload) = client.answer(&peer, LONG).expect("an answer");
            assert_eq!((answered, payload[4]), (number, u8::from(n == 0)));
        }
        for client in &clients {
            assert!(client.answer(&peer, A_WHILE).is_none());
        }
    }
}

#[test]
fn a_caller_on_the_bus_learns_when_the_server_in_the_domain_ends() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, config(Direction::ToBus));
    let peer = Peer::new(&domain);
    let server = Server::new(&peer, "/switch", &set_bool(), Framing::Fast);
    let client = caller(&robot, "/switch", &set_bool());
    let mut pending = client.send_cdr(&request(true), LONG).expect("sent");
    server.request(&peer, LONG).expect("a request");
    let begun = Instant::now();
    drop(peer);
    let error = ended(&mut pending).expect_err("no answer");
    assert!(
        matches!(
            error,
            CallError::Call(Unanswered::ServerDied { .. } | Unanswered::Rejected { .. })
        ),
        "{error:?}"
    );
    assert!(begun.elapsed() < LONG / 4);
    until("the service is gone", || {
        robot.status().services.is_empty().then_some(())
    });
    let error = client.send_cdr(&request(true), LONG).map(|mut p| ended(&mut p));
    assert!(matches!(error, Err(_) | Ok(Err(_))));
    // A new server is discovered.
    let peer = Peer::new(&domain);
    let server = Server::new(&peer, "/switch", &set_bool(), Framing::Fast);
    assert!(client.wait_for_server(LONG).expect("a bus"));
    let mut pending = client.send_cdr(&request(true), LONG).expect("sent");
    let (sample, _) = server.request(&peer, LONG).expect("a request");
    server.respond(&peer, &sample, &response("again"));
    assert!(
        ended(&mut pending)
            .expect("an answer")
            .starts_with(&response("again"))
    );
}

#[test]
fn a_server_that_stays_silent_fails_its_callers_in_the_time_of_the_rule() {
    let domain = Domain::new();
    let mut rule = ServiceRule::new("/switch", Direction::ToBus);
    rule.timeout = Some(Duration::from_millis(500));
    let robot = Robot::new(&domain, Config::default().with_service(rule));
    let peer = Peer::new(&domain);
    let server = Server::new(&peer, "/switch", &set_bool(), Framing::Fast);
    let client = caller(&robot, "/switch", &set_bool());
    let mut pending = client.send_cdr(&request(true), LONG).expect("sent");
    let (late, _) = server.request(&peer, LONG).expect("a request");
    let error = ended(&mut pending).expect_err("no answer");
    assert!(error.to_string().contains("in time"), "{error}");
    // A late answer goes to nobody, and the next call gets its own.
    server.respond(&peer, &late, &response("late"));
    let mut pending = client.send_cdr(&request(true), LONG).expect("sent");
    let (sample, _) = server.request(&peer, LONG).expect("a request");
    server.respond(&peer, &sample, &response("in time"));
    assert!(
        ended(&mut pending)
            .expect("an answer")
            .starts_with(&response("in time"))
    );
    let status = &robot.status().services["/switch"];
    assert_eq!((status.calls, status.failed), (1, 1));
}

#[test]
fn a_server_of_the_bus_that_stays_silent_or_says_no_is_a_problem_of_the_bridge() {
    let domain = Domain::new();
    let mut rule = ServiceRule::new("/switch", Direction::ToRos);
    rule.timeout = Some(Duration::from_millis(500));
    let robot = Robot::new(&domain, Config::default().with_service(rule));
    let server = robot
        .node
        .dynamic_server("/switch", &set_bool())
        .expect("a server");
    let peer = Peer::new(&domain);
    let mut client = Client::new(&peer, "/switch", &set_bool(), Framing::Fast);
    client.connected(&peer);
    client.ask(&peer, &request(true));
    let kept = server.take_timeout(LONG).expect("a bus").expect("a request");
    robot.problem("/switch", &["not answered", "500ms"]);
    drop(kept);
    client.ask(&peer, &request(true));
    let refused = server.take_timeout(LONG).expect("a bus").expect("a request");
    server.reject(refused, "not today").expect("said");
    robot.problem("/switch", &["not answered", "not today"]);
    let number = client.ask(&peer, &request(true));
    let good = server.take_timeout(LONG).expect("a bus").expect("a request");
    server.respond_cdr(good, &response("good")).expect("said");
    let (answered, payload) = client.answer(&peer, LONG).expect("an answer");
    assert_eq!(answered, number);
    assert!(payload.starts_with(&response("good")));
}

#[test]
fn a_request_that_is_none_costs_that_request_alone() {
    for framing in [Framing::Fast, Framing::Cyclone] {
        let domain = Domain::new();
        let robot = Robot::new(&domain, config(Direction::ToRos));
        let _serves = serve(&robot);
        let peer = vendored(&domain, framing);
        let mut client = Client::new(&peer, "/switch", &set_bool(), framing);
        client.connected(&peer);
        for junk in [&[][..], &[0], &[0, 1, 0, 0], &[255; 19], &[255; 400]] {
            peer.write(client.requests, junk.to_vec());
        }
        client.ask(&peer, &request(true));
        // Data that happens to be a request gets an answer too.
        until("an answer", || {
            let (_, payload) = client.answer(&peer, LONG)?;
            payload
                .starts_with(&cdr(set_bool().response(), "{success: true, message: 'true'}"))
                .then_some(())
        });
    }
}

#[test]
fn an_action_crosses_with_its_services_and_topics() {
    let domain = Domain::new();
    let folder = tempfile::tempdir().expect("a folder");
    let action = folder.path().join("my_actions/action");
    std::fs::create_dir_all(&action).expect("a folder");
    let text = "int32 order\n---\nint32[] sequence\n---\nint32[] partial\n";
    std::fs::write(action.join("Fib.action"), text).expect("a file");
    let mut config = Config::default().with_action({
        let mut rule = ActionRule::new("/fib", Direction::ToBus);
        rule.bus = Some("/far/fib".into());
        rule
    });
    config.definitions = vec![folder.path().to_owned()];
    let robot = Robot::new(&domain, config);
    let peer = Peer::new(&domain);
    let mut registry = Registry::new(Flavour::Ros2);
    registry.add_action("my_actions/Fib", text).expect("an action");
    let of = |name: &str| registry.service(name).expect("a service");
    let send_goal = of("my_actions/Fib_SendGoal");
    let goal = Server::new(&peer, "/fib/_action/send_goal", &send_goal, Framing::Fast);
    let _cancel = Server::new(
        &peer,
        "/fib/_action/cancel_goal",
        &service("action_msgs/CancelGoal"),
        Framing::Fast,
    );
    let _result = Server::new(
        &peer,
        "/fib/_action/get_result",
        &of("my_actions/Fib_GetResult"),
        Framing::Fast,
    );
    let feedback = registry
        .schema("my_actions/Fib_FeedbackMessage")
        .expect("a message");
    peer.publisher("rt/fib/_action/feedback", &feedback, crate::kit::reliable());
    peer.publisher(
        "rt/fib/_action/status",
        &schema("action_msgs/GoalStatusArray"),
        crate::kit::kept(),
    );
    let (services, topics) = until("all of it", || {
        let status = robot.status();
        assert!(status.problems.is_empty(), "{:?}", status.problems);
        let services: Vec<_> = status.services.values().map(|s| s.bus.clone()).collect();
        let topics: Vec<_> = status.to_bus.values().map(|f| f.bus.clone()).collect();
        (services.len() == 3 && topics.len() == 2).then_some((services, topics))
    });
    let names = |parts: &[&str]| {
        parts
            .iter()
            .map(|p| format!("/far/fib/_action/{p}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(services, names(&["cancel_goal", "get_result", "send_goal"]));
    assert_eq!(topics, names(&["feedback", "status"]));
    let client = caller(&robot, "/far/fib/_action/send_goal", &send_goal);
    let bytes = cdr(send_goal.request(), "goal: {order: 7}");
    let mut pending = client.send_cdr(&bytes, LONG).expect("sent");
    let (sample, payload) = goal.request(&peer, LONG).expect("a request");
    assert!(payload.starts_with(&bytes));
    let accepted = cdr(send_goal.response(), "accepted: true");
    goal.respond(&peer, &sample, &accepted);
    assert!(ended(&mut pending).expect("an answer").starts_with(&accepted));
}
