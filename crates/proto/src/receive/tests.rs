//! Tests of what a peer can make the receiving half hold, and when that is released.

use super::*;
use crate::announcement::{Announcement, Ordering, Reliability, WITHDRAWN};
use crate::body::{Slot, Verdict};
use crate::geometry::Geometry;
use crate::wire::{AnnouncePiece, MoreHead};
use core::time::Duration;
use std::collections::BTreeSet;

/// Counts loaned memory. While it is `full`, it accepts nothing.
#[derive(Default)]
struct Counter {
    next: u64,
    open: BTreeMap<Slot, (u64, u64)>,
    done: Vec<u64>,
    seqs: BTreeMap<Slot, u64>,
    full: bool,
}

impl Counter {
    fn loaned(&self) -> u64 {
        self.open.values().map(|(bytes, _)| bytes).sum()
    }
}

impl Sink for Counter {
    fn begin(&mut self, m: &Incoming) -> Result<Slot, DropReason> {
        self.next += 1;
        let slot = Slot(self.next);
        self.open.insert(slot, (m.geometry.total_len().into(), 0));
        self.seqs.insert(slot, m.seq);
        Ok(slot)
    }

    fn write(&mut self, slot: Slot, _: u32, bytes: &[u8]) {
        self.open.get_mut(&slot).expect("an open slot").1 += bytes.len() as u64;
    }

    fn takes(&mut self, slot: Slot) -> bool {
        assert!(self.open.contains_key(&slot));
        !self.full
    }

    fn finish(&mut self, slot: Slot) -> Result<(), DropReason> {
        let (bytes, written) = self.open.remove(&slot).expect("an open slot");
        assert_eq!(bytes, written, "each byte once");
        self.done.push(self.seqs[&slot]);
        Ok(())
    }

    fn abort(&mut self, slot: Slot, _: DropReason) {
        self.open.remove(&slot).expect("an open slot");
    }

    fn topic_announced(&mut self, _: PeerId, _: RemoteTopic, _: &Announcement) -> Verdict {
        Verdict::Accept
    }
}

fn receiver() -> Receiver {
    Receiver::new(PeerId(0), ReceiveLimits::default())
}

fn announcement(topic: u32, reliability: Reliability, ordering: Ordering) -> Announcement {
    Announcement {
        flavour: Default::default(),
        offers_reliable: None,
        name: format!("/t{topic}"),
        type_name: "a/B".into(),
        type_hash: [0; 16],
        definition: String::new(),
        priority: 50,
        depth: 64,
        reliability,
        ordering,
        latched: false,
        when_watched: false,
        via: None,
    }
}

fn announce(r: &mut Receiver, sink: &mut Counter, topic: u32, a: &Announcement) -> Result<(), DropReason> {
    let bytes = a.encode(0);
    let mut pieces = bytes.chunks(1_000).enumerate().map(|(i, piece)| AnnouncePiece {
        topic,
        edition: 1,
        total: bytes.len() as u32,
        offset: 1_000 * i as u32,
        poll: false,
        bytes: piece,
    });
    pieces.try_for_each(|p| r.announce(&p, sink))
}

fn with(reliability: Reliability, ordering: Ordering, topics: u32) -> (Receiver, Counter) {
    let (mut r, mut sink) = (receiver(), Counter::default());
    for topic in 0..topics {
        let a = announcement(topic, reliability, ordering);
        announce(&mut r, &mut sink, topic, &a).expect("is accepted");
    }
    (r, sink)
}

fn head(topic: u32, seq: u64, offset: u32, total: u32) -> DataHead {
    DataHead {
        topic,
        seq,
        stamp: Time(7),
        origin: 0,
        offset,
        geometry: Geometry::new(total, &[]).expect("a geometry"),
        poll: false,
    }
}

const NOW: Time = Time::from_millis(1);
const MB: u32 = 1 << 20;

#[test]
fn a_beginning_of_a_long_message_takes_no_more_than_it_brings() {
    let (mut r, mut sink) = with(Reliability::BestEffort, Ordering::Any, 50);
    for topic in 0..50 {
        r.data(NOW, &head(topic, 0, 50 * MB, 60 * MB), &[1; 100], &mut sink)
            .expect("taken");
    }
    assert_eq!(sink.loaned(), 0);
    assert!(r.partial_bytes <= r.limits.max_partial_bytes);
    // For those within the limit on bytes, memory is loaned once a share of each has arrived.
    let (total, piece) = (MB, [2; 1_024]);
    for at in 0..64 {
        assert_eq!(sink.loaned(), 0, "after {at} KiB");
        r.data(NOW, &head(3, 1, at * 1_024, total), &piece, &mut sink)
            .expect("taken");
        if sink.loaned() > 0 {
            assert!(at >= 55, "a sixteenth, less what fragments cost");
            break;
        }
    }
    assert_eq!(sink.loaned(), u64::from(total));
    for at in 0..1_024 {
        r.data(NOW, &head(3, 1, at * 1_024, total), &piece, &mut sink)
            .expect("taken");
    }
    assert_eq!(sink.done, [1]);
    let staged = r.topics[&3].counts.staged_bytes;
    assert!(
        (50 << 10..=64 << 10).contains(&staged),
        "{staged} bytes were copied"
    );
    // From here on messages of its length are expected, and copied once.
    r.data(NOW, &head(3, 2, 0, total), &piece, &mut sink)
        .expect("taken");
    assert_eq!(
        (sink.loaned(), r.topics[&3].counts.staged_bytes),
        (u64::from(total), staged)
    );
}

#[test]
fn a_peer_that_is_lost_leaves_nothing_but_what_comes_as_symbols() {
    let (mut r, mut sink) = with(Reliability::BestEffort, Ordering::Any, 3);
    let (mut redundant, _) = (announcement(9, Reliability::Redundant, Ordering::Any), ());
    redundant.depth = 1;
    announce(&mut r, &mut sink, 9, &redundant).expect("is accepted");
    r.data(NOW, &head(0, 0, 0, 1_000), &[0; 10], &mut sink)
        .expect("taken");
    r.data(NOW, &head(1, 0, 0, 9 * MB), &[0; 10], &mut sink)
        .expect("taken");
    let more = MoreHead {
        topic: 2,
        seq: 0,
        offset: 5,
    };
    r.described(&more, &[0; 99]).expect("kept");
    r.parity(NOW, 9, (0, 5, 1), &[3; 500], &mut sink).expect("kept");
    let unfinished = AnnouncePiece {
        topic: 77,
        edition: 1,
        total: 5_000,
        offset: 9,
        poll: false,
        bytes: &[1; 9],
    };
    r.announce(&unfinished, &mut sink).expect("kept");
    assert!(r.decoding_bytes >= 500 && sink.loaned() > 0);
    r.pause(&mut sink);
    assert_eq!(
        (r.partials, r.partial_bytes, r.decoding_bytes, sink.loaned()),
        (0, 0, 0, 0)
    );
    assert!(r.announcing.is_empty() && r.early.is_empty());
    assert!(r.topics.values().all(|t| t.partials.is_empty()));
    assert!(
        r.topics
            .values()
            .filter_map(|t| t.decoder.as_ref())
            .all(|d| d.held() == 0)
    );
}

#[test]
fn the_announcements_of_all_topics_have_one_budget() {
    let (mut r, mut sink) = (receiver(), Counter::default());
    let mut accepted = 0;
    for topic in 0..100 {
        let a = Announcement {
            definition: "x".repeat(250 << 10),
            ..announcement(topic, Reliability::BestEffort, Ordering::Any)
        };
        match announce(&mut r, &mut sink, topic, &a) {
            Ok(()) => accepted += 1,
            Err(reason) => assert_eq!(reason, DropReason::TooLarge),
        }
        r.acks.clear();
    }
    let held: usize = r.topics.values().map(|t| t.announced_bytes).sum();
    assert!(
        held <= r.limits.max_announced_bytes && (30..=33).contains(&accepted),
        "{accepted}"
    );
    // A withdrawn topic makes room.
    let withdrawal = AnnouncePiece {
        topic: 0,
        edition: 2,
        total: WITHDRAWN.len() as u32,
        offset: 0,
        poll: false,
        bytes: WITHDRAWN,
    };
    r.announce(&withdrawal, &mut sink).expect("is withdrawn");
    let late = announcement(200, Reliability::BestEffort, Ordering::Any);
    let late = Announcement {
        definition: "x".repeat(250 << 10),
        ..late
    };
    announce(&mut r, &mut sink, 200, &late).expect("has room");
}

#[test]
fn the_decoders_of_all_topics_have_one_budget() {
    let (mut r, mut sink) = with(Reliability::Redundant, Ordering::Any, 200);
    let shard = vec![5; 60_000];
    for round in 0..32u64 {
        for topic in 0..200 {
            r.parity(NOW, topic, (40 * round, 32, round as u8), &shard, &mut sink)
                .expect("kept");
            assert!(r.decoding_bytes <= r.limits.max_decoding_bytes);
        }
    }
    let decoders = r.topics.values().filter_map(|t| t.decoder.as_ref());
    assert_eq!(decoders.map(Decoder::held).sum::<usize>(), r.decoding_bytes);
}

#[test]
fn numbers_that_are_settled_with_gaps_take_no_more_than_a_bit_each() {
    let (mut r, mut sink) = with(Reliability::Reliable, Ordering::Any, 1);
    let mut settled = BTreeSet::new();
    for seq in (1..SPAN).step_by(2) {
        r.data(NOW, &head(0, seq, 0, 4), &[0; 4], &mut sink)
            .expect("taken");
        settled.insert(seq);
    }
    assert!(r.data(NOW, &head(0, SPAN, 0, 4), &[0; 4], &mut sink).is_err());
    let tracker = r.topics[&0].tracker.as_ref().expect("reliable");
    for seq in 0..2 * SPAN {
        let known = tracker.fate(seq) == Fate::Delivered;
        assert_eq!(known, settled.contains(&seq), "{seq}");
    }
}

#[test]
fn runs_of_a_short_message_cost_no_more_than_its_bytes() {
    let (mut r, mut sink) = with(Reliability::BestEffort, Ordering::Any, 1);
    let total = 8_000;
    let fragments = (0..total).step_by(2);
    let taken = fragments.filter(|at| {
        let taken = r.data(NOW, &head(0, 0, *at, total), &[0], &mut sink);
        taken.is_ok()
    });
    assert!(taken.count() < 200);
}

#[test]
fn messages_the_sink_does_not_take_wait_unsettled() {
    for ordering in [Ordering::InOrder, Ordering::Any] {
        let (mut r, mut sink) = with(Reliability::Reliable, ordering, 2);
        sink.full = true;
        for seq in 0..40 {
            r.data(NOW, &head(0, seq, 0, 4), &[0; 4], &mut sink)
                .expect("taken");
        }
        let tracker = |r: &Receiver| r.topics[&0].tracker.as_ref().map(reliable::Tracker::base);
        assert_eq!((sink.done.len(), tracker(&r)), (0, Some(0)));
        // Each is reported as whole, so that nothing of it is retransmitted.
        r.topics
            .get_mut(&0)
            .and_then(|t| t.tracker.as_mut())
            .expect("reliable")
            .owed = Owed::Now;
        let a = r.next_acknowledgement(1_000, true).expect("is owed");
        assert_eq!((a.base, a.partial.len(), a.runs.len()), (0, 40, 0));
        assert!(a.partial.iter().all(|(_, missing)| missing.is_empty()));
        r.acknowledged(0);
        // The sink is asked again and again, and nothing ages meanwhile.
        let mut now = NOW;
        for _ in 0..100_000 {
            now = r.next_timeout().expect("it waits").max(now);
            r.expire(now, &mut sink);
        }
        assert!(now > Time::from_millis(100_000) && sink.open.len() == 40);
        // Messages that their sender gives up are dropped, not delivered to the sink.
        r.settled(now, 0, 10, &mut sink).expect("is known");
        assert_eq!((sink.done.len(), sink.open.len(), tracker(&r)), (0, 30, Some(10)));
        // Its peer is lost: messages that only wait here stay.
        r.pause(&mut sink);
        assert_eq!((sink.open.len(), r.partials), (30, 30));
        sink.full = false;
        r.expire(now + Duration::from_millis(2), &mut sink);
        assert_eq!(sink.done, (10..40).collect::<Vec<u64>>());
        assert_eq!((r.partials, r.partial_bytes), (0, 0));
    }
}

#[test]
fn topics_of_a_peer_are_bounded() {
    let (mut r, mut sink) = (receiver(), Counter::default());
    for topic in 0..MAX_TOPICS as u32 {
        let a = announcement(topic, Reliability::BestEffort, Ordering::Any);
        announce(&mut r, &mut sink, topic, &a).expect("has room");
        r.acks.clear();
    }
    let late = announcement(9_999, Reliability::BestEffort, Ordering::Any);
    let refused = announce(&mut r, &mut sink, 9_999, &late);
    assert_eq!((refused, r.topics.len()), (Err(DropReason::TooLarge), MAX_TOPICS));
    // A known topic may change.
    let again = announcement(0, Reliability::Reliable, Ordering::Any);
    announce(&mut r, &mut sink, 0, &again).expect("is known");
}
