//! Calls of services by a client.

use super::message::Call;
use super::publish::Encoding;
use super::world::NamedService;
use crate::frame::Opcode;
use crate::{Queue, parse_json};
use ropewalk::Node;
use schema::Show;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Calls of one client that wait for their answers; each has a thread.
const MAX_OPEN: usize = 16;
/// Time limit for finding a server, and then for its answer.
const FIND: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(30);
/// The operation with which the server sends a response.
const RESPONSE: u8 = 3;

/// The open calls of one client.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Arc<AtomicUsize>,
}

impl Calls {
    /// Calls in a thread, which queues the answer or the error.
    pub(crate) fn start(&self, node: &Node, named: NamedService, call: Call, queue: &Arc<Queue>) {
        let (id, service) = (call.id, call.service);
        if self.open.fetch_add(1, Ordering::Relaxed) >= MAX_OPEN {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return fail(
                queue,
                service,
                id,
                &format!("more than {MAX_OPEN} calls wait for their answers"),
            );
        }
        let (open, node, of_thread) = (self.open.clone(), node.clone(), queue.clone());
        let started = std::thread::Builder::new()
            .name("foxglove-call".into())
            .spawn(move || {
                match answer(&node, &named, &call) {
                    Ok(payload) => {
                        let mut bytes = vec![RESPONSE];
                        bytes.extend(service.to_le_bytes());
                        bytes.extend(id.to_le_bytes());
                        bytes.extend((call.encoding.len() as u32).to_le_bytes());
                        bytes.extend(call.encoding.as_bytes());
                        bytes.extend(payload);
                        of_thread.answer(Opcode::Binary, bytes);
                    }
                    Err(error) => fail(&of_thread, service, id, &error),
                }
                open.fetch_sub(1, Ordering::Relaxed);
            });
        if started.is_err() {
            self.open.fetch_sub(1, Ordering::Relaxed);
            fail(queue, service, id, "cannot start a thread for the call");
        }
    }
}

/// Tells the client that a call failed.
pub(crate) fn fail(queue: &Queue, service: u32, call: u32, message: &str) {
    let json =
        json!({ "op": "serviceCallFailure", "serviceId": service, "callId": call, "message": message });
    queue.answer(Opcode::Text, json.to_string().into_bytes());
}

/// Bytes of both ROS versions differ only in the serialization, so the server's own type serves for both.
fn answer(node: &Node, named: &NamedService, call: &Call) -> Result<Vec<u8>, String> {
    let encoding = Encoding::parse(&call.encoding)?;
    let service = &named.service;
    let client = node
        .dynamic_client(&named.name, service)
        .map_err(|e| e.to_string())?;
    if !client.wait_for_server(FIND).map_err(|e| e.to_string())? {
        return Err(format!("{} has no server any more", named.name));
    }
    let pending = match encoding {
        Encoding::Ros1 => client.send_ros1(&call.payload, ANSWER),
        Encoding::Cdr => client.send_cdr(&call.payload, ANSWER),
        Encoding::Json => {
            let json = parse_json(&call.payload).map_err(|e| e.to_string())?;
            let request = service
                .request()
                .value_from_json(&json)
                .map_err(|e| e.to_string())?;
            client.send_value(&request, ANSWER)
        }
    };
    let reply = pending
        .map_err(|e| e.to_string())?
        .wait()
        .map_err(|e| e.to_string())?;
    match encoding {
        Encoding::Ros1 => reply.ros1().map_err(|e| e.to_string()),
        Encoding::Cdr => reply.cdr().map_err(|e| e.to_string()),
        Encoding::Json => {
            let value = reply.value().map_err(|e| e.to_string())?;
            Ok(value.to_json(Show::ALL).to_string().into_bytes())
        }
    }
}
