//! One large message that is sent as a fountain: which symbol is sent next, and when enough are on their way.
//!
//! Symbols never wait for a round trip. They stop when those that the receiver has reported, plus those in flight as
//! far as loss lets them arrive, are enough barring bad luck. Then single symbols follow at widening intervals until
//! the receiver reports that it has the message, or how many are still missing.

use super::timing::Timing;
use super::topic::{Pending, When};
use crate::body::Body;
use crate::fountain::{Encoder, MAX_ID, SPARE, Shape};
use crate::wire::{DataHead, Frame, SymbolHead};
use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// Messages of up to this many symbols are sent like those of any reliable topic.
const FEW: u64 = 8;
/// Most that the header of a datagram and its request for a receipt take.
const HEAD: usize = 16 + 1;
/// Interval at which the receiver is asked how much it has.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Until the receiver shows that it knows how the message is cut, the description is repeated after at most this many
/// symbols.
const TELL_EVERY: u32 = 64;
/// Number of standard deviations by which arrivals may fall short of the expectation.
const LUCK: f64 = 3.0;
/// Weight of a loss reported earlier, in symbols at most, next to those whose fate is known.
const MEMORY: f64 = 200.0;
/// Most datagrams in flight that are remembered.
const MOST: usize = 1 << 16;

/// How a message of `bytes` is sent to a peer that takes datagrams of `max_datagram` bytes.
pub(crate) enum Cut {
    /// In symbols.
    Symbols(Shape),
    /// Like any other message.
    Fragments,
    /// It has too many symbols.
    TooLarge,
}

impl Cut {
    pub(crate) fn new(bytes: u32, max_datagram: usize) -> Cut {
        let room = max_datagram.saturating_sub(HEAD + SymbolHead::ROOM);
        let symbol = u16::try_from(room).unwrap_or(u16::MAX);
        if u64::from(bytes) <= FEW * u64::from(symbol) {
            return Cut::Fragments;
        }
        Shape::new(bytes, symbol).map_or(Cut::TooLarge, Cut::Symbols)
    }
}

/// Largest length of a datagram with a symbol, without what rides in it.
pub(crate) fn room(shape: &Shape) -> usize {
    HEAD + SymbolHead::ROOM + usize::from(shape.symbol())
}

/// Whether symbols beyond the message itself can be made.
enum Encoding {
    /// The data from which they are made is not being computed yet.
    Wanted,
    /// This job computes it.
    Job(u64),
    Ready(Encoder),
}

/// Which symbols of a message are still to be sent, and which its receiver has.
pub(crate) struct Bulk {
    shape: Shape,
    /// Number of the next symbol.
    next: u32,
    encoding: Encoding,
    /// Whether the receiver knows how the message is cut; if not, the description is sent when `next` reaches
    /// `describe_at`.
    described: bool,
    describe_at: u32,
    /// The datagram that last carried the description.
    described_in: Option<u64>,
    /// Datagrams with a symbol, after the newest that the receiver has reported.
    in_flight: VecDeque<u64>,
    /// The newest datagram that the receiver has reported.
    newest: Option<u64>,
    /// Number of symbols that it needs, as of then.
    needed: u32,
    /// Symbols covered by its reports, and how many of them arrived.
    known: (u32, u32),
    /// Number of symbols to send although enough are on their way.
    extra: u32,
    asked_at: Option<Time>,
    /// Whether something is due.
    due: bool,
}

impl Bulk {
    pub(crate) fn new(shape: Shape) -> Self {
        Bulk {
            shape,
            next: 0,
            encoding: Encoding::Wanted,
            described: false,
            describe_at: 0,
            described_in: None,
            in_flight: VecDeque::new(),
            newest: None,
            needed: shape.source() + SPARE,
            known: (0, 0),
            extra: 0,
            asked_at: None,
            due: true,
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// Whether the next frame describes how the message is cut.
    pub(crate) fn describes(&self) -> bool {
        !self.described && self.next >= self.describe_at
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Bytes that the receiver still needs, as far as is known.
    pub(crate) fn bytes_needed(&self) -> u64 {
        let arriving = u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX);
        u64::from(self.needed.saturating_sub(arriving)) * u64::from(self.shape.symbol())
    }

    /// Symbols sent, and the share of the message that its receiver has reported.
    pub(crate) fn progress(&self) -> (u64, f64) {
        let all = f64::from(self.shape.source() + SPARE);
        (self.next.into(), 1.0 - f64::from(self.needed) / all)
    }

    /// Appends the description of the message, or its next symbol, to a datagram that may grow to `max` bytes; appends
    /// nothing if other frames took the room. Returns the bytes of a symbol that is not part of the message itself.
    pub(crate) fn put<B: Body>(
        &mut self,
        pending: &Pending<B>,
        (topic, seq): (u32, u64),
        max: usize,
        out: &mut Vec<u8>,
        when: When,
    ) -> u64 {
        if self.describes() {
            let mark = out.len();
            self.object(pending, (topic, seq)).encode(out);
            if out.len() > max {
                out.truncate(mark);
            } else {
                self.described_in = Some(when.number);
                self.describe_at = self.next + self.next.clamp(4, TELL_EVERY);
            }
            return 0;
        }
        let length = usize::from(self.shape.symbol());
        if out.len() + SymbolHead::ROOM + length > max {
            return 0;
        }
        let (id, mut made) = (self.next, 0);
        let bytes = match (self.shape.bytes(id), &self.encoding) {
            (Some((from, to)), _) => {
                let mut bytes = vec![0; length];
                pending
                    .message
                    .body
                    .copy_at(from, &mut bytes[..(to - from) as usize]);
                bytes
            }
            (None, Encoding::Ready(encoder)) => {
                made = length as u64;
                encoder.symbol(id)
            }
            (None, _) => {
                self.due = false;
                return 0;
            }
        };
        self.next += 1;
        self.extra = self.extra.saturating_sub(1);
        self.in_flight.push_back(when.number);
        if self.in_flight.len() > MOST {
            self.in_flight.pop_front();
        }
        self.decide(when.timing);
        let poll = !self.due || self.asked_at.is_none_or(|t| when.now >= t + ASK_EVERY);
        if poll {
            self.asked_at = Some(when.now);
        }
        let head = SymbolHead { topic, seq, id, poll };
        Frame::Symbol(head, &bytes).encode(out);
        made
    }

    fn object<B: Body>(&self, pending: &Pending<B>, (topic, seq): (u32, u64)) -> Frame<'static> {
        let head = DataHead {
            topic,
            seq,
            stamp: pending.message.stamp,
            origin: pending.message.origin,
            offset: 0,
            geometry: pending.geometry,
            poll: false,
        };
        Frame::Object(head, self.shape.symbol())
    }

    /// Decides whether more has to be sent.
    pub(crate) fn decide(&mut self, timing: Timing) {
        let there_is = self.next < self.shape.source() || matches!(self.encoding, Encoding::Ready(_));
        let can = there_is && self.next < MAX_ID || self.describes();
        self.due = can && (self.extra > 0 || !self.suffices(timing));
    }

    /// Whether the symbols in flight are all that the receiver needs, barring bad luck.
    fn suffices(&self, timing: Timing) -> bool {
        let n = self.in_flight.len() as f64;
        let (known, came) = (f64::from(self.known.0), f64::from(self.known.1));
        let weight = timing.samples.clamp(1.0, MEMORY);
        let loss = (timing.loss * weight + known - came) / (weight + known);
        let loss = loss.clamp(0.0, 0.95);
        let spread = loss * (1.0 - loss);
        // Losses come in bursts, and the share itself is uncertain.
        let variance = n * spread * (2.0 * timing.burst - 1.0) + n * n * spread / (weight + known);
        self.needed == 0 || n * (1.0 - loss) - LUCK * variance.sqrt() >= f64::from(self.needed)
    }

    /// After a long silence: sends one symbol that asks.
    pub(crate) fn trickle(&mut self, timing: Timing) {
        self.extra = 1;
        self.decide(timing);
    }

    /// The receiver reports, as of datagram `newest`, how many symbols it needs; `None` if it does not know the
    /// message.
    pub(crate) fn reported(&mut self, newest: u64, needed: Option<u32>, timing: Timing) {
        if self.newest.is_some_and(|n| n > newest) {
            return;
        }
        self.newest = Some(newest);
        let known = self.in_flight.partition_point(|n| *n <= newest);
        self.in_flight.drain(..known);
        let all = self.shape.source() + SPARE;
        match needed {
            Some(needed) => {
                let needed = needed.min(all);
                if self.described {
                    self.known.0 = self.known.0.saturating_add(known as u32);
                    self.known.1 = (self.known.1 + self.needed.saturating_sub(needed)).min(self.known.0);
                }
                (self.needed, self.described) = (needed, true);
            }
            None => {
                self.needed = all;
                // The description did not arrive, or the receiver gave the message up for lack of room.
                if self.described || self.described_in.is_some_and(|n| n <= newest) {
                    (self.described, self.describe_at, self.described_in) = (false, self.next, None);
                }
            }
        }
        self.decide(timing);
    }

    /// The peer was lost, and may be back: the datagrams in flight are gone.
    pub(crate) fn start_over(&mut self) {
        self.in_flight.clear();
        (self.newest, self.asked_at, self.due) = (None, None, true);
    }

    /// The job to run, under this id.
    pub(crate) fn job(&mut self, id: u64) -> Option<Shape> {
        let wanted = matches!(self.encoding, Encoding::Wanted);
        wanted.then(|| {
            self.encoding = Encoding::Job(id);
            self.shape
        })
    }

    pub(crate) fn awaits(&self, job: u64) -> bool {
        matches!(self.encoding, Encoding::Job(id) if id == job)
    }

    /// The job is done.
    pub(crate) fn ready(&mut self, encoder: Encoder, timing: Timing) {
        self.encoding = Encoding::Ready(encoder);
        self.decide(timing);
    }
}
