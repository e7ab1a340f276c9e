//! Client that asks the server to add two numbers.
//!
//!     cargo run -p examples --bin add_two_ints_server
//!     cargo run -p examples --bin add_two_ints_client

// Made by `ropewalk gen rust --output examples/rust/src examples/services/rospy_tutorials`.
#[path = "../ropewalk_msgs/mod.rs"]
mod ropewalk_msgs;

use ropewalk::Node;
use ropewalk_msgs::rospy_tutorials::{AddTwoInts, AddTwoIntsRequest};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("asker")?;
    let client = node.client::<AddTwoInts>("/add_two_ints")?;
    client.wait_for_server(Duration::from_secs(30))?;
    for (a, b) in [(1, 2), (40, 2), (i64::MAX, 1)] {
        match client.call(&AddTwoIntsRequest { a, b }, Duration::from_secs(30)) {
            Ok(answer) => println!("{a} + {b} = {}", answer.read()?.sum),
            Err(error) => println!("{a} + {b}: {error}"),
        }
    }
    Ok(())
}
