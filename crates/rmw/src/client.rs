//! Clients: the calling end of a service.

use crate::abi::introspection::ServiceTypeSupport;
use crate::abi::{EventCallback, Gid, QosProfile, RequestId, Ret, RmwNode, RmwService, ServiceInfo};
use crate::callback::Callback;
use crate::codec;
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, guard_ptr, ours};
use crate::graph::lock;
use crate::graph::record::{Endpoint, Kind};
use crate::node::{self, c_text, drop_c_text};
use crate::publisher::{gid_bytes, of_endpoint, topic_name};
use crate::qos::End;
use crate::service::{profile, type_name};
use crate::typesupport::ServiceType;
use bus::{CallError, ClientOptions, Pending, Reply};
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum number of unanswered requests at a time.
const MAX_OUTSTANDING: u32 = 1024;

/// State of a client.
pub(crate) struct Client {
    context: Arc<crate::context::Context>,
    node: u64,
    id: u64,
    bus: ropewalk::Client,
    ty: ServiceType,
    qos: QosProfile,
    calls: Mutex<Calls>,
    callback: Callback,
}

#[derive(Default)]
struct Calls {
    sent: i64,
    waiting: Vec<(i64, Pending)>,
    answered: VecDeque<(i64, Reply)>,
    taken: u64,
}

/// The object that wait sets and handles point to.
pub(crate) struct Handle(pub(crate) Arc<Client>);

/// # Safety
/// The pointer is null or points to a client.
unsafe fn of<'a>(client: *const RmwService) -> Outcome<&'a Arc<Client>> {
    // SAFETY: upheld by the caller; identifiers live forever.
    let client = unsafe { arg(client, "client")? };
    // SAFETY: likewise.
    unsafe { ours(client.implementation, "client")? };
    // SAFETY: this library owns `data` while the client lives.
    Ok(&unsafe { arg(client.data.cast::<Handle>(), "client")? }.0)
}

impl Calls {
    /// Collects responses that arrived.
    fn poll(&mut self) {
        let mut i = 0;
        while i < self.waiting.len() {
            match self.waiting[i].1.poll() {
                None => i += 1,
                Some(outcome) => {
                    let (number, _) = self.waiting.swap_remove(i);
                    match outcome {
                        Ok(reply) => self.answered.push_back((number, reply)),
                        // DDS does not report a request that nobody answers.
                        Err(error) => tracing::debug!(number, %error, "a request has no response"),
                    }
                }
            }
        }
    }
}

impl Client {
    /// Whether a response can be taken. If not, the descriptor becomes readable when one arrives.
    pub(crate) fn rearm(&self) -> Outcome<bool> {
        let mut calls = lock(&self.calls);
        loop {
            calls.poll();
            if !calls.answered.is_empty() {
                return Ok(true);
            }
            if !self.bus.bus().rearm().map_err(Failure::error)? {
                return Ok(false);
            }
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bus.bus().as_fd()
    }
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_client(
    node: *const RmwNode,
    type_support: *const ServiceTypeSupport,
    name: *const c_char,
    qos: *const QosProfile,
) -> *mut RmwService {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        let node = unsafe { node::of(node)? };
        // SAFETY: likewise.
        let qos = unsafe {
            arg(type_support, "type_supports")?;
            arg(qos, "qos_policies")?
        };
        // SAFETY: likewise.
        let name = unsafe { topic_name(name, qos, "service_name")? };
        let qos = profile(qos, End::Publisher)?;
        // SAFETY: type supports are valid while their library is loaded.
        let ty = unsafe { ServiceType::new(type_support) }.map_err(Failure::error)?;
        let options = ClientOptions::default().with_max_outstanding(MAX_OUTSTANDING);
        let bus = node.context.node.dynamic_client_with(name, &ty.service, options);
        let bus = bus.map_err(Failure::error)?;
        let id = bus.bus().id();
        node.context.graph.add(
            node.key,
            Endpoint {
                kind: Kind::Client,
                name: name.to_owned(),
                type_name: type_name(&ty),
                type_hash: ty.hash.parts(),
                id,
                qos: (&qos).into(),
            },
        );
        let client = Client {
            context: node.context.clone(),
            node: node.key,
            id,
            bus,
            ty,
            qos,
            calls: Mutex::default(),
            callback: Callback::default(),
        };
        Ok(Box::into_raw(Box::new(RmwService {
            implementation: IDENTIFIER.as_ptr(),
            data: Box::into_raw(Box::new(Handle(Arc::new(client)))).cast(),
            service_name: c_text(name),
        })))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_client(node: *mut RmwNode, client: *mut RmwService) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe {
            node::of(node)?;
            of(client)?;
        }
        // SAFETY: made by `rmw_create_client`, and the caller no longer uses it.
        let inner = unsafe {
            let handle = Box::from_raw(client);
            drop_c_text(handle.service_name);
            Box::from_raw(handle.data.cast::<Handle>())
        };
        inner.0.callback.end();
        inner.0.context.graph.remove(inner.0.node, inner.0.id);
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_send_request(
    client: *const RmwService,
    message: *const c_void,
    sequence: *mut i64,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let client = unsafe { of(client)? };
        if message.is_null() {
            return Err(Failure::argument("ros_request argument is null"));
        }
        // SAFETY: upheld by the caller.
        let sequence = unsafe { arg_mut(sequence, "sequence_id")? };
        let loan = |control, parts: &[usize]| client.bus.bus().loan(control, parts);
        // SAFETY: the caller's message has the service's request type.
        let loan = unsafe { codec::written(&client.ty.request, message, loan)? };
        let mut calls = lock(&client.calls);
        calls.poll();
        calls.sent += 1;
        let number = calls.sent;
        match client.bus.bus().send(loan, Duration::MAX) {
            Ok(pending) => calls.waiting.push((number, pending)),
            // As in DDS: no server is there to answer.
            Err(CallError::NoServer { .. }) => {}
            Err(error) => return Err(Failure::error(error)),
        }
        *sequence = number;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_response(
    client: *const RmwService,
    info: *mut ServiceInfo,
    message: *mut c_void,
    taken: *mut bool,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let client = unsafe { of(client)? };
        // SAFETY: likewise.
        let (info, taken) = unsafe { (arg_mut(info, "service_info")?, arg_mut(taken, "taken")?) };
        if message.is_null() {
            return Err(Failure::argument("ros_response argument is null"));
        }
        *taken = false;
        let mut calls = lock(&client.calls);
        calls.poll();
        let Some((number, reply)) = calls.answered.pop_front() else {
            return Ok(());
        };
        calls.taken += 1;
        drop(calls);
        let from = reply.message();
        // SAFETY: the caller's message has the service's response type and is initialised.
        unsafe { codec::read(&client.ty.response, from.control(), from, message)? };
        *info = ServiceInfo {
            source_timestamp: from.stamp().as_nanos() as i64,
            received_timestamp: clock::realtime().as_nanos() as i64,
            request_id: RequestId {
                writer_guid: gid_bytes(client.id),
                sequence_number: number,
            },
        };
        *taken = true;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_service_server_is_available(
    node: *const RmwNode,
    client: *const RmwService,
    available: *mut bool,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (client, available) = unsafe {
            node::of(node)?;
            (of(client)?, arg_mut(available, "is_available")?)
        };
        *available = client.bus.bus().has_server();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_gid_for_client(client: *const RmwService, gid: *mut Gid) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (client, gid) = unsafe { (of(client)?, arg_mut(gid, "gid")?) };
        *gid = of_endpoint(client.id);
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_client_request_publisher_get_actual_qos(
    client: *const RmwService,
    qos: *mut QosProfile,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (client, qos) = unsafe { (of(client)?, arg_mut(qos, "qos")?) };
        *qos = client.qos;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_client_response_subscription_get_actual_qos(
    client: *const RmwService,
    qos: *mut QosProfile,
) -> Ret {
    // SAFETY: upheld by the caller.
    unsafe { rmw_client_request_publisher_get_actual_qos(client, qos) }
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_client_set_on_new_response_callback(
    client: *mut RmwService,
    callback: EventCallback,
    data: *const c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let inner = unsafe { of(client)? };
        let waiting = inner.clone();
        let look = move || {
            let ready = waiting.rearm().unwrap_or(false);
            ready.then(|| lock(&waiting.calls).taken)
        };
        inner.callback.set(callback, data, inner.clone(), look)
    })
}
