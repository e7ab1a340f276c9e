//! Settings, as C fills them in: start from the `..._default` function, so that later versions may add
//! fields.

use crate::pointer::{self, invalid};
use crate::status::Failure;
use crate::wait::WaitSet;
use ropewalk::BusConfig;
use std::ffi::c_char;
use std::ptr::null;

/// The ROS version of a definition.
#[repr(C)]
pub enum Flavour {
    /// `time` and `duration` are built in, `Header` has `seq`.
    Ros1 = 0,
    /// Bounded arrays and strings, defaults.
    Ros2 = 1,
}

/// What a publisher does when a loan finds no memory: TZC's publication policies.
#[repr(C)]
pub enum MemoryPolicy {
    /// Queued messages of the largest consumer are dropped, oldest first.
    BestEffort = 0,
    /// The loan is refused; no message is dropped.
    WorstEffort = 1,
    /// At most `medium_drops` messages are dropped for one loan.
    Medium = 2,
    /// The loan waits at most `block_timeout_ns`.
    Block = 3,
}

/// Which message a full queue loses.
#[repr(C)]
pub enum QueuePolicy {
    /// Its oldest messages.
    DropOldest = 0,
    /// The new message.
    DropNewest = 1,
}

/// Location of the bus.
#[repr(C)]
pub struct NodeOptions {
    /// The runtime folder; NULL for the one that the environment names.
    pub runtime_dir: *const c_char,
    /// The domain, if `runtime_dir` is not NULL.
    pub domain: u32,
}

/// Limits of a publisher.
#[repr(C)]
pub struct PublisherOptions {
    /// Maximum bytes of shared memory, reserved only as needed. 256 MiB by default.
    pub memory_limit: u64,
    /// Maximum bytes that one subscriber may keep from reuse; 0 (the default) means half of `memory_limit`,
    /// or all of it if the policy never drops messages.
    pub subscriber_quota: u64,
    /// Maximum number of subscribers at a time. 256 by default.
    pub max_subscribers: u32,
    /// A `ropewalk_memory_policy`.
    pub memory_policy: u32,
    /// How many messages one loan may drop under `ROPEWALK_MEMORY_POLICY_MEDIUM`.
    pub medium_drops: u32,
    /// How many of the last messages are kept for late joiners; 1 is latching. 0 by default.
    pub history: u32,
    /// How long a loan may wait under `ROPEWALK_MEMORY_POLICY_BLOCK`, at most an hour.
    pub block_timeout_ns: i64,
}

/// How a subscriber queues and waits.
#[repr(C)]
pub struct SubscriberOptions {
    /// Number of messages that each publisher may queue, 1 to 4096. 16 by default.
    pub depth: u32,
    /// A `ropewalk_queue_policy`.
    pub queue_policy: u32,
    /// How many kept messages are wanted on joining. All by default.
    pub history: u32,
    /// Number of messages of each publisher that may be held at a time, 1 to 4096. 16 by default.
    pub max_held: u32,
    /// Bytes of each publisher's memory that may be queued and held. By default what the publisher allows.
    pub max_held_bytes: u64,
    /// How long waits spin before they sleep. 0 by default, at most an hour.
    pub spin_ns: u64,
    /// Wake through this set instead of the subscriber's own doorbell; NULL by default.
    pub wait_set: *const WaitSet,
}

/// Returns the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_publisher_options_default() -> PublisherOptions {
    let d = bus::PublisherOptions::default();
    PublisherOptions {
        memory_limit: d.memory_limit,
        subscriber_quota: 0,
        max_subscribers: d.max_subscribers as u32,
        memory_policy: MemoryPolicy::BestEffort as u32,
        medium_drops: 1,
        history: d.history,
        block_timeout_ns: 0,
    }
}

/// Returns the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn ropewalk_subscriber_options_default() -> SubscriberOptions {
    let d = bus::SubscriberOptions::default();
    SubscriberOptions {
        depth: d.depth,
        queue_policy: QueuePolicy::DropOldest as u32,
        history: d.history,
        max_held: d.max_held,
        max_held_bytes: d.max_held_bytes,
        spin_ns: 0,
        wait_set: null(),
    }
}

pub(crate) fn flavour(flavour: u32) -> Result<ropewalk::Flavour, Failure> {
    match flavour {
        0 => Ok(ropewalk::Flavour::Ros1),
        1 => Ok(ropewalk::Flavour::Ros2),
        n => Err(invalid(&format!("{n} is not a ropewalk_flavour"))),
    }
}

/// # Safety
/// As for the crate: `options` is NULL or readable.
pub(crate) unsafe fn bus_config(options: *const NodeOptions) -> Result<Option<BusConfig>, Failure> {
    // SAFETY: by this function's contract.
    let Some(options) = (unsafe { options.as_ref() }) else {
        return Ok(None);
    };
    if options.runtime_dir.is_null() {
        return Ok(None);
    }
    // SAFETY: by this function's contract.
    let dir = unsafe { pointer::text(options.runtime_dir, "runtime_dir") }?;
    Ok(Some(BusConfig::new(dir).with_domain(options.domain)))
}

/// # Safety
/// As for the crate: `options` is NULL or readable.
pub(crate) unsafe fn publisher(options: *const PublisherOptions) -> Result<bus::PublisherOptions, Failure> {
    let default = bus::PublisherOptions::default();
    // SAFETY: by this function's contract.
    let Some(o) = (unsafe { options.as_ref() }) else {
        return Ok(default);
    };
    let policy = match o.memory_policy {
        0 => bus::MemoryPolicy::BestEffort,
        1 => bus::MemoryPolicy::WorstEffort,
        2 => bus::MemoryPolicy::Medium(o.medium_drops),
        3 => bus::MemoryPolicy::Block(pointer::timeout(o.block_timeout_ns)),
        n => {
            return Err(invalid(&format!(
                "memory_policy: {n} is not a ropewalk_memory_policy"
            )));
        }
    };
    let mut made = default
        .with_memory_limit(o.memory_limit)
        .with_memory_policy(policy)
        .with_history(o.history);
    made.max_subscribers = o.max_subscribers as usize;
    made.subscriber_quota = (o.subscriber_quota > 0).then_some(o.subscriber_quota);
    Ok(made)
}

/// # Safety
/// As for the crate: `options` is NULL or readable, with a `wait_set` that is NULL or a handle.
pub(crate) unsafe fn subscriber(
    options: *const SubscriberOptions,
) -> Result<bus::SubscriberOptions, Failure> {
    let default = bus::SubscriberOptions::default();
    // SAFETY: by this function's contract.
    let Some(o) = (unsafe { options.as_ref() }) else {
        return Ok(default);
    };
    let policy = match o.queue_policy {
        0 => bus::QueuePolicy::DropOldest,
        1 => bus::QueuePolicy::DropNewest,
        n => {
            return Err(invalid(&format!(
                "queue_policy: {n} is not a ropewalk_queue_policy"
            )));
        }
    };
    let mut made = default
        .with_depth(o.depth)
        .with_queue_policy(policy)
        .with_history(o.history)
        .with_max_held(o.max_held)
        .with_max_held_bytes(o.max_held_bytes)
        .with_spin(std::time::Duration::from_nanos(o.spin_ns));
    // SAFETY: by this function's contract.
    made.wait_set = unsafe { o.wait_set.as_ref() }.map(|set| set.0.clone());
    Ok(made)
}
