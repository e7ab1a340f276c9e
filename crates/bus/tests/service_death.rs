//! Servers and clients that are killed or stopped in the middle of a call.
#![allow(missing_docs)]

mod common;

use bus::{
    Bus, BusConfig, CallError, Client, ClientOptions, RespondError, Server, ServerOptions, ServiceType,
};
use common::child::{Child, hear, role, say};
use common::{LONG, bus, eventually, folder};
use rustix::process::Signal;
use std::time::Duration;

fn service() -> ServiceType {
    ServiceType {
        service: "/mortal".into(),
        type_name: "test_srvs/Echo".into(),
        type_hash: [0x5A; 16],
        flavour: Default::default(),
        definition: "".into(),
    }
}

fn client(bus: &Bus) -> Client {
    let client = bus.client(service(), ClientOptions::default()).unwrap();
    assert!(client.wait_for_server(LONG).unwrap());
    client
}

fn answer(server: &Server, request: bus::Request) -> Result<(), RespondError> {
    let loan = server.loan(0, &[]).unwrap();
    server.respond(request, loan)
}

#[test]
fn child_entry() {
    let Some((role, dir)) = role() else { return };
    let bus = Bus::open(BusConfig::new(dir)).unwrap();
    match &*role[0] {
        "server" => {
            let server = bus.server(service(), ServerOptions::default()).unwrap();
            say("ready");
            loop {
                let request = server.take_timeout(LONG).unwrap().expect("a request");
                say("taken");
                assert_eq!(hear(), "answer");
                answer(&server, request).unwrap();
            }
        }
        "client" => {
            let client = client(&bus);
            let loan = client.loan(0, &[100_000]).unwrap();
            let pending = client.send(loan, LONG).unwrap();
            say("sent");
            hear();
            drop(pending);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_killed_server_is_noticed_by_all_waiting_clients() {
    let dir = folder();
    let bus = bus(&dir);
    let mut child = Child::start("server", dir.path(), &[]);
    assert_eq!(child.hear(), "ready");
    let client = client(&bus);
    // With a deadline longer than any test, so that only the hang-up can end these calls.
    let ages = Duration::from_secs(1_000_000);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| client.call(client.loan(0, &[]).unwrap(), ages)))
            .collect();
        assert_eq!(child.hear(), "taken");
        eventually("all are sent", || client.stats().sent == 4);
        child.kill();
        for call in calls {
            let error = call.join().unwrap().unwrap_err();
            assert!(matches!(error, CallError::ServerDied { .. }), "{error}");
        }
    });
    assert_eq!((client.stats().server_died, client.stats().outstanding), (4, 0));
    eventually("it is no server any more", || !client.has_server());

    // Its successor serves.
    let mut child = Child::start("server", dir.path(), &[]);
    assert_eq!(child.hear(), "ready");
    assert!(client.wait_for_server(LONG).unwrap());
    let pending = client.send(client.loan(0, &[]).unwrap(), ages).unwrap();
    assert_eq!(child.hear(), "taken");
    child.say("answer");
    pending.wait().unwrap();
}

#[test]
fn a_reply_that_was_sent_outlives_its_server() {
    let dir = folder();
    let bus = bus(&dir);
    let mut child = Child::start("server", dir.path(), &[]);
    assert_eq!(child.hear(), "ready");
    let client = client(&bus);
    let answered = client.send(client.loan(0, &[]).unwrap(), LONG).unwrap();
    assert_eq!(child.hear(), "taken");
    let unanswered = client.send(client.loan(0, &[]).unwrap(), LONG).unwrap();
    child.say("answer");
    assert_eq!(child.hear(), "taken");
    child.kill();
    eventually("its end is known", || !client.has_server());
    answered.wait().unwrap();
    assert!(matches!(
        unanswered.wait().unwrap_err(),
        CallError::ServerDied { .. }
    ));
}

#[test]
fn a_stopped_server_is_a_timeout_and_goes_on_later() {
    let dir = folder();
    let bus = bus(&dir);
    let mut child = Child::start("server", dir.path(), &[]);
    assert_eq!(child.hear(), "ready");
    let client = client(&bus);
    child.signal(Signal::STOP);
    eventually("it is stopped", || child.is_stopped());
    let error = client
        .call(client.loan(0, &[]).unwrap(), Duration::from_millis(100))
        .unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    child.signal(Signal::CONT);
    let pending = client.send(client.loan(0, &[]).unwrap(), LONG).unwrap();
    assert_eq!(child.hear(), "taken");
    child.say("answer");
    pending.wait().unwrap();
}

#[test]
fn replies_to_a_killed_client_are_dropped_and_counted() {
    let dir = folder();
    let bus = bus(&dir);
    let server = bus.server(service(), ServerOptions::default()).unwrap();
    let mut child = Child::start("client", dir.path(), &[]);
    assert_eq!(child.hear(), "sent");
    let request = server.take_timeout(LONG).unwrap().expect("a request");
    // It sends a request as soon as it is accepted, possibly before it is known here.
    assert!(server.wait_for_clients(1, LONG));
    child.kill();
    eventually("its end is known", || server.client_count() == 0);
    // Its request stays readable.
    assert_eq!(request.part(0).len(), 100_000);
    assert!(matches!(answer(&server, request), Err(RespondError::ClientGone)));
    assert_eq!(server.stats().client_gone, 1);
    // Nobody else is delayed.
    let client = client(&bus);
    let pending = client.send(client.loan(0, &[]).unwrap(), LONG).unwrap();
    answer(&server, server.take_timeout(LONG).unwrap().expect("a request")).unwrap();
    pending.wait().unwrap();
}
