//! The conformance suite over this host's bus, over two buses that links join, and over links inside the programs.

mod conformance;
mod link_common;

use conformance::Fixture;
use link::Config;
use link_common::{Places, addresses};
use remote::transport::ControllerEnd;
use remote::transport::link::{DirectController, DirectRobot, LinkController, LinkRobot};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn fixture(fixtures: Places, joined: bool) -> Fixture {
    let fixtures = Arc::new(fixtures);
    let (robots, beside) = (fixtures.clone(), fixtures.clone());
    // To a robot, a program of its own host is another peer than a host that a link joins.
    let other =
        move || -> Arc<dyn ControllerEnd> { Arc::new(LinkController::new(&beside.robots_node(), "r1")) };
    Fixture {
        robot: Box::new(move || Arc::new(LinkRobot::new(&robots.robots_node(), "r1"))),
        connect: Box::new(move || Arc::new(LinkController::new(&fixtures.controllers_node(), "r1"))),
        other: joined.then(|| -> Box<dyn Fn() -> _> { Box::new(other) }),
        proves: true,
    }
}

#[test]
fn it_conforms_on_one_bus() {
    conformance::run(|| fixture(Places::one(), false));
}

#[test]
fn it_conforms_over_two_links() {
    conformance::run(|| fixture(Places::two(), true));
}

/// A robot and its controllers, each with a link of its own, inside their programs.
fn apart() -> Fixture {
    let addresses = addresses::<9>();
    let robot = addresses[0];
    let services = |rest: &str| {
        let of = |class: &str, depth| format!("{{name: /r1/remote/{class}, depth: {depth}, {rest}}}");
        [of("command", 128), of("request", 32), of("file", 8)].join(", ")
    };
    let topic = "name: '/r1/remote/telemetry/*'";
    let peers = addresses[1..].iter().enumerate();
    let peers: Vec<String> = peers
        .map(|(i, a)| format!("{{name: c{i}, address: '{a}'}}"))
        .collect();
    let robots = format!(
        "{{host: robot, radio: {{bind: '{robot}', rate: 600Mbit/s, queue_bytes: 64MiB}}, peers: [{}], services: [{}], \
         topics: [{{{topic}, direction: out, latched: true, publisher_priority: true}}]}}",
        peers.join(", "),
        services("role: serve"),
    );
    let next = AtomicUsize::new(0);
    // Each has a link of its own, and so is another host.
    let connect = Arc::new(move || -> Arc<dyn ControllerEnd> {
        let i = next.fetch_add(1, Ordering::Relaxed);
        let own = addresses[1 + i];
        let config = format!(
            "{{host: c{i}, radio: {{bind: '{own}', rate: 600Mbit/s, queue_bytes: 64MiB}}, \
             peers: [{{name: robot, address: '{robot}'}}], services: [{}], topics: [{{{topic}, direction: in}}]}}",
            services("role: call, from: robot"),
        );
        Arc::new(DirectController::new(parse(&config), "r1"))
    });
    let other = connect.clone();
    Fixture {
        robot: Box::new(move || Arc::new(DirectRobot::new(parse(&robots), "r1"))),
        connect: Box::new(move || connect()),
        other: Some(Box::new(move || other())),
        proves: true,
    }
}

fn parse(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn it_conforms_over_links_of_their_own() {
    conformance::run(apart);
}
