//! A local reader: the writers it is matched with, and the samples it accepts (DDSI-RTPS 2.5, sections 8.4.10 to
//! 8.4.12).

mod asking;
mod assembly;
mod progress;
mod proxy;

use crate::account::Charge;
use crate::context::Context;
use crate::timers::Timer;
use crate::wire::endpoint::EndpointData;
use crate::wire::ids::{EntityId, Guid};
use crate::wire::inline::InlineQos;
use crate::wire::submessage::{Data, DataFrag, Gap, Heartbeat, HeartbeatFrag};
use crate::wire::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use proxy::{Accounts, Stamp, WriterProxy};
#[cfg(test)]
pub(crate) use proxy::{MAX_AHEAD, MAX_GAPS, MAX_PARTIAL};

/// A reader of a user topic or of discovery.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) id: EntityId,
    pub(crate) data: Arc<EndpointData>,
    proxies: BTreeMap<Guid, WriterProxy>,
    /// Longest sample that it accepts, in bytes.
    longest: u32,
}

/// A complete sample, and its charge while it waits.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) sequence: i64,
    pub(crate) payload: Vec<u8>,
    /// Whether there is no data, but at most the key of an instance.
    pub(crate) key: bool,
    pub(crate) inline: InlineQos,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) charge: Charge,
}

/// Result of a submessage: samples in order, and how many were lost before them.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    pub(crate) samples: Vec<Arrived>,
    pub(crate) lost: u64,
}

impl Reader {
    pub(crate) fn new(id: EntityId, data: Arc<EndpointData>, longest: u32) -> Self {
        Reader {
            id,
            data,
            proxies: BTreeMap::new(),
            longest,
        }
    }

    pub(crate) fn add_writer(&mut self, cx: &mut Context<'_>, guid: Guid, proxy: WriterProxy) {
        self.proxies.insert(guid, proxy);
        self.act(cx, guid);
    }

    pub(crate) fn remove_writer(&mut self, cx: &mut Context<'_>, guid: Guid) {
        if self.proxies.remove(&guid).is_some() {
            cx.timers.set(Timer::Reader(self.id, guid), None);
        }
    }

    pub(crate) fn writers(&self) -> impl Iterator<Item = Guid> + '_ {
        self.proxies.keys().copied()
    }

    /// Writers that have shown that they know this reader, and best-effort writers, which cannot show it.
    pub(crate) fn mutual(&self) -> impl Iterator<Item = Guid> + '_ {
        let known = self.proxies.iter().filter(|(_, p)| p.is_mutual());
        known.map(|(guid, _)| *guid)
    }

    /// Runs the due actions of a proxy, and sets its timer.
    fn act(&mut self, cx: &mut Context<'_>, guid: Guid) {
        let Some(proxy) = self.proxies.get_mut(&guid) else {
            return;
        };
        proxy.ask(cx, self.id, guid);
        let due = [proxy.asking.due(), proxy.partial_due()]
            .into_iter()
            .flatten()
            .min();
        cx.timers.set(Timer::Reader(self.id, guid), due);
    }

    fn with(
        &mut self,
        cx: &mut Context<'_>,
        guid: Guid,
        act: impl FnOnce(&mut WriterProxy, &mut Brought),
    ) -> Brought {
        let mut brought = Brought::default();
        if let Some(proxy) = self.proxies.get_mut(&guid) {
            act(proxy, &mut brought);
            self.act(cx, guid);
        }
        brought
    }

    pub(crate) fn on_data(
        &mut self,
        cx: &mut Context<'_>,
        from: Guid,
        stamp: Stamp,
        data: &Data<'_>,
    ) -> Brought {
        self.with(cx, from, |proxy, brought| {
            if data.inline.foreign {
                proxy.pass_over(data.sequence, &mut brought.samples);
            } else {
                let out = &mut brought.samples;
                brought.lost = proxy.data(stamp, data.sequence, data.inline, data.payload, out);
            }
        })
    }

    pub(crate) fn on_data_frag(
        &mut self,
        cx: &mut Context<'_>,
        from: Guid,
        stamp: Stamp,
        frag: &DataFrag<'_>,
    ) -> Brought {
        let longest = self.longest;
        self.with(cx, from, |proxy, brought| {
            if frag.inline.foreign {
                proxy.pass_over(frag.sequence, &mut brought.samples);
            } else {
                brought.lost = proxy.data_frag(stamp, frag, longest, &mut brought.samples);
            }
        })
    }

    pub(crate) fn on_heartbeat(
        &mut self,
        cx: &mut Context<'_>,
        from: Guid,
        heartbeat: &Heartbeat,
    ) -> Brought {
        let now = cx.now;
        self.with(cx, from, |proxy, brought| {
            brought.lost = proxy.heartbeat(now, heartbeat, &mut brought.samples);
        })
    }

    /// Handles a writer's announcement of how many fragments of a sample it has: the reader requests the missing ones.
    pub(crate) fn on_heartbeat_frag(
        &mut self,
        cx: &mut Context<'_>,
        from: Guid,
        h: &HeartbeatFrag,
    ) -> Brought {
        let now = cx.now;
        self.with(cx, from, |proxy, _| {
            if proxy.reliable && proxy.parts.contains_key(&h.sequence) {
                proxy.asking.at_latest(now + asking::QUIET);
            }
        })
    }

    pub(crate) fn on_gap(&mut self, cx: &mut Context<'_>, from: Guid, gap: &Gap) -> Brought {
        self.with(cx, from, |proxy, brought| proxy.gap(gap, &mut brought.samples))
    }

    pub(crate) fn on_timer(&mut self, cx: &mut Context<'_>, guid: Guid) {
        if let Some(proxy) = self.proxies.get_mut(&guid) {
            proxy.give_up(cx.now);
            self.act(cx, guid);
        }
    }
}
