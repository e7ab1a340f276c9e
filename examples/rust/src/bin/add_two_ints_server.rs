//! Server that adds two numbers, until no request has come for a few seconds.
//!
//!     cargo run -p examples --bin add_two_ints_server
//!     cargo run -p examples --bin add_two_ints_client

use ropewalk::{Flavour, Node, Registry, Value};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("adder")?;
    // Types of installed packages are found by name; this one is defined here.
    let mut registry = Registry::new(Flavour::Ros1);
    registry.add_service("rospy_tutorials/AddTwoInts", "int64 a\nint64 b\n---\nint64 sum\n")?;
    let add_two_ints = registry.service("rospy_tutorials/AddTwoInts")?;
    let server = node.dynamic_server("/add_two_ints", &add_two_ints)?;

    let mut patience = Duration::from_secs(30);
    while let Some(request) = server.take_timeout(patience)? {
        patience = Duration::from_secs(3);
        let values = request.value()?;
        let number = |field| values.get(field).ok()?.as_integer();
        let sum = number("a").zip(number("b")).map(|(a, b)| a + b);
        let Some(sum) = sum.and_then(|sum| i64::try_from(sum).ok()) else {
            // The client gets this text as its error.
            server.reject(request, "the sum does not fit into 64 bits")?;
            continue;
        };
        let mut answer = add_two_ints.response().default_value();
        answer.set("sum", Value::I64(sum))?;
        server.respond_value(request, &answer)?;
        println!("answered {sum}");
    }
    Ok(())
}
