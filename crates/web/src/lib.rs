#![forbid(unsafe_code)]
//! A small HTTP/1.1 and WebSocket (RFC 6455) server without an async runtime; on it the Foxglove protocol and a page for
//! operators.
//!
//! Each connection has a thread that reads and one that writes, and a [`Queue`] that is bounded in bytes, keeps the
//! newest messages of each topic and sends urgent topics first. Messages of the bus are written to the socket from
//! their blocks, without a copy for each client.
//!
//! [`Access`] decides who may connect and what they may do. Everything that a client can make the server hold is
//! bounded by [`Limits`]. With [`Tls`], connections are encrypted; without it, anyone on the network path can read
//! them.
//!
//! ```
//! use std::sync::Arc;
//! use web::{Access, Page, Request, Response, Server, ServerOptions, Site, Status};
//!
//! struct Hello;
//! impl Site for Hello {
//!     fn page(&self, request: &Request) -> Response {
//!         match request.path() {
//!             "/" => Response::new(Status::Ok, Page::Text("hello".into())),
//!             _ => Response::new(Status::NotFound, Page::Text("no such page".into())),
//!         }
//!     }
//! }
//! let options = ServerOptions::new("127.0.0.1:0".parse()?, Access::new(&[])?);
//! let server = Server::start(options, Arc::new(Hello))?;
//! println!("http://{}/", server.address());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
pub mod drive;
pub mod foxglove;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod json;
mod limits;
mod pace;
pub mod page;
mod queue;
mod response;
mod server;
mod socket;
mod stream;
mod tls;
mod upgrade;
mod write;

pub use access::{Access, AccessError, Refusal, Role, Token};
pub use head::{HeadError, Request};
pub use json::{JsonError, parse_json};
pub use limits::Limits;
pub use queue::{Body, KEEP, Push, Queue};
pub use response::{Page, Response, Status};
pub use server::{Server, ServerError, ServerOptions, Site};
pub use socket::{Client, Handler, Received};
pub use tls::{Tls, TlsError};
pub use upgrade::Accepted;
