//! Server that sets a brake, until no request has come for a few seconds.
//!
//!     cargo run -p examples --bin brake_server
//!     cargo run -p examples --bin brake_client

use ropewalk::Node;
use ropewalk::msgs::std_srvs::{SetBool, SetBoolResponse};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Node::new("base")?;
    let server = node.server::<SetBool>("/brake")?;

    let mut patience = Duration::from_secs(30);
    while let Some(request) = server.take_timeout(patience)? {
        patience = Duration::from_secs(3);
        // A `bool` is a byte.
        let state = match request.read()?.data {
            0 => "released",
            _ => "set",
        };
        let answer = SetBoolResponse {
            success: 1,
            message: format!("the brake is {state}"),
        };
        server.respond(request, &answer)?;
        println!("{state}");
    }
    Ok(())
}
