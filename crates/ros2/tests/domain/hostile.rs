//! What hostile participants can make a bridge hold, and how little honest ones notice.

use crate::kit::{
    A_WHILE, Client, Domain, Framing, LONG, Peer, Robot, Server, info, kept, reliable, said, service, string,
    text, until,
};
use ros2::{Config, Direction, ServiceRule, TopicRule};
use rtps::{EndpointConfig, EntityId, Guid};
use std::time::{Duration, Instant};

fn all() -> Config {
    let rule = |direction| {
        let name = if direction == Direction::ToBus {
            "/*"
        } else {
            "/switch"
        };
        let mut rule = ServiceRule::new(name, direction);
        // On a busy machine, what hostile peers have under way takes longer than the default.
        rule.timeout = Some(LONG);
        rule
    };
    Config::default()
        .with_topic(TopicRule::new("/*", Direction::ToBus))
        .with_service(rule(Direction::ToBus))
        .with_service(rule(Direction::ToRos))
}

/// An honest publisher and its subscriber on the bus.
struct Honest {
    peer: Peer,
    writer: EntityId,
    subscriber: ropewalk::Subscriber,
    sent: usize,
}

impl Honest {
    fn new(domain: &Domain, robot: &Robot, topic: &str) -> Self {
        let peer = Peer::new(domain);
        let writer = peer.publisher(&format!("rt{topic}"), &string(), kept());
        let subscriber = robot
            .node
            .dynamic_subscriber(topic, &string())
            .expect("a subscriber");
        Honest {
            peer,
            writer,
            subscriber,
            sent: 0,
        }
    }

    /// Checks that another message crosses.
    fn goes_on(&mut self) {
        self.sent += 1;
        self.peer.write(self.writer, text(&self.sent.to_string()));
        let message = self
            .subscriber
            .take_timeout(LONG)
            .expect("a bus")
            .expect("a message");
        assert_eq!(said(&message), self.sent.to_string());
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

#[test]
fn a_participant_with_countless_endpoints_gets_its_share_and_others_go_on() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let mut before = Honest::new(&domain, &robot, "/zz/before");
    before.goes_on();
    let quiet = descriptors();
    let hostile = Peer::new(&domain);
    for n in 0..200 {
        Server::new(
            &hostile,
            &format!("/serves{n}"),
            &service("std_srvs/Empty"),
            Framing::Fast,
        );
    }
    // Unknown types, many of them on one topic, and many topics.
    for n in 0..300 {
        let config = EndpointConfig::new(
            format!("rt/odd{n}"),
            format!("odd::msg::dds_::Odd{n}_"),
            reliable(),
        );
        hostile.node.add_writer(config).expect("a writer");
    }
    for _ in 0..700 {
        hostile.publisher("rt/aa/same", &string(), reliable());
    }
    for n in 0..2_900 {
        hostile.publisher(&format!("rt/flood{n}"), &string(), reliable());
    }
    until(
        "all is announced, some of it beyond a participant's limits",
        || {
            before.goes_on();
            hostile.sort(Duration::from_millis(10));
            robot.status().refused.get("endpoints").copied()
        },
    );
    let end = Instant::now() + 2 * A_WHILE;
    while Instant::now() < end {
        before.goes_on();
        hostile.sort(Duration::from_millis(10));
    }
    let status = robot.status();
    let (topics, services) = (status.to_bus.len(), status.services.len());
    assert_eq!((topics, services), (513, 128), "its half, and the honest one");
    let publishers: usize = status.to_bus.values().map(|f| f.connected).sum();
    assert_eq!(publishers, 1_025);
    assert!(status.problems.len() <= 1_024, "{}", status.problems.len());
    assert!(
        status.problems.values().any(|p| p.contains("one process")),
        "{:?}",
        status.problems
    );
    // A publisher on the bus takes some descriptors, and a service more.
    let taken = descriptors() - quiet;
    println!("{taken} descriptors for {publishers} publishers and {services} services");
    assert!(taken < 12_000, "{taken} descriptors");
    // Later participants are bridged too.
    let mut after = Honest::new(&domain, &robot, "/zz/after");
    after.goes_on();
    before.goes_on();
    drop(hostile);
    until("all memory is released", || {
        let status = robot.status();
        (status.to_bus.len() == 2 && status.services.is_empty() && status.problems.is_empty()).then_some(())
    });
    after.goes_on();
}

#[test]
fn participants_that_announce_countless_nodes_do_not_hide_others() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let mut honest = Honest::new(&domain, &robot, "/chatter");
    honest.goes_on();
    let hostile: Vec<Peer> = (0..6).map(|_| Peer::new(&domain)).collect();
    for peer in &hostile {
        let lies = peer.info_writer();
        let own = peer.node.guid();
        let names: Vec<String> = (0..1_000).map(|n| format!("node_{n}")).collect();
        let of = |name: &String| {
            let ends = (0..12u32).map(|n| {
                Guid::new(own.prefix, EntityId::PARTICIPANT)
                    .entity
                    .0
                    .map(|b| b ^ n as u8)
            });
            let all = ends.map(|e| Guid::new(own.prefix, EntityId(e))).collect();
            (name.clone(), all)
        };
        let all: Vec<(String, Vec<Guid>)> = names.iter().map(of).collect();
        let nodes: Vec<_> = all
            .iter()
            .map(|(name, ends)| ("/", name.as_str(), ends.clone()))
            .collect();
        peer.write(lies, info(own, &nodes));
        // And one that is too long to be read.
        let long: Vec<_> = nodes.iter().cycle().take(2_000).cloned().collect();
        peer.write(lies, info(own, &long));
    }
    until("the long ones are refused", || {
        honest.goes_on();
        (robot.status().refused.get("nodes") == Some(&6)).then_some(())
    });
    let end = Instant::now() + A_WHILE;
    while Instant::now() < end {
        honest.goes_on();
    }
}

#[test]
fn endless_requests_with_unread_responses_leave_room_for_others() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let set_bool = service("std_srvs/SetBool");
    let schema = set_bool.response().clone();
    let _serves = robot.node.dynamic_service("/switch", &set_bool, move |_| {
        // As busy as a server may be.
        std::thread::sleep(Duration::from_millis(5));
        schema
            .value_from_yaml("{success: true}")
            .map_err(|e| e.to_string())
    });
    let (honest, hostile) = (Peer::new(&domain), Peer::new(&domain));
    let mut good = Client::new(&honest, "/switch", &set_bool, Framing::Fast);
    let mut bad = Client::new(&hostile, "/switch", &set_bool, Framing::Fast);
    good.connected(&honest);
    bad.connected(&hostile);
    let request = crate::kit::cdr(set_bool.request(), "data: true");
    for _ in 0..8 {
        for _ in 0..300 {
            bad.ask(&hostile, &request);
        }
        let number = good.ask(&honest, &request);
        let (to, _) = good.answer(&honest, LONG).expect("an answer");
        assert_eq!(to, number);
    }
    robot.problem("/switch", &["too many requests"]);
}

#[test]
fn calls_of_one_client_of_the_bus_wait_for_their_own_answers_only() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, all());
    let set_bool = service("std_srvs/SetBool");
    let peer = Peer::new(&domain);
    let server = Server::new(&peer, "/slow", &set_bool, Framing::Fast);
    let greedy = robot.node.dynamic_client("/slow", &set_bool).expect("a client");
    assert!(greedy.wait_for_server(LONG).expect("a bus"));
    let request = crate::kit::cdr(set_bool.request(), "data: true");
    let response = crate::kit::cdr(set_bool.response(), "{success: true}");
    // Far more than are answered.
    let mut open = Vec::new();
    until("as many as a client may have open", || {
        open.extend(greedy.send_cdr(&request, LONG));
        (open.len() == 64).then_some(())
    });
    for _ in 0..64 {
        server.request(&peer, LONG).expect("a request");
    }
    let other = crate::kit::node(robot.folder.path(), "other")
        .dynamic_client("/slow", &set_bool)
        .expect("a client");
    assert!(other.wait_for_server(LONG).expect("a bus"));
    let mut pending = other.send_cdr(&request, LONG).expect("sent");
    let (sample, _) = server.request(&peer, LONG).expect("its request");
    server.respond(&peer, &sample, &response);
    let reply = until("its answer", || pending.poll()).expect("an answer");
    assert!(reply.cdr().expect("CDR").starts_with(&response));
}

#[test]
fn memory_of_one_participant_on_the_bus_is_bounded_and_others_go_on() {
    let domain = Domain::new();
    let mut config = all();
    config.participant_memory = Some(1 << 20);
    let robot = Robot::new(&domain, config);
    let mut honest = Honest::new(&domain, &robot, "/chatter");
    honest.goes_on();
    let hostile = Peer::new(&domain);
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let writer = hostile.publisher(&format!("rt/big{n}"), &string(), kept());
            let held = robot
                .node
                .dynamic_subscriber(&format!("/big{n}"), &string())
                .expect("a subscriber");
            (writer, held)
        })
        .collect();
    for (writer, _) in &writers {
        hostile.connected(*writer, 1);
    }
    let long = text(&"x".repeat(100_000));
    for _ in 0..10 {
        for (writer, _) in &writers {
            hostile.write(*writer, long.clone());
        }
        honest.goes_on();
    }
    until("the problem is reported", || {
        honest.goes_on();
        let problems = robot.status().problems;
        problems
            .values()
            .any(|p| p.contains("participant_memory"))
            .then_some(())
    });
    let reserved: u64 = {
        let survey = robot.node.survey().expect("a bus");
        let of = survey.topics.iter().filter(|t| t.topic.topic.starts_with("/big"));
        of.flat_map(|t| &t.publishers)
            .map(|p| match &p.detail {
                bus::EndpointDetail::Publisher(p) => p.stats.memory_reserved,
                _ => 0,
            })
            .sum()
    };
    // A message may arrive while the memory is counted.
    assert!((500_000..=(1 << 20) + 400_000).contains(&reserved), "{reserved}");
}
