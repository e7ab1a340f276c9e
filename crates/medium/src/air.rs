//! Contention on the air: when hosts transmit, and which receptions succeed.
//!
//! A transmission is a frame and its acknowledgement. A host that hears the sender stays silent for both: the duration
//! field of the frame states how long. A host that hears only the receiver defers to the acknowledgement, but not to
//! the frame: it is hidden from the sender (decision 050).

use crate::medium::Medium;
use crate::station::{Contender, Phase, Station, Transmission};
use crate::topology::EVERYONE;
use crate::transfer::Frame;
use stats::{DropReason, Time};

impl<P> Station<P> {
    /// When its transmission continues, or begins if it is committed to one.
    pub(crate) fn due(&self) -> Option<Time> {
        self.air.as_ref().map(Transmission::next).or(self.committed)
    }
}

impl<P: Clone> Medium<P> {
    /// A committed host begins, or a transmission reaches its next phase.
    pub(crate) fn go_on(&mut self, t: Time, host: usize) {
        match self.stations[host].air.as_ref().map(|a| a.phase) {
            None => self.begin(t, host),
            Some(Phase::Data) => self.end_of_data(t, host),
            Some(Phase::Gap) => self.begin_ack(t, host),
            Some(Phase::Ack | Phase::Tail) => self.end(t, host),
        }
    }

    /// Host `i`, which is on the list already, transmits the head of its most urgent queue that is due.
    pub(crate) fn begin(&mut self, t: Time, i: usize) {
        if self.on_air.len() == 1 {
            self.busy_since = t;
        }
        let Some((queue, to, ip_bytes)) = self.choose(t, i) else {
            // It committed itself, but has nothing to send any more.
            self.on_air.retain(|h| *h != i);
            return;
        };
        let retries = self.stations[i].queues[queue].retries;
        let phy = self.phy(t, i, to);
        let data = phy.data(ip_bytes);
        let exchange = if to == EVERYONE {
            data
        } else {
            phy.exchange(ip_bytes)
        };
        let h = &mut self.transfer.stats.hosts[i];
        h.attempts += 1;
        h.retries += u64::from(retries > 0);
        h.air += exchange;
        if let Some(c) = h.categories.get_mut(queue) {
            c.attempts += 1;
        }
        let mut own = Transmission {
            queue,
            to,
            data_end: t + data,
            ack_start: t + data + self.standard.sifs(),
            end: t + exchange,
            phase: Phase::Data,
            spoilt: false,
            deaf: Vec::new(),
            counted: false,
            acknowledged: false,
            outage: false,
            ip_bytes,
        };
        self.meet(i, i, &mut own);
        self.stations[i].air = Some(own);
        self.occupy(t, i);
    }

    /// The most urgent of the queues that are due. Others that are due have an internal collision; the rest freeze
    /// (IEEE 802.11-2016, 10.22.2.4). Returns the queue, the neighbour and the size of the packet.
    fn choose(&mut self, t: Time, i: usize) -> Option<(usize, usize, usize)> {
        let s = &mut self.stations[i];
        s.committed = None;
        let idle_since = s.idle_since;
        let due = |q: &Contender<P>| q.attempt(idle_since).is_some_and(|at| at <= t);
        let chosen = s.queues.iter().rposition(due)?;
        for other in (0..s.queues.len()).filter(|q| *q != chosen) {
            let q = &mut self.stations[i].queues[other];
            if due(q) {
                if let Some(c) = self.transfer.stats.hosts[i].categories.get_mut(other) {
                    c.internal_collisions += 1;
                }
                self.failed(t, i, other, DropReason::Air);
            } else {
                q.freeze(idle_since, t, &mut self.transfer.rng);
            }
        }
        let head = self.stations[i].queues[chosen].queue.front()?;
        Some((chosen, self.map.next(i, head.to)?, head.ip_bytes))
    }

    /// `speaker` begins to emit for the transmission of `of`: marks the receptions that this spoils, and whether its
    /// own is spoilt.
    fn meet(&mut self, of: usize, speaker: usize, own: &mut Transmission) {
        let listener = if speaker == of { own.to } else { of };
        let (mut met, mut counted) = (false, false);
        for &x in self.on_air.iter().filter(|x| **x != of) {
            let Some(other) = &mut self.stations[x].air else {
                continue;
            };
            // The current speaker and listener of the other transmission.
            let (speaks, listens) = match other.phase {
                Phase::Data => (x, other.to),
                Phase::Ack => (other.to, x),
                Phase::Gap | Phase::Tail => continue,
            };
            let spoils = self.map.disturbs(speaker, x, listens, &mut other.deaf);
            let is_spoilt = self.map.disturbs(speaks, of, listener, &mut own.deaf);
            other.spoilt |= spoils;
            own.spoilt |= is_spoilt;
            if spoils || is_spoilt {
                counted |= other.counted;
                other.counted = true;
                met = true;
            }
        }
        if met {
            self.transfer.stats.collisions += u64::from(!counted && !own.counted);
            own.counted = true;
        }
    }

    /// Hosts that hear `speaker` find the channel busy from `t` on.
    fn occupy(&mut self, t: Time, speaker: usize) {
        let slot = self.standard.slot();
        let mut n = 0;
        while let Some(j) = self.map.audience(speaker, n) {
            n += 1;
            let s = &mut self.stations[j];
            if j == speaker {
                s.heard += 1;
            } else {
                s.notice(t, slot, &mut self.transfer.rng);
                if s.committed.is_some() && !self.on_air.contains(&j) {
                    self.on_air.push(j);
                }
            }
        }
    }

    /// Hosts that hear `speaker` no longer hear it.
    fn release(&mut self, t: Time, speaker: usize) {
        let mut n = 0;
        while let Some(j) = self.map.audience(speaker, n) {
            n += 1;
            let s = &mut self.stations[j];
            s.heard = s.heard.saturating_sub(1);
            if s.heard == 0 {
                s.idle_since = t;
                if let Some(ended) = s.outcome.take() {
                    self.settle(t, j, &ended);
                }
            }
        }
    }

    fn end_of_data(&mut self, t: Time, i: usize) {
        let Some(mut own) = self.stations[i].air.take() else {
            return;
        };
        let to = own.to;
        own.phase = Phase::Tail;
        if own.is_group() {
            self.end_of_group(t, i, own);
            return;
        }
        let mut lost = own.spoilt;
        if own.spoilt {
            self.transfer.stats.hosts[i].collisions += 1;
        } else {
            own.outage = self.stations[to].down || self.transfer.links.is_down(t, (i, to));
            lost = own.outage || self.transfer.links.loses(t, (i, to), &mut self.transfer.rng);
            self.transfer.stats.lost += u64::from(lost);
            self.transfer.stats.hosts[i].lost += u64::from(lost);
        }
        own.acknowledged = !lost;
        if !lost && !self.map.one_domain() {
            own.phase = Phase::Gap;
        }
        let queue = own.queue;
        self.stations[i].air = Some(own);
        if !lost
            && let Some(frame) = self.stations[i].queues[queue].queue.pop_front()
            && frame.payload.is_some()
        {
            self.transfer.over(i, queue);
            if let Some(frame) = self.transfer.crossed(t, i, to, frame) {
                self.arrive(t, to, frame);
            }
        }
    }

    /// A frame to everyone ends: each receiver has it or not, by an independent chance, and nobody acknowledges it.
    fn end_of_group(&mut self, t: Time, i: usize, mut own: Transmission) {
        own.acknowledged = true;
        let (queue, deaf) = (own.queue, std::mem::take(&mut own.deaf));
        self.transfer.stats.hosts[i].collisions += u64::from(own.spoilt);
        self.stations[i].air = Some(own);
        let Some(frame) = self.stations[i].queues[queue].queue.pop_front() else {
            return;
        };
        self.transfer.over(i, queue);
        let receivers: Vec<usize> = self.map.receivers(i, frame.from).collect();
        // One packet becomes one per receiver, each of which is delivered or lost.
        self.transfer.stats.duplicated += (receivers.len() as u64).saturating_sub(1);
        if receivers.is_empty() {
            self.transfer.lose(t, i, DropReason::Air, frame);
            return;
        }
        for to in receivers {
            let frame = frame.clone();
            if deaf.contains(&to) {
                self.transfer.lose(t, i, DropReason::Air, frame);
                continue;
            }
            let down = self.stations[to].down || self.transfer.links.is_down(t, (i, to));
            if down || self.transfer.links.loses(t, (i, to), &mut self.transfer.rng) {
                self.transfer.stats.lost += 1;
                self.transfer.stats.hosts[i].lost += 1;
                let reason = if down { DropReason::Outage } else { DropReason::Air };
                self.transfer.lose(t, i, reason, frame);
            } else if let Some(frame) = self.transfer.crossed(t, i, to, frame) {
                self.arrive(t, to, frame);
            }
        }
    }

    fn begin_ack(&mut self, t: Time, i: usize) {
        let Some(mut own) = self.stations[i].air.take() else {
            return;
        };
        own.phase = Phase::Ack;
        let to = own.to;
        self.meet(i, to, &mut own);
        self.stations[i].air = Some(own);
        self.occupy(t, to);
    }

    fn end(&mut self, t: Time, i: usize) {
        let Some(mut own) = self.stations[i].air.take() else {
            return;
        };
        self.on_air.retain(|h| *h != i);
        if self.on_air.is_empty() {
            self.transfer.stats.busy += t.since(self.busy_since);
        }
        let (to, acknowledging) = (own.to, own.phase == Phase::Ack);
        if acknowledging && own.spoilt {
            // The receiver has it, and recognizes it by its number when it is repeated.
            own.acknowledged = false;
            self.transfer.stats.hosts[i].collisions += 1;
            self.stations[i].queues[own.queue].queue.push_front(Frame {
                from: i,
                to,
                ip_bytes: own.ip_bytes,
                queue: own.queue,
                payload: None,
            });
        }
        self.stations[i].outcome = Some(own);
        if acknowledging {
            self.release(t, to);
        }
        self.release(t, i);
    }

    /// The channel is idle again after host `i`'s transmission.
    fn settle(&mut self, t: Time, i: usize, ended: &Transmission) {
        if ended.acknowledged {
            self.stations[i].queues[ended.queue].settle(&mut self.transfer.rng);
        } else {
            let reason = if ended.outage {
                DropReason::Outage
            } else {
                DropReason::Air
            };
            self.failed(t, i, ended.queue, reason);
        }
    }

    /// The head of a queue failed again: it is retried, or given up after the last retry.
    fn failed(&mut self, t: Time, i: usize, queue: usize, reason: DropReason) {
        let q = &mut self.stations[i].queues[queue];
        if q.retries < self.retries {
            q.back_off(&mut self.transfer.rng);
            return;
        }
        q.settle(&mut self.transfer.rng);
        if let Some(frame) = q.queue.pop_front() {
            self.transfer.lose(t, i, reason, frame);
        }
    }
}
