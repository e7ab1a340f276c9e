//! The nodes of each side, as the other side sees them.

use crate::kit::{Domain, Framing, Peer, Robot, Server, guids, info, node, reliable, service, string, until};
use bridge::nodes::{self, Kind, Record};
use bus::{Subscriber, SubscriberOptions, TopicType};
use ropewalk::Node;
use ros2::{Config, Direction, ServiceRule, TopicRule};
use rtps::Guid;
use std::collections::BTreeMap;

fn config() -> Config {
    Config::default()
        .with_topic(TopicRule::new("/in", Direction::ToBus))
        .with_topic(TopicRule::new("/out", Direction::ToRos))
        .with_service(ServiceRule::new("/switch", Direction::ToBus))
}

fn records(node: &Node) -> Subscriber {
    let topic = TopicType {
        topic: nodes::TOPIC.into(),
        type_name: nodes::TYPE.into(),
        type_hash: nodes::HASH,
        flavour: bus::Flavour::default(),
        definition: nodes::DEFINITION.into(),
    };
    let options = SubscriberOptions::default().with_depth(64).with_history(1);
    node.bus().subscriber(topic, options).expect("a subscriber")
}

/// Waits for a record of the bridge for which `is` holds.
fn wait_for_record(subscriber: &Subscriber, is: impl Fn(&Record) -> bool) -> Record {
    until("such a record", || {
        let message = subscriber.take().expect("a bus")?;
        Record::decode(message.control()).filter(|r| is(r))
    })
}

fn names(record: &Record) -> Vec<String> {
    let nodes = record.participants.iter().flat_map(|p| &p.nodes);
    nodes
        .map(|n| format!("{}/{}", n.namespace.trim_end_matches('/'), n.name))
        .collect()
}

#[test]
fn nodes_of_the_domain_appear_on_the_bus_and_leave_with_their_participant() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, config());
    let here = records(&robot.node);
    let peer = Peer::new(&domain);
    let writer = peer.publisher("rt/in", &string(), reliable());
    let server = Server::new(&peer, "/switch", &service("std_srvs/SetBool"), Framing::Fast);
    let other = peer.publisher("rt/not_bridged", &string(), reliable());
    peer.tell("talker", &[writer, other, server.requests, server.responses]);
    let record = wait_for_record(&here, |r| {
        r.endpoints().any(|e| e.kind == Kind::Publisher) && r.endpoints().any(|e| e.kind == Kind::Service)
    });
    assert_eq!(names(&record), ["/talker"]);
    let mut endpoints: Vec<_> = record
        .endpoints()
        .map(|e| (e.kind, e.name.as_str(), e.type_name.as_str()))
        .collect();
    endpoints.sort();
    assert_eq!(
        endpoints,
        [
            (Kind::Publisher, "/in", "std_msgs/msg/String"),
            (Kind::Service, "/switch", "std_srvs/srv/SetBool"),
        ]
    );
    let publisher = record
        .endpoints()
        .find(|e| e.kind == Kind::Publisher)
        .expect("one");
    assert_eq!(publisher.type_hash, (1, string().type_hash()));
    // It is the bus's publisher, and names its node.
    let topics = robot.node.topics().expect("a bus");
    let on_bus: Vec<_> = topics
        .iter()
        .filter(|t| t.topic.topic == "/in")
        .flat_map(|t| &t.publishers)
        .collect();
    assert_eq!(on_bus.iter().map(|p| p.id).collect::<Vec<_>>(), [publisher.id]);
    drop(peer);
    wait_for_record(&here, |r| names(r).is_empty());
}

#[test]
fn nodes_of_the_bus_appear_in_the_domain() {
    let domain = Domain::new();
    let mut robot = Robot::new(&domain, config());
    let talker = node(robot.folder.path(), "talker");
    let publisher = talker.dynamic_publisher("/out", &string()).expect("a publisher");
    let peer = Peer::new(&domain);
    let reader = peer.info_reader();
    let participant = until("the bridge", || {
        let all = peer.participants();
        all.first().map(|p| p.guid)
    });
    let info = until("its nodes", || {
        let sample = peer.next(reader);
        assert_eq!(sample.writer.prefix, participant.prefix);
        let nodes = guids(&sample.payload);
        (nodes.get("/talker").is_some_and(|e| e.len() == 1)).then_some(nodes)
    });
    let writers: Vec<Guid> = peer.endpoints("rt/out").iter().map(|e| e.guid).collect();
    assert_eq!(info["/talker"], writers);
    assert!(info.contains_key("/ropewalk"), "{info:?}");
    drop(publisher);
    drop(talker);
    until("it is gone", || {
        let nodes = guids(&peer.next(reader).payload);
        (!nodes.contains_key("/talker")).then_some(())
    });
    robot.stop();
    until("the bridge is gone", || {
        peer.participants().is_empty().then_some(())
    });
}

#[test]
fn claims_about_others_nodes_and_nonsense_are_not_believed() {
    let domain = Domain::new();
    let robot = Robot::new(&domain, config());
    let here = records(&robot.node);
    let (honest, hostile) = (Peer::new(&domain), Peer::new(&domain));
    let writer = honest.publisher("rt/in", &string(), reliable());
    let gid = honest.gids(&[writer]);
    honest.tell("talker", &[writer]);
    wait_for_record(&here, |r| names(r) == ["/talker"] && r.endpoints().count() == 1);
    let lies = hostile.info_writer();
    let own = hostile.node.guid();
    for lie in [
        // For another participant.
        info(honest.node.guid(), &[("/", "false", gid.clone())]),
        info(Guid::default(), &[("/", "false", gid.clone())]),
        vec![0; 3],
        vec![255; 300],
        [info(own, &[("/", "false", Vec::new())])[..40].to_vec()].concat(),
        // Control characters for a terminal.
        info(own, &[("/", "\u{1b}[2J", Vec::new())]),
    ] {
        hostile.write(lies, lie);
    }
    let refused = || robot.status().refused.get("nodes").copied().unwrap_or(0);
    until("all are refused", || (refused() == 6).then_some(()));
    // Endpoints of another participant among its own.
    hostile.write(lies, info(own, &[("/", "thief", gid)]));
    let record = wait_for_record(&here, |r| names(r).contains(&"/thief".to_owned()));
    let of: BTreeMap<&str, usize> = record
        .participants
        .iter()
        .flat_map(|p| &p.nodes)
        .map(|n| (n.name.as_str(), n.endpoints.len()))
        .collect();
    assert_eq!(of, [("talker", 1), ("thief", 0)].into());
}
