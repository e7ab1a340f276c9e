//! Clients and servers of generated structures.
#![cfg(feature = "msgs")]

use ropewalk::msgs::nav_msgs::{GetMap, GetMapRequest, GetMapResponse};
use ropewalk::msgs::std_srvs::{
    Empty, EmptyRequest, EmptyResponse, SetBool, SetBoolRequest, SetBoolResponse, Trigger, TriggerRequest,
    TriggerResponse,
};
use ropewalk::typed::{Bulk, FieldError, ServiceType, Typed};
use ropewalk::{
    BusConfig, CallError, Client, ClientOptions, Executor, Flavour, Node, PublishError, Registry,
    RespondError, Server, ServerOptions, Value,
};
use std::time::Duration;

/// Long enough for any machine; it bounds a hang, not speed.
const LONG: Duration = Duration::from_secs(120);

fn node() -> (tempfile::TempDir, Node) {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::with_config("typed", BusConfig::new(folder.path())).expect("a node");
    (folder, node)
}

fn client<S: ServiceType>(node: &Node, name: &str) -> Client<S> {
    let client = node.client(name).expect("a client");
    assert!(client.wait_for_server(LONG).expect("waits"));
    client
}

/// The text with which the server rejected a call.
fn rejected<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    match result {
        Err(CallError::Call(bus::CallError::Rejected { text, .. })) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_callback_answers_or_says_why_not() {
    let (_folder, node) = node();
    let served = node
        .service::<SetBool>("/brake", |request| match request.data {
            0 | 1 => Ok(SetBoolResponse {
                success: 1,
                message: format!("brake: {}", request.data),
            }),
            7 => panic!("no brake"),
            other => Err(format!("{other} is neither on nor off")),
        })
        .expect("serves");
    let client = client::<SetBool>(&node, "brake");
    assert_eq!(
        (client.service(), client.schema().name()),
        ("/brake", "std_srvs/SetBool".into())
    );
    let call = |data| client.call(&SetBoolRequest { data }, LONG);
    let reply = call(1).expect("a reply");
    assert_eq!(reply.read().expect("a response").message, "brake: 1");
    assert_eq!(rejected(call(2)), "2 is neither on nor off");
    assert_eq!(rejected(call(7)), "the handler of /brake panicked: no brake");
    assert_eq!(
        call(0).expect("goes on").read().expect("a response").message,
        "brake: 0"
    );
    assert_eq!(served.errors(), 1);
    assert!(matches!(
        node.client::<SetBool>("/a b"),
        Err(ropewalk::NodeError::Name(_))
    ));
    assert!(matches!(
        node.server::<SetBool>("/a b"),
        Err(ropewalk::NodeError::Name(_))
    ));
}

fn maps(node: &Node) -> (Server<GetMap>, Client<GetMap>) {
    let server = node.server::<GetMap>("/map").expect("a server");
    (server, client(node, "/map"))
}

#[test]
fn a_response_is_read_where_it_was_filled() {
    let (_folder, node) = node();
    let (server, client) = maps(&node);
    let mut pending = client.send(&GetMapRequest {}, LONG).expect("sent");
    assert!(pending.poll().is_none());
    let request = server.take_timeout(LONG).expect("takes").expect("a request");
    assert_eq!(request.read(), Ok(GetMapRequest {}));
    let mut answer = GetMapResponse::default();
    answer.map.info.width = 1000;
    answer.map.data = Bulk::Sized(1000);
    let mut loan = server.loan(&answer).expect("a block");
    loan.slice_mut::<i8>("map.data").expect("is there").fill(-1);
    server.respond_loan(request, loan).expect("answered");
    let reply = pending.wait().expect("a reply");
    let map = reply.read().expect("a map").map;
    assert_eq!((map.info.width, &*map.data), (1000, &[-1; 1000][..]));
    let part = reply.bus().part(0);
    assert_eq!(map.data.as_ptr().cast(), part.as_ptr(), "in place");
}

#[test]
fn a_response_whose_array_is_missing_is_an_error_at_both_ends() {
    let (_folder, node) = node();
    let (server, client) = maps(&node);
    let loan = client.loan(&GetMapRequest {}).expect("a block");
    let pending = client.send_loan(loan, LONG).expect("sent");
    let request = server.take_timeout(LONG).expect("takes").expect("a request");
    let mut answer = GetMapResponse::default();
    answer.map.data = Bulk::Sized(1000);
    let refused = server.respond(request, &answer).expect_err("nobody filled it");
    let RespondError::Content(PublishError::Fields { type_name, source }) = &refused else {
        panic!("{refused}");
    };
    let field = "map.data".to_owned();
    assert_eq!(type_name, "nav_msgs/GetMapResponse");
    assert_eq!(*source, FieldError::Unfilled { field });
    let text = rejected(pending.wait());
    assert!(text.contains("map.data: only its size is given"), "{text}");
}

/// The client writes a `bool` of two bytes.
#[test]
fn a_request_that_cannot_be_read_is_rejected_without_the_handler() {
    let (_folder, node) = node();
    let _served = node
        .service::<SetBool>("/brake", |_| panic!("it is called"))
        .expect("serves");
    let schema = ropewalk::typed::service::<SetBool>().expect("its definition");
    let client = node.dynamic_client("/brake", &schema).expect("a client");
    assert!(client.wait_for_server(LONG).expect("waits"));
    let loan = client.loan(2, &[]).expect("a block");
    let pending = client.send(loan, LONG).expect("sent");
    assert_eq!(
        rejected(pending.wait()),
        "the request is not a std_srvs/SetBoolRequest: 1 bytes and 0 data parts follow the last field"
    );
}

#[test]
fn an_executor_serves_structures() {
    let (_folder, node) = node();
    let mut executor = Executor::new(&node).expect("an executor");
    let stopper = executor.stopper();
    executor
        .serve::<Empty>("/reset", |_| Ok(EmptyResponse {}))
        .expect("serves");
    let options = || ServerOptions::default().with_depth(3);
    let other = node.server_with::<Trigger>("/stop", options()).expect("a server");
    let refused = executor.add_server(other, |_| Ok(TriggerResponse::default()));
    assert!(
        refused
            .expect_err("does not wake it")
            .to_string()
            .starts_with("/stop")
    );
    let options = options().with_wait_set(executor.wait_set());
    let server = node.server_with::<Trigger>("/stop", options).expect("a server");
    let stop = move |_: TriggerRequest| {
        stopper.stop();
        Ok(TriggerResponse {
            success: 1,
            message: "stops".into(),
        })
    };
    executor.add_server(server, stop).expect("wakes it");
    let spinning = std::thread::spawn(move || executor.spin());
    let reset = client::<Empty>(&node, "/reset");
    let reply = reset.call(&EmptyRequest {}, LONG).expect("a reply");
    assert_eq!(reply.read(), Ok(EmptyResponse {}));
    let stop = node.client_with::<Trigger>("/stop", ClientOptions::default().with_max_outstanding(1));
    let stop = stop.expect("a client");
    assert!(stop.wait_for_server(LONG).expect("waits"));
    let reply = stop.call(&TriggerRequest {}, LONG).expect("a reply");
    assert_eq!(reply.read().expect("a response").message, "stops");
    spinning.join().expect("no panic").expect("spins");
}

/// ROS 1's definition of the service is that of `msgs`; a server of ROS 2's answers it.
#[test]
fn the_other_ros_is_called() {
    let (_folder, node) = node();
    assert_eq!(SetBool::FLAVOUR, Flavour::Ros1);
    let theirs = Registry::new(Flavour::Ros2)
        .service("std_srvs/SetBool")
        .expect("is known");
    let response = theirs.response().clone();
    let _served = node
        .dynamic_service("/brake", &theirs, move |request| {
            let request = request.value().map_err(|e| e.to_string())?;
            let mut answer = response.default_value();
            let on = request.get("data").map_err(|e| e.to_string())?;
            answer
                .set("message", Value::String(format!("{on:?}")))
                .map_err(|e| e.to_string())?;
            Ok(answer)
        })
        .expect("serves");
    let client = client::<SetBool>(&node, "/brake");
    let reply = client.call(&SetBoolRequest { data: 1 }, LONG).expect("a reply");
    assert_eq!(reply.read().expect("a response").message, "Bool(true)");
}
