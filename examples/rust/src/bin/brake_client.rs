//! Client that sets and releases a brake.
//!
//!     cargo run -p examples --bin brake_server
//!     cargo run -p examples --bin brake_client

use ropewalk::Node;
use ropewalk::msgs::std_srvs::{SetBool, SetBoolRequest};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("operator")?;
    let client = node.client::<SetBool>("/brake")?;
    client.wait_for_server(Duration::from_secs(30))?;
    for data in [1, 0] {
        let reply = client.call(&SetBoolRequest { data }, Duration::from_secs(30))?;
        println!("{}", reply.read()?.message);
    }
    Ok(())
}
