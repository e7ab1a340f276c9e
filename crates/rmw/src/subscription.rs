//! Subscriptions.

use crate::abi::introspection::MessageTypeSupport;
use crate::abi::{
    Allocator, ContentFilterOptions, EventCallback, MessageInfo, MessageInfoSequence, MessageSequence,
    QosProfile, Ret, RmwNode, RmwSubscription, RmwSubscriptionOptions, SerializedMessage,
};
use crate::callback::Callback;
use crate::codec;
use crate::error::{Failure, IDENTIFIER, Outcome, arg, arg_mut, guard, guard_ptr, ours, text};
use crate::filter::Filter;
use crate::graph::record::{Endpoint, Kind};
use crate::graph::{Listener, lock};
use crate::host::Heap;
use crate::loans::{self, MAX_IN_PLACE, Owned, Taken};
use crate::matching::Matching;
use crate::memo::Memo;
use crate::node::{self, c_text, drop_c_text};
use crate::publisher::{FLOWS_REQUIRED, of_endpoint, resolve, topic_name};
use crate::qos::{self, End};
use crate::serial;
use crate::typesupport::Type;
use bus::SubscriberOptions;
use std::ffi::{c_char, c_void};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// State of a subscription.
pub(crate) struct Subscription {
    bus: ropewalk::Subscriber,
    pub(crate) ty: Type,
    pub(crate) matching: Matching,
    pub(crate) loans: Taken,
    owned: Owned,
    /// Whether to ignore messages that this context publishes.
    ignores_own: bool,
    publishers: Mutex<Memo<Known>>,
    taken: AtomicU64,
    choice: Mutex<Choice>,
    pub(crate) callback: Callback,
}

#[derive(Default)]
struct Choice {
    /// Selects messages, if not all are wanted.
    filter: Option<Arc<Filter>>,
    /// The next message, if there is a filter: only a look at a message shows whether it can be taken.
    next: Option<ropewalk::Message>,
}

/// What is known about a publisher.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Number of the newest message taken from it.
    number: Option<u64>,
    judged: Option<Judged>,
}

/// How a subscription treats a publisher's messages, valid while the graph stays the same.
#[derive(Clone, Copy)]
struct Judged {
    /// Version of the graph.
    version: u64,
    fits: bool,
    /// Maximum age of its messages.
    lifespan: Option<Duration>,
}

/// Returns the subscription behind an argument.
///
/// # Safety
/// The pointer is null or points to a subscription.
pub(crate) unsafe fn of<'a>(subscription: *const RmwSubscription) -> Outcome<&'a Arc<Subscription>> {
    // SAFETY: upheld by the caller; identifiers live forever.
    let subscription = unsafe { arg(subscription, "subscription")? };
    // SAFETY: likewise.
    unsafe { ours(subscription.implementation, "subscription")? };
    // SAFETY: this library owns `data` while the subscription lives: a pointer into an `Arc`, which wait sets have too.
    let inner = unsafe { arg(subscription.data.cast::<Handle>(), "subscription")? };
    Ok(&inner.0)
}

/// The object that wait sets and handles point to.
pub(crate) struct Handle(pub(crate) Arc<Subscription>);

impl Listener for Subscription {
    fn graph_changed(&self) -> bool {
        self.matching.update(|| self.connected())
    }

    fn tick(&self, now: Instant) -> Option<Instant> {
        self.matching.events.tick(now)
    }

    fn asserted(&self, publisher: u64) {
        self.matching.events.asserted(Some(publisher));
    }
}

impl Subscription {
    /// Starts to follow the graph, for its events.
    pub(crate) fn watch(self: &Arc<Self>) {
        let weak = Arc::downgrade(self);
        self.matching.watch(weak);
    }

    /// The publishers that the bus has connected.
    fn connected(&self) -> impl Iterator<Item = u64> {
        let mut connected = Vec::new();
        self.bus.bus().each_publisher(|id| connected.push(id));
        connected.into_iter()
    }

    /// Whether something can be taken. If not, the descriptor becomes readable when a message arrives.
    pub(crate) fn rearm(&self) -> Outcome<bool> {
        let has = || self.bus.bus().rearm().map_err(Failure::error);
        let mut choice = lock(&self.choice);
        let Some(filter) = choice.filter.clone() else {
            return Ok(choice.next.is_some() || has()?);
        };
        while choice.next.is_none() && has()? {
            choice.next = self.find(Some(&filter))?;
        }
        Ok(choice.next.is_some())
    }

    /// Takes the next message for this subscription.
    pub(crate) fn take(&self) -> Outcome<Option<ropewalk::Message>> {
        let (next, filter) = {
            let mut choice = lock(&self.choice);
            (choice.next.take(), choice.filter.clone())
        };
        let found = match next {
            Some(next) => Some(next),
            None => self.find(filter.as_deref())?,
        };
        if found.is_some() {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        Ok(found)
    }

    /// Registers the code that takes a message, for prefetching.
    pub(crate) fn fetch_when_woken(subscriber: &bus::Subscriber) {
        /// Approximate lengths of the common paths, in bytes.
        const LENS: [usize; 2] = [1536, 704];
        subscriber.fetch_when_woken(Self::find as *const u8, LENS[0]);
        subscriber.fetch_when_woken(Self::take as *const u8, LENS[1]);
    }

    /// Prefetches what taking a message needs: the thread woke for one. If the message is still being filled, runs the
    /// code that will lend it, and returns true.
    pub(crate) fn woken(&self) -> bool {
        self.bus.bus().woken();
        let expecting = self.bus.bus().is_expecting();
        if expecting {
            self.loans.rehearse(&self.ty);
        }
        expecting
    }

    /// Reads a message that was taken into the node's message.
    ///
    /// # Safety
    /// `message` has this subscription's type, is initialised, and is not shared.
    unsafe fn read(&self, from: ropewalk::Message, message: *mut c_void) -> Outcome {
        if !self.ty.is_in_memory() {
            let name = self.ty.schema().ros2_name();
            return Err(Failure::error(format_args!(
                "{name} was learned at run time: take its messages with rcl_take_dynamic_message or rcl_take_serialized_message"
            )));
        }
        let heap = Heap::find().filter(|_| from.part_count() > 0);
        let heap = heap.filter(|_| self.loans.count() + self.owned.count() < MAX_IN_PLACE);
        // SAFETY: upheld by the caller.
        unsafe {
            match heap {
                Some(heap) => self.owned.read(&self.ty, heap, from, message),
                None => codec::read(&self.ty, from.control(), from.bus(), message),
            }
        }
    }

    /// Lends a message that was taken.
    pub(crate) fn lend(&self, from: ropewalk::Message) -> Outcome<*mut c_void> {
        self.loans.lend(&self.ty, from, self.owned.count())
    }

    /// Takes messages from the bus until one is wanted.
    fn find(&self, filter: Option<&Filter>) -> Outcome<Option<ropewalk::Message>> {
        loop {
            let taken = self.bus.take().map_err(Failure::error)?;
            let Some(message) = taken else {
                return Ok(None);
            };
            let lost = self.lost_before(message.bus());
            if lost > 0 {
                self.matching.events.lost(lost);
            }
            if !self.wants(message.bus()) || filter.is_some_and(|f| !passes(f, &message)) {
                continue;
            }
            self.matching.passed(Some(message.bus().publisher()));
            return Ok(Some(message));
        }
    }

    /// Sets the filter; `None` lets all messages through.
    fn set_filter(&self, filter: Option<Filter>) {
        let mut choice = lock(&self.choice);
        choice
            .next
            .take_if(|message| filter.as_ref().is_some_and(|f| !passes(f, message)));
        choice.filter = filter.map(Arc::new);
    }

    /// Number of messages of this publisher that are missing before this one: lost in this queue, or on a link on the
    /// way.
    fn lost_before(&self, message: &bus::Message) -> u64 {
        let number = message.sequence();
        let mut publishers = lock(&self.publishers);
        let before = publishers.of(message.publisher()).number.replace(number);
        before.map_or(0, |before| number.saturating_sub(before + 1))
    }

    /// Whether the message's publisher fits, and the message is not too old.
    fn wants(&self, message: &bus::Message) -> bool {
        let (id, version) = (message.publisher(), self.matching.graph().version());
        let judged = lock(&self.publishers).of(id).judged;
        let judged = judged.filter(|j| j.version == version).unwrap_or_else(|| {
            let judged = self.judge(message, version);
            lock(&self.publishers).of(id).judged = Some(judged);
            judged
        });
        let is_young = |most| clock::realtime().since(message.stamp()) <= most;
        judged.fits && judged.lifespan.is_none_or(is_young)
    }

    #[cold]
    #[inline(never)]
    fn judge(&self, message: &bus::Message, version: u64) -> Judged {
        let (graph, asked) = (self.matching.graph(), self.matching.qos());
        let id = message.publisher();
        match graph.endpoint(id) {
            Some(publisher) => {
                let offered = QosProfile::from(&publisher.qos);
                Judged {
                    version,
                    fits: offered.unfit(asked).is_none() && !(self.ignores_own && graph.is_own(id)),
                    lifespan: qos::limit(offered.lifespan),
                }
            }
            // The graph may not have the publisher yet, or no node of this host owns it: what it offers on the bus
            // counts.
            None => {
                let offer = message.offer();
                let unreliable = offer.reliability == Some(bus::Reliability::BestEffort);
                let unfit = unreliable && asked.reliability == qos::RELIABLE
                    || offer.history == 0 && asked.durability == qos::TRANSIENT_LOCAL;
                Judged {
                    version,
                    fits: !unfit,
                    lifespan: None,
                }
            }
        }
    }

    pub(crate) fn info(&self, message: &ropewalk::Message) -> MessageInfo {
        MessageInfo {
            source_timestamp: message.stamp().as_nanos() as i64,
            received_timestamp: clock::realtime().as_nanos() as i64,
            publication_sequence_number: message.sequence(),
            reception_sequence_number: self.taken.load(Ordering::Relaxed),
            publisher_gid: of_endpoint(message.bus().publisher()),
            from_intra_process: false,
        }
    }
}

/// Whether a filter lets a message through. It also lets an unreadable message through, so that taking it reports the
/// error.
#[inline(never)]
fn passes(filter: &Filter, message: &ropewalk::Message) -> bool {
    filter.passes(message).unwrap_or(true)
}

/// Returns the filter that the options request, if any.
///
/// # Safety
/// The options hold a string and an array of strings, or null.
unsafe fn asked(ty: &Type, options: &ContentFilterOptions) -> Outcome<Option<Filter>> {
    if options.expression.is_null() {
        return Err(Failure::argument("the content filter has no expression"));
    }
    // SAFETY: upheld by the caller.
    let expression = unsafe { text(options.expression, "filter_expression")? };
    // As in implementations of DDS, an empty expression ends filtering.
    if expression.is_empty() {
        return Ok(None);
    }
    let parameters = &options.parameters;
    let parameters = (0..parameters.size).map(|i| {
        // SAFETY: the array has `size` elements.
        let parameter = unsafe { parameters.data.add(i).read() };
        // SAFETY: upheld by the caller.
        unsafe { text(parameter, "expression_parameters") }.map(str::to_owned)
    });
    let parameters = parameters.collect::<Outcome<_>>()?;
    Filter::new(ty.schema(), expression, parameters)
        .map(Some)
        .map_err(Failure::argument)
}

impl AsFd for Subscription {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bus.as_fd()
    }
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_create_subscription(
    node: *const RmwNode,
    type_support: *const MessageTypeSupport,
    topic: *const c_char,
    profile: *const QosProfile,
    options: *const RmwSubscriptionOptions,
) -> *mut RmwSubscription {
    guard_ptr(|| {
        // SAFETY: upheld by the caller.
        let node = unsafe { node::of(node)? };
        // SAFETY: likewise.
        unsafe { arg(type_support, "type_supports")? };
        // SAFETY: likewise.
        let (profile, options) = unsafe {
            (
                arg(profile, "qos_policies")?,
                arg(options, "subscription_options")?,
            )
        };
        // SAFETY: likewise.
        let topic = unsafe { topic_name(topic, profile, "topic_name")? };
        if options.unique_flow == FLOWS_REQUIRED {
            return Err(Failure::unsupported(
                "the bus has no network flows that could be unique",
            ));
        }
        let profile = resolve(&node.context, topic, profile, End::Subscription)?;
        // SAFETY: type supports are valid while their library is loaded.
        let ty = unsafe { Type::of_subscription(type_support) }.map_err(Failure::error)?;
        // SAFETY: upheld by the caller.
        let filter = match unsafe { options.content_filter.as_ref() } {
            // SAFETY: likewise.
            Some(options) => unsafe { asked(&ty, options)? },
            None => None,
        };
        let queue = SubscriberOptions::default()
            .with_depth(profile.queue())
            .with_early_wake(loans::are_on())
            .with_history(match profile.durability {
                qos::TRANSIENT_LOCAL => profile.queue(),
                _ => 0,
            });
        let bus = node
            .context
            .node
            .dynamic_subscriber_with(topic, ty.schema(), queue);
        let bus = bus.map_err(Failure::error)?;
        loans::fetch_when_woken(bus.bus());
        let own = Endpoint {
            kind: Kind::Subscription,
            name: topic.to_owned(),
            type_name: ty.schema().ros2_name(),
            type_hash: ty.hash().parts(),
            id: bus.bus().id(),
            qos: (&profile).into(),
        };
        let subscription = Subscription {
            matching: Matching::new(node, End::Subscription, own, profile),
            bus,
            ty,
            loans: Taken::default(),
            owned: Owned::default(),
            ignores_own: options.ignore_local_publications,
            publishers: Mutex::default(),
            taken: AtomicU64::new(0),
            choice: Mutex::new(Choice {
                filter: filter.map(Arc::new),
                next: None,
            }),
            callback: Callback::default(),
        };
        let is_cft_enabled = lock(&subscription.choice).filter.is_some();
        let can_loan_messages = subscription.ty.plan().can_make();
        Ok(Box::into_raw(Box::new(RmwSubscription {
            implementation: IDENTIFIER.as_ptr(),
            data: Box::into_raw(Box::new(Handle(Arc::new(subscription)))).cast(),
            topic_name: c_text(topic),
            options: RmwSubscriptionOptions {
                // It belongs to the caller and may end before this subscription.
                content_filter: std::ptr::null_mut(),
                ..*options
            },
            can_loan_messages,
            is_cft_enabled,
        })))
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_destroy_subscription(
    node: *mut RmwNode,
    subscription: *mut RmwSubscription,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        unsafe {
            node::of(node)?;
            of(subscription)?;
        }
        // SAFETY: made by `rmw_create_subscription`, and the caller no longer uses it.
        let inner = unsafe {
            let handle = Box::from_raw(subscription);
            drop_c_text(handle.topic_name);
            Box::from_raw(handle.data.cast::<Handle>())
        };
        inner.0.callback.end();
        inner.0.matching.end();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_count_matched_publishers(
    subscription: *const RmwSubscription,
    count: *mut usize,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (subscription, count) = unsafe { (of(subscription)?, arg_mut(count, "publisher_count")?) };
        *count = 0;
        let matches = |id| subscription.matching.matches(id);
        let bus = subscription.bus.bus();
        bus.each_publisher(|id| *count += usize::from(matches(id)));
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_get_actual_qos(
    subscription: *const RmwSubscription,
    profile: *mut QosProfile,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (subscription, profile) = unsafe { (of(subscription)?, arg_mut(profile, "qos")?) };
        *profile = *subscription.matching.qos();
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_set_content_filter(
    subscription: *mut RmwSubscription,
    options: *const ContentFilterOptions,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (inner, options) = unsafe { (of(subscription)?, arg(options, "options")?) };
        // SAFETY: likewise.
        let filter = unsafe { asked(&inner.ty, options)? };
        let enabled = filter.is_some();
        inner.set_filter(filter);
        // SAFETY: `of` checked the pointer, and the caller does not share it meanwhile.
        unsafe { (*subscription).is_cft_enabled = enabled };
        Ok(())
    })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_get_content_filter(
    subscription: *const RmwSubscription,
    allocator: *mut Allocator,
    options: *mut ContentFilterOptions,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let (inner, allocator, options) = unsafe {
            (
                of(subscription)?,
                arg(allocator, "allocator")?,
                arg_mut(options, "options")?,
            )
        };
        let filter = lock(&inner.choice).filter.clone();
        let filter = filter.ok_or_else(|| Failure::error("this subscription has no content filter"))?;
        let expression = allocator.text(&filter.expression)?;
        if let Err(failure) = options.parameters.fill(allocator, &filter.parameters) {
            // SAFETY: made above.
            unsafe { allocator.free(expression) };
            return Err(failure);
        }
        options.expression = expression;
        Ok(())
    })
}

/// Returns the next message and its info, if any. `taken` is false until the caller has read the message.
///
/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
pub(crate) unsafe fn take_any(
    subscription: *const RmwSubscription,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome<Option<ropewalk::Message>> {
    // SAFETY: upheld by the caller.
    let (subscription, taken) = unsafe { (of(subscription)?, arg_mut(taken, "taken")?) };
    let info = match info {
        // SAFETY: likewise.
        Some(info) => Some(unsafe { arg_mut(info, "message_info")? }),
        None => None,
    };
    *taken = false;
    let from = subscription.take()?;
    if let (Some(info), Some(from)) = (info, &from) {
        *info = subscription.info(from);
    }
    Ok(from)
}

/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
unsafe fn take(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome {
    if message.is_null() {
        return Err(Failure::argument("ros_message argument is null"));
    }
    // SAFETY: upheld by the caller, for everything below: the message has the subscription's type and is initialised.
    unsafe {
        let Some(from) = take_any(subscription, taken, info)? else {
            return Ok(());
        };
        of(subscription)?.read(from, message)?;
        taken.write(true);
    }
    Ok(())
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take(subscription, message, taken, None) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_with_info(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    info: *mut MessageInfo,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take(subscription, message, taken, Some(info)) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_sequence(
    subscription: *const RmwSubscription,
    count: usize,
    messages: *mut MessageSequence,
    infos: *mut MessageInfoSequence,
    taken: *mut usize,
    _: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let inner = unsafe { of(subscription)? };
        // SAFETY: likewise.
        let (messages, infos, taken) = unsafe {
            (
                arg_mut(messages, "message_sequence")?,
                arg_mut(infos, "message_info_sequence")?,
                arg_mut(taken, "taken")?,
            )
        };
        if count == 0 {
            return Err(Failure::argument("count cannot be 0"));
        }
        if count > messages.capacity || count > infos.capacity {
            return Err(Failure::argument(
                "the sequences have too little capacity for this many messages",
            ));
        }
        let mut n = 0;
        while n < count {
            let Some(from) = inner.take()? else { break };
            // SAFETY: both sequences have `capacity` elements, and the messages are initialised.
            unsafe {
                infos.data.add(n).write(inner.info(&from));
                inner.read(from, messages.data.add(n).read())?;
            }
            n += 1;
        }
        (messages.size, infos.size, *taken) = (n, n, n);
        Ok(())
    })
}

/// # Safety
/// The arguments are null or as rmw/rmw.h documents them.
unsafe fn take_serialized(
    subscription: *const RmwSubscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome {
    // SAFETY: upheld by the caller, for everything below.
    unsafe {
        let message = arg_mut(message, "serialized_message")?;
        let Some(from) = take_any(subscription, taken, info)? else {
            return Ok(());
        };
        serial::store(message, &from.cdr().map_err(Failure::error)?)?;
        taken.write(true);
    }
    Ok(())
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_serialized_message(
    subscription: *const RmwSubscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take_serialized(subscription, message, taken, None) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_serialized_message_with_info(
    subscription: *const RmwSubscription,
    message: *mut SerializedMessage,
    taken: *mut bool,
    info: *mut MessageInfo,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take_serialized(subscription, message, taken, Some(info)) })
}

/// # Safety
/// As documented in rmw/rmw.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_subscription_set_on_new_message_callback(
    subscription: *mut RmwSubscription,
    callback: EventCallback,
    data: *const c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let inner = unsafe { of(subscription)? };
        let waiting = inner.clone();
        let look = move || {
            let ready = waiting.rearm().unwrap_or(false);
            ready.then(|| waiting.taken.load(Ordering::Relaxed))
        };
        let fd = inner.clone();
        inner.callback.set(callback, data, fd, look)
    })
}
