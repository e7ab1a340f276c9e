//! Services: the server end.

use crate::abi::introspection::ServiceTypeSupport;
use crate::abi::{EventCallback, QosProfile, RequestId, Ret, RmwNode, RmwService, ServiceInfo};
use crate::callback::Callback;
use crate::codec;
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, guard_ptr, ours};
use crate::graph::lock;
use crate::graph::record::{Endpoint, Kind};
use crate::node::{self, c_text, drop_c_text};
use crate::publisher::{gid_bytes, topic_name};
use crate::qos::End;
use crate::typesupport::ServiceType;
use bus::ServerOptions;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of requests per client that are taken but not answered.
const MAX_HELD: u32 = 256;
/// Maximum number of requests in total that are taken but not answered; beyond it, the oldest is given up.
const MAX_OPEN: usize = 4096;

/// State of a service.
pub(crate) struct Service {
    context: Arc<crate::context::Context>,
    node: u64,
    id: u64,
    bus: ropewalk::Server,
    ty: ServiceType,
    qos: QosProfile,
    /// Requests that are taken but not answered, by client and number.
    open: Mutex<BTreeMap<(u64, u64), ropewalk::Request>>,
    taken: AtomicU64,
    callback: Callback,
}

/// The object that wait sets and handles point to.
pub(crate) struct Handle(pub(crate) Arc<Service>);

/// # Safety
/// The pointer is null or points to a service.
unsafe fn of<'a>(service: *const RmwService) -> Outcome<&'a Arc<Service>> {
    // SAFETY: upheld by the caller; identifiers live forever.
    let service = unsafe { arg(service, "service")? };
    // SAFETY: likewise.
    unsafe { ours(service.implementation, "service")? };
    // SAFETY: this library owns `data` while the service lives.
    Ok(&unsafe { arg(service.data.cast::<Handle>(), "service")? }.0)
}

impl Service {
    /// Whether a request can be taken. If not, the descriptor becomes readable when one arrives.
    pub(crate) fn rearm(&self) -> Outcome<bool> {
        self.bus.bus().rearm().map_err(Failure::error)
    }
}

impl AsFd for Service {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bus.as_fd()
    }
}

/// Returns a service's type name in ROS 2's notation.
pub(crate) fn type_name(ty: &ServiceType) -> String {
    let request = ty.service.request().ros2_name();
    request.strip_suffix("_Request").unwrap_or(&request).to_owned()
}

/// Returns the effective profile of a service's or client's two topics. They must keep all messages and must not block.
pub(crate) fn profile(profile: &QosProfile, end: End) -> Outcome<QosProfile> {
    if let Some(problem) = profile.problem() {
        return Err(Failure::argument(problem));
    }
    let services = QosProfile {
        reliability: match profile.reliability {
            crate::qos::SYSTEM_DEFAULT | crate::qos::RELIABILITY_BEST_AVAILABLE => crate::qos::RELIABLE,
            other => other,
        },
        durability: match profile.durability {
            crate::qos::DURABILITY_BEST_AVAILABLE => crate::qos::VOLATILE,
            other => other,
        },
        ..*profile
    };
    Ok(services.resolved(end, &[]))
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_service(
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
            arg(qos, "qos_profile")?
        };
        // SAFETY: likewise.
        let name = unsafe { topic_name(name, qos, "service_name")? };
        let qos = profile(qos, End::Subscription)?;
        // SAFETY: type supports are valid while their library is loaded.
        let ty = unsafe { ServiceType::new(type_support) }.map_err(Failure::error)?;
        let options = ServerOptions::default()
            .with_depth(qos.queue())
            .with_max_held(MAX_HELD);
        let bus = node.context.node.dynamic_server_with(name, &ty.service, options);
        let bus = bus.map_err(Failure::error)?;
        let id = crate::identity::new();
        node.context.graph.add(
            node.key,
            Endpoint {
                kind: Kind::Service,
                name: name.to_owned(),
                type_name: type_name(&ty),
                type_hash: ty.hash.parts(),
                id,
                qos: (&qos).into(),
            },
        );
        let service = Service {
            context: node.context.clone(),
            node: node.key,
            id,
            bus,
            ty,
            qos,
            open: Mutex::default(),
            taken: AtomicU64::new(0),
            callback: Callback::default(),
        };
        Ok(Box::into_raw(Box::new(RmwService {
            implementation: IDENTIFIER.as_ptr(),
            data: Box::into_raw(Box::new(Handle(Arc::new(service)))).cast(),
            service_name: c_text(name),
        })))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_service(node: *mut RmwNode, service: *mut RmwService) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe {
            node::of(node)?;
            of(service)?;
        }
        // SAFETY: made by `rmw_create_service`, and the caller no longer uses it.
        let inner = unsafe {
            let handle = Box::from_raw(service);
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
pub(crate) unsafe extern "C" fn rmw_take_request(
    service: *const RmwService,
    info: *mut ServiceInfo,
    message: *mut c_void,
    taken: *mut bool,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let service = unsafe { of(service)? };
        // SAFETY: likewise.
        let (info, taken) = unsafe { (arg_mut(info, "service_info")?, arg_mut(taken, "taken")?) };
        if message.is_null() {
            return Err(Failure::argument("ros_request argument is null"));
        }
        *taken = false;
        let Some(request) = service.bus.take().map_err(Failure::error)? else {
            return Ok(());
        };
        service.taken.fetch_add(1, Ordering::Relaxed);
        let from = request.bus();
        // SAFETY: the caller's message has the service's request type and is initialised.
        unsafe { codec::read(&service.ty.request, from.control(), from.message(), message)? };
        let key = (from.client(), from.number());
        *info = ServiceInfo {
            source_timestamp: from.message().stamp().as_nanos() as i64,
            received_timestamp: clock::realtime().as_nanos() as i64,
            request_id: RequestId {
                writer_guid: gid_bytes(key.0),
                sequence_number: key.1 as i64,
            },
        };
        let mut open = lock(&service.open);
        if open.len() >= MAX_OPEN {
            open.pop_first();
        }
        open.insert(key, request);
        *taken = true;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_send_response(
    service: *const RmwService,
    id: *mut RequestId,
    message: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (service, id) = unsafe { (of(service)?, arg(id, "request_id")?) };
        if message.is_null() {
            return Err(Failure::argument("ros_response argument is null"));
        }
        let mut client = [0; 8];
        client.copy_from_slice(&id.writer_guid[..8]);
        let key = (u64::from_le_bytes(client), id.sequence_number as u64);
        let Some(request) = lock(&service.open).remove(&key) else {
            // The client may be gone; DDS does not report this either.
            tracing::debug!(number = key.1, "ignoring a response without an open request");
            return Ok(());
        };
        let loan = |control, parts: &[usize]| service.bus.loan(control, parts);
        // SAFETY: the caller's message has the service's response type.
        let loan = unsafe { codec::written(&service.ty.response, message, loan)? };
        // The client is gone or no longer waits: nothing is left to do.
        if let Err(error) = service.bus.respond(request, loan) {
            tracing::debug!(%error, "cannot deliver a response");
        }
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_service_request_subscription_get_actual_qos(
    service: *const RmwService,
    qos: *mut QosProfile,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (service, qos) = unsafe { (of(service)?, arg_mut(qos, "qos")?) };
        *qos = service.qos;
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_service_response_publisher_get_actual_qos(
    service: *const RmwService,
    qos: *mut QosProfile,
) -> Ret {
    // SAFETY: upheld by the caller.
    unsafe { rmw_service_request_subscription_get_actual_qos(service, qos) }
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_service_set_on_new_request_callback(
    service: *mut RmwService,
    callback: EventCallback,
    data: *const c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let inner = unsafe { of(service)? };
        let waiting = inner.clone();
        let look = move || {
            let ready = waiting.rearm().unwrap_or(false);
            ready.then(|| waiting.taken.load(Ordering::Relaxed))
        };
        inner.callback.set(callback, data, inner.clone(), look)
    })
}
