//! Client that asks the server to add two numbers.
//!
//!     cargo run -p examples --bin add_two_ints_server
//!     cargo run -p examples --bin add_two_ints_client

use ropewalk::{Node, Value};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("asker")?;
    // The type comes from the server.
    let add_two_ints = node.discover_service("/add_two_ints", Duration::from_secs(30))?;
    let client = node.dynamic_client("/add_two_ints", &add_two_ints)?;
    client.wait_for_server(Duration::from_secs(30))?;
    for (a, b) in [(1, 2), (40, 2), (i64::MAX, 1)] {
        let mut request = add_two_ints.request().default_value();
        request.set("a", Value::I64(a))?;
        request.set("b", Value::I64(b))?;
        match client.call_value(&request, Duration::from_secs(30)) {
            Ok(answer) => {
                let sum = answer.get("sum")?.as_integer().unwrap_or_default();
                println!("{a} + {b} = {sum}");
            }
            Err(error) => println!("{a} + {b}: {error}"),
        }
    }
    Ok(())
}
