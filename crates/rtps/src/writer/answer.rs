//! How a writer reacts when a reader reports what it lacks (DDSI-RTPS 2.5, section 8.4.9.2).

use super::{FIRST_HEARTBEAT, ReaderProxy, Writer};
use crate::context::{Context, is_newer};
use crate::send::{Change, Job, route};
use crate::timers::Timer;
use crate::wire::encode;
use crate::wire::ids::Guid;
use crate::wire::number::NumberSet;
use crate::wire::submessage::{AckNack, Gap, NackFrag};
use std::sync::Arc;

impl Writer {
    /// Handles a reader's acknowledgement: retransmits what it lacks, and announces what it will not get. Returns
    /// `true` if a program that waits for room has it now.
    pub(crate) fn on_acknack(&mut self, cx: &mut Context<'_>, reader: Guid, a: &AckNack) -> bool {
        let last = self.history.last();
        let Some(proxy) = self.proxies.get_mut(&reader) else {
            return false;
        };
        if !proxy.reliable || !is_newer(a.count, proxy.count) {
            return false;
        }
        proxy.count = Some(a.count);
        let acked = (a.missing.base - 1).min(last);
        if acked > proxy.acked {
            proxy.acked = acked;
            self.interval = FIRST_HEARTBEAT;
        }
        let first = self.history.first().max(proxy.start);
        let (target, pace) = (proxy.target, proxy.pace);
        let mut gone = Vec::new();
        for sequence in a.missing.iter().filter(|n| (1..=last).contains(n)) {
            match self.history.get(sequence).filter(|_| sequence >= first) {
                Some(change) => {
                    if let Some(job) = repair(proxy, reader, self.id, change, None) {
                        cx.outbox.repair(cx.now, pace, job);
                    }
                }
                None => gone.push(sequence),
            }
        }
        if let Some(from) = gone.first().copied() {
            let base = if from < first { first } else { from + 1 };
            let set = NumberSet::of(base, gone);
            let gap = Gap {
                reader: reader.entity,
                writer: self.id,
                first: from,
                set,
            };
            let mut bytes = Vec::new();
            encode::gap(&mut bytes, &gap);
            cx.outbox.control(cx.now, target, pace, bytes);
        }
        let lacks = acked < last;
        if !a.last_word {
            let heartbeat = self.heartbeat(reader.entity, !lacks);
            self.send_heartbeat(cx, target, pace, &heartbeat);
        }
        if lacks {
            cx.timers
                .set_earlier(Timer::Writer(self.id), cx.now + self.interval);
        }
        self.prune()
    }

    /// Retransmits the fragments of a sample that a reader lacks.
    pub(crate) fn on_nack_frag(&mut self, cx: &mut Context<'_>, reader: Guid, n: &NackFrag) {
        let Some(proxy) = self.proxies.get_mut(&reader) else {
            return;
        };
        if !proxy.reliable || !is_newer(n.count, proxy.fragment_count) {
            return;
        }
        proxy.fragment_count = Some(n.count);
        let first = self.history.first().max(proxy.start);
        let change = self.history.get(n.sequence).filter(|c| c.sequence >= first);
        // The next heartbeat announces that a sample is gone.
        if let Some(change) = change
            && !n.missing.is_empty()
            && let Some(job) = repair(proxy, reader, self.id, change, Some(n.missing))
        {
            cx.outbox.repair(cx.now, proxy.pace, job);
        }
    }
}

/// Retransmits a sample to one reader, followed by a heartbeat.
fn repair(
    proxy: &ReaderProxy,
    reader: Guid,
    writer: crate::wire::ids::EntityId,
    change: &Arc<Change>,
    only: Option<NumberSet>,
) -> Option<Job> {
    let to = route(writer, reader.entity, change);
    let mut job = Job::new(proxy.target, to, Arc::clone(change), proxy.job()?);
    job.only = only;
    job.heartbeat = true;
    Some(job)
}
