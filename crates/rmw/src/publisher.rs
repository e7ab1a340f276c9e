//! Publishers.

use crate::abi::introspection::MessageTypeSupport;
use crate::abi::{
    Gid, QosProfile, Ret, RmwNode, RmwPublisher, RmwPublisherOptions, RmwTime, SerializedMessage,
};
use crate::codec;
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, guard_ptr, ours, text};
use crate::graph::Listener;
use crate::graph::record::{Endpoint, Kind};
use crate::loans::Lent;
use crate::matching::Matching;
use crate::node::{self, c_text, drop_c_text};
use crate::qos::{self, End};
use crate::typesupport::Type;
use crate::{abi, names};
use bus::{PublisherOptions, Reliability};
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Instant;

/// `RMW_UNIQUE_NETWORK_FLOW_ENDPOINTS_STRICTLY_REQUIRED`.
pub(crate) const FLOWS_REQUIRED: u32 = 1;

/// Maximum shared memory of a publisher. ROS 2 has no such limit and no setting for it: a publisher takes what its
/// messages and the queues of its subscriptions need, as far as the system has it.
const MEMORY: u64 = 4 << 30;
/// Maximum memory of the publisher that one subscription keeps, queued and held.
const QUOTA: u64 = 512 << 20;

/// State of a publisher.
pub(crate) struct Publisher {
    bus: ropewalk::Publisher,
    pub(crate) ty: Type,
    pub(crate) matching: Matching,
    pub(crate) lent: Lent,
}

/// Returns the publisher behind an argument.
///
/// # Safety
/// The pointer is null or points to a publisher.
pub(crate) unsafe fn of<'a>(publisher: *const RmwPublisher) -> Outcome<&'a Arc<Publisher>> {
    // SAFETY: upheld by the caller; identifiers live forever.
    let publisher = unsafe { arg(publisher, "publisher")? };
    // SAFETY: likewise.
    unsafe { ours(publisher.implementation, "publisher")? };
    // SAFETY: this library owns `data` while the publisher lives.
    unsafe { arg(publisher.data.cast::<Arc<Publisher>>(), "publisher") }
}

impl Listener for Publisher {
    fn graph_changed(&self) -> bool {
        self.matching.update(|| self.connected())
    }

    fn tick(&self, now: Instant) -> Option<Instant> {
        self.matching.events.tick(now)
    }
}

impl Publisher {
    /// Starts to follow the graph, for its events.
    pub(crate) fn watch(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        self.matching.watch(weak);
    }

    /// The subscribers that the bus has connected.
    fn connected(&self) -> impl Iterator<Item = u64> {
        let mut connected = Vec::new();
        self.bus().each_subscriber(|id| connected.push(id));
        connected.into_iter()
    }

    /// Publishes a message in memory.
    ///
    /// # Safety
    /// `message` has this publisher's type.
    pub(crate) unsafe fn publish_message(&self, message: *const c_void) -> Outcome {
        let loan = |control, parts: &[usize]| self.bus.bus().loan(control, parts);
        // SAFETY: upheld by the caller.
        self.publish_block(unsafe { codec::written(&self.ty, message, loan)? })
    }

    /// Publishes a message that is already written.
    pub(crate) fn publish_block(&self, block: bus::Loan) -> Outcome {
        self.bus.publish(block).map_err(Failure::error)?;
        self.matching.passed(None);
        Ok(())
    }

    /// The bus's publisher.
    pub(crate) fn bus(&self) -> &bus::Publisher {
        self.bus.bus()
    }
}

/// Computes the effective profile of a new publisher or subscription.
pub(crate) fn resolve(
    context: &crate::context::Context,
    topic: &str,
    profile: &QosProfile,
    end: End,
) -> Outcome<QosProfile> {
    if let Some(problem) = profile.problem() {
        return Err(Failure::argument(problem));
    }
    let others = context.graph.endpoints(topic, end.other_kind());
    let others: Vec<_> = others.iter().map(|(_, e)| (&e.qos).into()).collect();
    Ok(profile.resolved(end, &others))
}

/// Returns a topic name after validation.
///
/// # Safety
/// `name` is null or ends with a NUL byte.
pub(crate) unsafe fn topic_name<'a>(
    name: *const c_char,
    profile: &QosProfile,
    what: &str,
) -> Outcome<&'a str> {
    // SAFETY: upheld by the caller.
    let name = unsafe { text(name, what)? };
    if name.is_empty() {
        return Err(Failure::argument(format_args!(
            "{what} argument is an empty string"
        )));
    }
    match names::topic(name).filter(|_| !profile.avoid_ros_namespace_conventions) {
        Some(problem) => Err(Failure::argument(format_args!(
            "invalid {what} {name:?}: {problem}"
        ))),
        None => Ok(name),
    }
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_publisher(
    node: *const RmwNode,
    type_support: *const MessageTypeSupport,
    topic: *const c_char,
    profile: *const QosProfile,
    options: *const RmwPublisherOptions,
) -> *mut RmwPublisher {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        let node = unsafe { node::of(node)? };
        // SAFETY: likewise.
        unsafe { arg(type_support, "type_supports")? };
        // SAFETY: likewise.
        let (profile, options) =
            unsafe { (arg(profile, "qos_profile")?, arg(options, "publisher_options")?) };
        // SAFETY: likewise.
        let topic = unsafe { topic_name(topic, profile, "topic_name")? };
        if options.unique_flow == FLOWS_REQUIRED {
            return Err(Failure::unsupported(
                "the bus has no network flows that could be unique",
            ));
        }
        let profile = resolve(&node.context, topic, profile, End::Publisher)?;
        // SAFETY: type supports are valid while their library is loaded.
        let ty = unsafe { Type::new(type_support) }.map_err(Failure::error)?;
        let mut bus = PublisherOptions::default()
            .with_node(node.full_name())
            .with_memory_limit(MEMORY)
            .with_subscriber_quota(QUOTA)
            .with_depth(profile.queue())
            .with_reliability(match profile.reliability {
                qos::BEST_EFFORT => Reliability::BestEffort,
                _ => Reliability::Reliable,
            });
        if profile.durability == qos::TRANSIENT_LOCAL {
            bus = bus.with_history(profile.queue());
        }
        let bus = node.context.node.dynamic_publisher_with(topic, ty.schema(), bus);
        let bus = bus.map_err(Failure::error)?;
        let own = Endpoint {
            kind: Kind::Publisher,
            name: topic.to_owned(),
            type_name: ty.schema().ros2_name(),
            type_hash: ty.hash().parts(),
            id: bus.bus().id(),
            qos: (&profile).into(),
        };
        let publisher = Publisher {
            matching: Matching::new(node, End::Publisher, own, profile),
            bus,
            ty,
            lent: Lent::default(),
        };
        let can_loan_messages = publisher.ty.plan().can_make();
        Ok(Box::into_raw(Box::new(RmwPublisher {
            implementation: IDENTIFIER.as_ptr(),
            data: Box::into_raw(Box::new(Arc::new(publisher))).cast(),
            topic_name: c_text(topic),
            options: *options,
            can_loan_messages,
        })))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_publisher(
    node: *mut RmwNode,
    publisher: *mut RmwPublisher,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe {
            node::of(node)?;
            of(publisher)?;
        }
        // SAFETY: made by `rmw_create_publisher`, and the caller no longer uses it.
        let (handle, inner) = unsafe {
            let handle = Box::from_raw(publisher);
            let inner = Box::from_raw(handle.data.cast::<Arc<Publisher>>());
            drop_c_text(handle.topic_name);
            (handle, inner)
        };
        drop(handle);
        inner.matching.end();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publish(
    publisher: *const RmwPublisher,
    message: *const c_void,
    _: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let publisher = unsafe { of(publisher)? };
        if message.is_null() {
            return Err(Failure::argument("ros_message argument is null"));
        }
        // SAFETY: the caller's message has the publisher's type.
        unsafe { publisher.publish_message(message) }
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publish_serialized_message(
    publisher: *const RmwPublisher,
    message: *const SerializedMessage,
    _: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (publisher, message) = unsafe { (of(publisher)?, arg(message, "serialized_message")?) };
        if message.buffer.is_null() {
            return Err(Failure::argument("serialized_message has no buffer"));
        }
        // SAFETY: the buffer has that many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(message.buffer, message.length) };
        publisher.bus.publish_cdr(bytes).map_err(Failure::error)?;
        publisher.matching.passed(None);
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publisher_count_matched_subscriptions(
    publisher: *const RmwPublisher,
    count: *mut usize,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (publisher, count) = unsafe { (of(publisher)?, arg_mut(count, "subscription_count")?) };
        *count = 0;
        let matches = |id| publisher.matching.matches(id);
        publisher
            .bus()
            .each_subscriber(|id| *count += usize::from(matches(id)));
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publisher_get_actual_qos(
    publisher: *const RmwPublisher,
    profile: *mut QosProfile,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (publisher, profile) = unsafe { (of(publisher)?, arg_mut(profile, "qos")?) };
        *profile = *publisher.matching.qos();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publisher_assert_liveliness(publisher: *const RmwPublisher) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe { of(publisher)? }.matching.assert();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_publisher_wait_for_all_acked(
    publisher: *const RmwPublisher,
    _: RmwTime,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller. A published message is already in every subscription's queue.
        unsafe { of(publisher)? };
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_get_gid_for_publisher(
    publisher: *const RmwPublisher,
    gid: *mut Gid,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (publisher, gid) = unsafe { (of(publisher)?, arg_mut(gid, "gid")?) };
        *gid = of_endpoint(publisher.bus.bus().id());
        Ok(())
    })
}

/// The identity of an endpoint of the bus, in rmw's format.
pub(crate) fn gid_bytes(id: u64) -> [u8; abi::GID_SIZE] {
    let mut data = *b"\0\0\0\0\0\0\0\0ropewalk";
    data[..8].copy_from_slice(&id.to_le_bytes());
    data
}

pub(crate) fn of_endpoint(id: u64) -> Gid {
    Gid {
        implementation: IDENTIFIER.as_ptr(),
        data: gid_bytes(id),
    }
}
