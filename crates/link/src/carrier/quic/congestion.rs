//! No congestion control of QUIC's own: the radio's scheduler decides what leaves when.

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A window that never binds. Above 4 GiB noq does not pace either.
const WINDOW: u64 = 1 << 40;

/// What the acknowledgements of one connection told, in bytes.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sent: AtomicU64,
    pub(super) acked: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) in_flight: AtomicU64,
}

/// Makes controllers that count into the same place, whatever path the connection takes.
#[derive(Debug)]
pub(super) struct Unbound(pub(super) Arc<Counters>);

impl ControllerFactory for Unbound {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Counting(self.0.clone()))
    }
}

/// Lets everything pass and counts.
#[derive(Debug)]
struct Counting(Arc<Counters>);

impl Controller for Counting {
    fn on_packet_sent(&mut self, _: Instant, bytes: u16, _: u64) {
        self.0.sent.fetch_add(bytes.into(), Ordering::Relaxed);
        self.0.in_flight.fetch_add(bytes.into(), Ordering::Relaxed);
    }

    fn on_ack(&mut self, _: Instant, _: Instant, bytes: u64, _: u64, _: bool, _: &RttEstimator) {
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
