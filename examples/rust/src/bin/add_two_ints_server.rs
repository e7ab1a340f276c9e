//! Server that adds two numbers, until no request has come for a few seconds.
//!
//!     cargo run -p examples --bin add_two_ints_server
//!     cargo run -p examples --bin add_two_ints_client

// Made by `ropewalk gen rust --output examples/rust/src examples/services/rospy_tutorials`.
#[path = "../ropewalk_msgs/mod.rs"]
mod ropewalk_msgs;

use ropewalk::Node;
use ropewalk_msgs::rospy_tutorials::{AddTwoInts, AddTwoIntsResponse};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("adder")?;
    let server = node.server::<AddTwoInts>("/add_two_ints")?;

    let mut patience = Duration::from_secs(30);
    while let Some(request) = server.take_timeout(patience)? {
        patience = Duration::from_secs(3);
        let numbers = request.read()?;
        let Some(sum) = numbers.a.checked_add(numbers.b) else {
            // The client gets this text as its error.
            server.reject(request, "the sum does not fit into 64 bits")?;
            continue;
        };
        server.respond(request, &AddTwoIntsResponse { sum })?;
        println!("answered {sum}");
    }
    Ok(())
}
