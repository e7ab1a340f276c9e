//! Writes fragments of a topic's messages into datagrams, and computes the room that they take there.

use super::{Pending, SendTopic, Sending, When};
use crate::body::Body;
use crate::send::bulk::Bulk;
use crate::send::parity::{AROUND, Coder};
use crate::send::reliable::Sent;
use crate::wire::{DataHead, Frame, MoreHead, ROUTE_ROOM};

impl<B: Body> SendTopic<B> {
    /// Appends a fragment of the next message to a datagram that may grow to `max` bytes. If it was the last, returns
    /// the bytes that no longer wait.
    pub(crate) fn put_fragment(
        &mut self,
        id: u32,
        max: usize,
        out: &mut Vec<u8>,
        when: &mut When,
    ) -> Option<u64> {
        if self.unacked.as_ref().is_some_and(|k| k.due().is_some()) {
            return self.put_again(id, max, out, when);
        }
        if let Some(coder) = &mut self.coder
            && (coder.presses() || self.sending.is_none() && self.waiting.is_empty())
        {
            self.counts.parity_bytes += coder.put(when.now, id, max, out) as u64;
            return None;
        }
        if self.sending.is_none() {
            let pending = self.waiting.pop_front()?;
            if let (Some(shape), Some(unacked)) = (pending.shape, &mut self.unacked) {
                unacked.begin_bulk(pending, self.next_seq, Bulk::new(shape));
                self.next_seq += 1;
                return self.put_again(id, max, out, when);
            }
            self.sending = Some(Sending {
                pending,
                seq: self.next_seq,
                at: 0,
            });
            self.next_seq += 1;
        }
        let s = self.sending.as_mut()?;
        let total = s.pending.geometry.total_len();
        let (from, ready) = (s.at, s.pending.ready()?);
        let (name, asks) = ((id, s.seq), self.unacked.is_some());
        s.at += match &mut self.coder {
            // A receiver that missed the first fragment has no use for the others.
            None if from > 0 && !asks => put_more(&s.pending, name, (from, ready), max, out),
            None => put_piece(&s.pending, name, (from, ready), asks, max, out, &mut when.origin),
            Some(coder) => {
                let mut frame = Vec::new();
                let room = max.saturating_sub(out.len() + AROUND);
                let n = put_piece(&s.pending, name, (from, total), asks, room, &mut frame, &mut None);
                let source = Frame::Source {
                    topic: id,
                    id: coder.next_id(),
                    bytes: &frame,
                };
                source.encode(out);
                let share = self.config.redundancy.unwrap_or(when.timing.redundancy);
                coder.sent(when.now, &frame, share);
                n
            }
        };
        self.counts.fragments += 1;
        if s.at < total {
            return None;
        }
        let s = self.sending.take()?;
        if let Some(unacked) = &mut self.unacked {
            let sent = Sent {
                number: when.number,
                from,
                to: total,
            };
            unacked.keep(when.now, when.timing, s.pending, s.seq, sent);
            return Some(0);
        }
        self.counts.sent += 1;
        self.counts.sent_bytes += s.pending.bytes();
        Some(s.pending.bytes())
    }

    /// Appends a fragment that was sent before.
    pub(super) fn put_again(
        &mut self,
        id: u32,
        max: usize,
        out: &mut Vec<u8>,
        when: &mut When,
    ) -> Option<u64> {
        let kept = self.unacked.as_mut()?.due_mut()?;
        if let Some(bulk) = &mut kept.bulk {
            let mark = out.len();
            self.counts.parity_bytes += bulk.put(&kept.pending, (id, kept.seq), max, out, *when);
            self.counts.fragments += u64::from(out.len() > mark);
            if !bulk.is_due() {
                kept.sent(
                    when.now,
                    when.timing,
                    Sent {
                        number: when.number,
                        from: 0,
                        to: 0,
                    },
                );
            }
            return None;
        }
        let (from, to) = *kept.due.front()?;
        let last = kept.due.len() == 1;
        let n = put_piece(
            &kept.pending,
            (id, kept.seq),
            (from, to),
            last,
            max,
            out,
            &mut when.origin,
        );
        self.counts.fragments += 1;
        self.counts.repeated_bytes += u64::from(n);
        if n < to - from {
            kept.due.front_mut()?.0 += n;
            kept.sent_some(when.number);
            return None;
        }
        kept.due.pop_front();
        if last {
            let sent = Sent {
                number: when.number,
                from,
                to,
            };
            kept.sent(when.now, when.timing, sent);
        } else {
            kept.sent_some(when.number);
        }
        Some(0)
    }

    /// Whether nothing of it is retransmitted or computed from others, so that it may be cut anywhere.
    pub(crate) fn is_best_effort(&self) -> bool {
        self.unacked.is_none() && self.coder.is_none()
    }

    /// Whether the next fragment relies on the first one for the description and the route of the message.
    pub(crate) fn continues(&self) -> bool {
        self.is_best_effort() && self.sending.as_ref().is_some_and(|s| s.at > 0)
    }

    /// Whether the next fragment is the first of a message.
    pub(crate) fn begins_message(&self) -> bool {
        let repeats = self.unacked.as_ref().is_some_and(|k| k.due().is_some());
        self.coder.is_none() && !repeats && self.sending.is_none() && !self.waiting.is_empty()
    }

    /// Most that the header of the next fragment takes.
    pub(crate) fn head_room(&self) -> usize {
        // A symbol cannot be cut.
        if let Some(room) = self.symbol_room() {
            return room;
        }
        match &self.coder {
            None => self.head().map_or(0, |p| self.next_head(p)),
            Some(coder) => {
                let fresh = self.head().map_or(0, |p| self.next_head(p) + AROUND);
                fresh.max(if self.puts_parity() {
                    coder.frame_length()
                } else {
                    0
                })
            }
        }
    }

    /// Most that precedes the bytes of a fragment of `p`, the next message.
    fn next_head(&self, p: &Pending<B>) -> usize {
        if self.continues() {
            return MoreHead::ROOM;
        }
        let route = if p.message.route.is_some() { ROUTE_ROOM } else { 0 };
        DataHead::room(&p.geometry) + route
    }

    /// Most bytes that the rest of the next message takes in a datagram, including its header.
    pub(crate) fn rest_with_head(&self) -> usize {
        if let Some(room) = self.symbol_room() {
            return room;
        }
        if let Some(coder) = self.coder.as_ref().filter(|_| self.puts_parity()) {
            return coder.frame_length();
        }
        let around = if self.coder.is_some() { AROUND } else { 0 };
        // Retransmissions go before the rest of a message that has begun.
        let again = self.unacked.as_ref().and_then(|k| k.due()?.due.front());
        let at = self.sending.as_ref().map_or(0, |s| s.at);
        self.head().map_or(0, |p| {
            let rest = again.map_or_else(|| p.geometry.total_len() - at, |(from, to)| to - from);
            self.next_head(p) + rest as usize + around
        })
    }

    /// Whether parity is sent next.
    pub(super) fn puts_parity(&self) -> bool {
        let parity = |c: &Coder| c.presses() || c.is_due() && self.head().is_none();
        self.coder.as_ref().is_some_and(parity)
    }
}

/// Appends bytes of a message that is partly sent, as [`put_piece`] does.
fn put_more<B: Body>(
    pending: &Pending<B>,
    (topic, seq): (u32, u64),
    (from, to): (u32, u32),
    max: usize,
    out: &mut Vec<u8>,
) -> u32 {
    let offset = from;
    let ends = MoreHead::ROOM + (to - from) as usize <= max.saturating_sub(out.len());
    MoreHead { topic, seq, offset }.encode(out, ends.then_some(to - from));
    put_bytes(pending, (from, to), max, out)
}

/// Appends bytes of a message, at most up to `to`, to a datagram that may grow to `max` bytes, and returns how many. If
/// they are the last, the fragment `asks` for an acknowledgement. `before` is the origin of the fragment before it in
/// the datagram.
fn put_piece<B: Body>(
    pending: &Pending<B>,
    (topic, seq): (u32, u64),
    (from, to): (u32, u32),
    asks: bool,
    max: usize,
    out: &mut Vec<u8>,
    before: &mut Option<u64>,
) -> u32 {
    let (message, geometry) = (&pending.message, pending.geometry);
    let (stamp, origin) = (message.stamp, message.origin);
    let head = DataHead {
        topic,
        seq,
        stamp,
        origin,
        offset: from,
        geometry,
        poll: false,
    };
    let left = to - from;
    let room = max.saturating_sub(out.len());
    // Another frame may follow only a frame that states its length.
    let ends = DataHead::room(&geometry).saturating_add(left as usize) <= room;
    let mark = out.len();
    head.encode(out, ends.then_some(left), before.replace(origin));
    let n = put_bytes(pending, (from, to), max, out);
    if asks && n == left {
        DataHead::ask(&mut out[mark..]);
    }
    n
}

fn put_bytes<B: Body>(pending: &Pending<B>, (from, to): (u32, u32), max: usize, out: &mut Vec<u8>) -> u32 {
    // Fragments are addressed by byte offset, so a prediction of the next urgent message may cut this one short.
    let n = (to - from).min(u32::try_from(max.saturating_sub(out.len())).unwrap_or(u32::MAX));
    debug_assert!(n > 0 || from == to, "a fragment of nothing");
    let start = out.len();
    out.resize(start + n as usize, 0);
    pending.message.body.copy_at(from, &mut out[start..]);
    n
}
