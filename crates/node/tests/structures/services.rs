//! Requests and replies as structures.

use crate::LONG;
use crate::r2r::SetBool::{Request, Response};
use crate::r2r::std_msgs;
use ropewalk::{BusConfig, CallError, Flavour, Node, PublishError, Registry, RespondError};

#[test]
fn a_service_is_called_and_answered_with_structures() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::with_config("tester", BusConfig::new(folder.path())).expect("a node");
    let service = Registry::new(Flavour::Ros2)
        .service("std_srvs/SetBool")
        .expect("known");
    let server = node.dynamic_server("/switch", &service).expect("a server");
    let client = node.dynamic_client("/switch", &service).expect("a client");
    assert!(client.wait_for_server(LONG).expect("waits"));

    let pending = client
        .send_structure(&Request { data: true }, LONG)
        .expect("sent");
    let request = server.take_timeout(LONG).expect("takes").expect("a request");
    assert_eq!(request.structure::<Request>(), Ok(Request { data: true }));
    assert!(request.structure::<Response>().is_err());
    let answer = Response {
        success: true,
        message: "on".into(),
    };
    server.respond_structure(request, &answer).expect("answered");
    let reply = pending.wait().expect("a reply");
    assert_eq!(reply.structure::<Response>(), Ok(answer));
    assert!(reply.structure::<Request>().is_err());

    // Answering with a different structure is an error for the server, and also for the client.
    let asking = std::thread::scope(|scope| {
        let asking = scope.spawn(|| client.call_structure(&Request { data: false }, LONG));
        let request = server.take_timeout(LONG).expect("takes").expect("a request");
        let reported = server.respond_structure(request, &std_msgs::String::default());
        assert!(matches!(
            reported,
            Err(RespondError::Content(PublishError::Structure { .. }))
        ));
        asking.join().expect("no panic")
    });
    let error = asking.expect_err("no answer").to_string();
    assert!(
        error.contains("std_srvs/SetBool_Response has `success`"),
        "{error}"
    );

    let refused = client.call_structure(&std_msgs::String::default(), LONG);
    assert!(matches!(
        refused,
        Err(CallError::Request(PublishError::Structure { type_name, .. })) if type_name == "std_srvs/SetBool_Request"
    ));
}
