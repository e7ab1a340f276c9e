//! Subscriptions.

mod api;

pub(crate) use api::take_any;

use crate::abi::{MessageInfo, QosProfile, RmwSubscription};
use crate::callback::Callback;
use crate::codec;
use crate::error::{Failure, Outcome, arg, ours};
use crate::filter::Filter;
use crate::graph::{Listener, lock};
use crate::host::Heap;
use crate::loans::{MAX_IN_PLACE, Owned, Taken};
use crate::matching::Matching;
use crate::memo::Memo;
use crate::publisher::of_endpoint;
use crate::qos;
use crate::typesupport::Type;
use std::ffi::c_void;
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

/// State kept about a publisher.
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

impl AsFd for Subscription {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bus.as_fd()
    }
}
