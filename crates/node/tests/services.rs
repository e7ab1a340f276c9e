//! Services by schema: values, ROS 1 bytes, blocks filled in place.
#![allow(missing_docs)]

use ropewalk::{BusConfig, CallError, Flavour, Node, Registry, Service, Value};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(120);

fn node(folder: &tempfile::TempDir) -> Node {
    Node::with_config("tester", BusConfig::new(folder.path().join("bus"))).expect("a node")
}

fn two_ints() -> Service {
    let mut registry = Registry::new(Flavour::Ros1);
    let text = "int64 a\nint64 b\n---\nint64 sum\n";
    registry
        .add_service("rospy_tutorials/AddTwoInts", text)
        .expect("a service");
    registry.service("rospy_tutorials/AddTwoInts").expect("a service")
}

fn number(value: &Value, field: &str) -> i64 {
    let number = value.get(field).expect("a field").as_integer().expect("a number");
    i64::try_from(number).expect("64 bits")
}

fn request(service: &Service, a: i64, b: i64) -> Value {
    let mut request = service.request().default_value();
    request.set("a", Value::I64(a)).expect("fits");
    request.set("b", Value::I64(b)).expect("fits");
    request
}

fn add(service: &Service) -> impl FnMut(&ropewalk::Request) -> Result<Value, String> + Send + 'static {
    let response = service.response().clone();
    move |request| {
        let request = request.value().map_err(|e| e.to_string())?;
        let sum = number(&request, "a").checked_add(number(&request, "b"));
        let mut answer = response.default_value();
        let sum = Value::I64(sum.ok_or("the sum is too large")?);
        answer.set("sum", sum).map_err(|e| e.to_string())?;
        Ok(answer)
    }
}

#[test]
fn a_callback_answers_or_says_why_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (node(&folder), node(&folder));
    let service = two_ints();
    assert_eq!(service.md5_hex(), "6a2e34150c00229791cc89ff309fff21");
    let callback = one
        .dynamic_service("add", &service, add(&service))
        .expect("serves");

    // The type comes from the server.
    let found = two.discover_service("/add", LONG).expect("is served");
    assert_eq!((found.name(), found.md5()), (service.name(), service.md5()));
    let client = two.dynamic_client("/add", &found).expect("a client");
    assert!(client.wait_for_server(LONG).expect("waits"));
    let sum = client
        .call_value(&request(&found, 40, 2), LONG)
        .expect("an answer");
    assert_eq!(number(&sum, "sum"), 42);
    let bytes = [1i64.to_le_bytes(), 2i64.to_le_bytes()].concat();
    let reply = client.call_ros1(&bytes, LONG).expect("an answer");
    assert_eq!(reply.ros1().expect("reads"), 3i64.to_le_bytes());

    let error = client
        .call_value(&request(&found, i64::MAX, 1), LONG)
        .expect_err("too large");
    assert!(error.to_string().contains("the sum is too large"), "{error}");
    assert!(matches!(
        client.call_ros1(b"abc", LONG),
        Err(CallError::Request(_))
    ));

    // Services are not topics.
    assert!(two.topics().expect("topics").is_empty());
    let services = two.services().expect("services");
    assert_eq!(services.len(), 1);
    assert_eq!(
        (&*services[0].service.service, services[0].servers.len()),
        ("/add", 1)
    );
    drop(callback);
    assert!(two.discover_service("/add", Duration::ZERO).is_err());
}

#[test]
fn answers_that_do_not_fit_are_reported_to_both_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(&folder);
    let service = two_ints();
    let server = node.dynamic_server("/add", &service).expect("a server");
    let client = node.dynamic_client("/add", &service).expect("a client");
    assert!(client.wait_for_server(LONG).expect("waits"));
    let pending = client.send_value(&request(&service, 1, 2), LONG).expect("sent");
    let taken = server.take_timeout(LONG).expect("takes").expect("a request");
    let error = server
        .respond_value(taken, &request(&service, 1, 2))
        .expect_err("no answer");
    assert!(error.to_string().contains("AddTwoIntsResponse"), "{error}");
    let error = pending.wait().expect_err("no answer");
    assert!(error.to_string().contains("AddTwoIntsResponse"), "{error}");
    assert!(node.dynamic_server("/a b", &service).is_err());
}

#[test]
fn large_fields_are_read_where_they_were_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (node(&folder), node(&folder));
    let mut registry = Registry::new(Flavour::Ros1);
    registry
        .add_service("test_srvs/Blur", "uint8[] pixels\n---\nuint8[] pixels\n")
        .expect("a service");
    let service = registry.service("test_srvs/Blur").expect("a service");
    let (server, client) = (
        one.dynamic_server("/blur", &service).expect("a server"),
        two.dynamic_client("/blur", &service).expect("a client"),
    );
    assert!(client.wait_for_server(LONG).expect("waits"));
    let mut bytes = 1_000_000u32.to_le_bytes().to_vec();
    bytes.resize(1_000_004, 7);
    let pending = client.send_ros1(&bytes, LONG).expect("sent");
    let taken = server.take_timeout(LONG).expect("takes").expect("a request");
    assert_eq!(taken.bus().part(0).len(), 1_000_000);
    let mut answer = server
        .loan(taken.bus().control().len(), &[1_000_000])
        .expect("memory");
    answer.control_mut().copy_from_slice(taken.bus().control());
    answer.part_mut(0).fill(8);
    server.respond(taken, answer).expect("answers");
    let reply = pending.wait().expect("an answer");
    assert_eq!(reply.bus().part(0).bytes()[999_999], 8);
    assert_eq!(reply.ros1().expect("reads").len(), 1_000_004);
}
