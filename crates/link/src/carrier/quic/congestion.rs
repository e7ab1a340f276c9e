//! Disables QUIC's own congestion control: the radio's scheduler decides what to send when.

use crate::carrier::path_mtu::PathMtu;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory};
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A window that never limits. noq does not pace above 4 GiB either.
const WINDOW: u64 = 1 << 40;

/// Counts from the acknowledgements of one connection, in bytes.
#[derive(Debug)]
pub(super) struct Counters {
    mtu: Mutex<PathMtu>,
    pub(super) sent: AtomicU64,
    pub(super) acked: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) in_flight: AtomicU64,
}

impl Counters {
    /// Creates the counters of a path that is assumed to fit `size` bytes of UDP payload.
    pub(super) fn new(size: u16) -> Self {
        Counters {
            mtu: Mutex::new(PathMtu::new(size)),
            sent: AtomicU64::default(),
            acked: AtomicU64::default(),
            lost: AtomicU64::default(),
            in_flight: AtomicU64::default(),
        }
    }

    pub(super) fn mtu(&self) -> MutexGuard<'_, PathMtu> {
        self.mtu.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes controllers that share their counters, no matter which path the connection takes.
#[derive(Debug)]
pub(super) struct Unbound(pub(super) Arc<Counters>);

impl ControllerFactory for Unbound {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Counting(self.0.clone()))
    }
}

/// Limits nothing and counts.
#[derive(Debug)]
struct Counting(Arc<Counters>);

impl Controller for Counting {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.0.mtu().sent(now, bytes, number);
        self.0.sent.fetch_add(bytes.into(), Ordering::Relaxed);
        self.0.in_flight.fetch_add(bytes.into(), Ordering::Relaxed);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, number: u64, _: bool, _: &RttEstimator) {
        let len = u16::try_from(bytes).unwrap_or(u16::MAX);
        self.0.mtu().acked(now, sent, len, number);
        self.0.acked.fetch_add(bytes, Ordering::Relaxed);
    }

    fn on_end_acks(&mut self, _: Instant, in_flight: u64, _: bool, _: Option<u64>) {
        self.0.in_flight.store(in_flight, Ordering::Relaxed);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, lost: u64, _: u64) {
        self.0.lost.fetch_add(lost, Ordering::Relaxed);
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Counting(self.0.clone()))
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
