//! Reassembly of announcements.

use super::ranges::{Ranges, most_runs};
use super::topic::ReceiveTopic;
use super::watching::Watching;
use super::{Receiver, RemoteTopic};
use crate::announcement::{Announcement, MAX_ENCODED, WITHDRAWN};
use crate::body::{Sink, Verdict};
use crate::config::MAX_TOPICS;
use crate::wire::{AckState, AnnouncePiece};
use stats::DropReason;
use std::collections::BTreeMap;

/// Answers that wait, by topic: edition and state.
pub(super) type Answers = BTreeMap<u32, (u32, AckState)>;

/// An announcement with missing pieces.
pub(super) struct Assembly {
    edition: u32,
    bytes: Vec<u8>,
    ranges: Ranges,
}

impl Receiver {
    /// Takes a piece of an announcement.
    ///
    /// An error is a loss that belongs to no topic.
    pub(crate) fn announce(
        &mut self,
        piece: &AnnouncePiece<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        match self.topics.get(&piece.topic) {
            Some(t) if t.edition > piece.edition => return Ok(()),
            Some(t) if t.edition == piece.edition => {
                let state = if t.accepted {
                    AckState::Accepted
                } else {
                    AckState::Refused
                };
                if piece.poll {
                    self.answer(piece.topic, piece.edition, state);
                }
                return Ok(());
            }
            None if self.topics.len() >= self.limits.max_topics => {
                if piece.poll {
                    self.answer(piece.topic, piece.edition, AckState::Refused);
                }
                return Err(DropReason::TooLarge);
            }
            _ => {}
        }
        match self.assemble(piece)? {
            Some(bytes) => self.announced(piece, &bytes, sink),
            None => Ok(()),
        }
    }

    /// Returns the announcement once its last missing piece is here.
    fn assemble(&mut self, piece: &AnnouncePiece<'_>) -> Result<Option<Vec<u8>>, DropReason> {
        let total = piece.total as usize;
        if total == 0 || total > MAX_ENCODED {
            return Err(DropReason::Malformed);
        }
        if total > self.limits.max_announcing_bytes {
            // It never fits, so the sender need not continue.
            self.answer(piece.topic, piece.edition, AckState::Refused);
            return Err(DropReason::TooLarge);
        }
        if let Some(a) = self.announcing.get(&piece.topic)
            && (a.edition, a.bytes.len()) != (piece.edition, total)
        {
            if a.edition >= piece.edition {
                return Err(DropReason::Malformed);
            }
            self.announcing.remove(&piece.topic);
        }
        if !self.announcing.contains_key(&piece.topic) {
            let held: usize = self.announcing.values().map(|a| a.bytes.len()).sum();
            if held.saturating_add(total) > self.limits.max_announcing_bytes
                || self.announcing.len() >= MAX_TOPICS
            {
                // It will be sent again once others are complete.
                return Err(DropReason::ReassemblyFull);
            }
        }
        let a = self.announcing.entry(piece.topic).or_insert_with(|| Assembly {
            edition: piece.edition,
            bytes: vec![0; total],
            ranges: Ranges::default(),
        });
        let kept = a.ranges.insert(
            piece.offset,
            piece.offset + piece.bytes.len() as u32,
            most_runs(piece.total),
            |from, to| {
                let (x, y) = ((from - piece.offset) as usize, (to - piece.offset) as usize);
                a.bytes[from as usize..to as usize].copy_from_slice(&piece.bytes[x..y]);
            },
        );
        if !kept {
            return Err(DropReason::Malformed);
        }
        if !a.ranges.covers(piece.total) {
            let missing = a.ranges.first_missing();
            if piece.poll {
                self.answer(piece.topic, piece.edition, AckState::Missing(missing));
            }
            return Ok(None);
        }
        Ok(self.announcing.remove(&piece.topic).map(|a| a.bytes))
    }

    /// Takes a complete announcement.
    fn announced(
        &mut self,
        piece: &AnnouncePiece<'_>,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), DropReason> {
        if bytes == WITHDRAWN {
            self.withdrawn(piece, sink);
            return Ok(());
        }
        let Ok((announcement, next_seq)) = Announcement::decode(bytes) else {
            self.answer(piece.topic, piece.edition, AckState::Refused);
            return Err(DropReason::Malformed);
        };
        let others = self.topics.iter().filter(|(id, _)| **id != piece.topic);
        let known: usize = others.map(|(_, t)| t.announced_bytes).sum();
        if known + bytes.len() > self.limits.max_announced_bytes {
            self.answer(piece.topic, piece.edition, AckState::Refused);
            return Err(DropReason::TooLarge);
        }
        let verdict = sink.topic_announced(self.peer, RemoteTopic(piece.topic), &announcement);
        let earlier = &mut self.earlier;
        let topic = self.topics.entry(piece.topic).or_insert_with(|| {
            ReceiveTopic::new(next_seq, earlier.remove(&announcement.name).unwrap_or_default())
        });
        topic.edition = piece.edition;
        topic.accepted = verdict == Verdict::Accept;
        match announcement.when_watched && topic.accepted {
            true => topic.watching.get_or_insert_with(Watching::new).announced_again(),
            false => topic.watching = None,
        }
        topic.announced(announcement, next_seq);
        // Nothing is kept of a refused topic.
        topic.announced_bytes = if topic.accepted { bytes.len() } else { 0 };
        let state = if topic.accepted {
            AckState::Accepted
        } else {
            AckState::Refused
        };
        self.answer(piece.topic, piece.edition, state);
        Ok(())
    }

    /// The peer sends nothing more of a topic. Its partial messages are given up, the counters stay.
    fn withdrawn(&mut self, piece: &AnnouncePiece<'_>, sink: &mut impl Sink) {
        if let Some(t) = self.topics.get_mut(&piece.topic) {
            t.edition = piece.edition;
            t.accepted = false;
            t.watching = None;
            t.announced_bytes = 0;
            let reliable = t.tracker.is_some();
            let partials: Vec<u64> = t.partials.iter().map(|p| p.seq).collect();
            for seq in partials {
                if reliable {
                    // Its sender reports the messages that it gave up.
                    self.remove(piece.topic, seq, DropReason::PeerLost, sink);
                } else {
                    self.cancel(piece.topic, seq, sink);
                }
            }
            sink.topic_withdrawn(self.peer, RemoteTopic(piece.topic));
        }
        self.answer(piece.topic, piece.edition, AckState::Accepted);
    }

    fn answer(&mut self, topic: u32, edition: u32, state: AckState) {
        answer(&mut self.acks, topic, edition, state);
    }

    /// Whether an answer waits.
    pub(crate) fn has_answers(&self) -> bool {
        !self.acks.is_empty()
    }

    /// The next answer to send: topic, edition, state. It stays due until [`Receiver::answered`] is called.
    pub(crate) fn next_answer(&self) -> Option<(u32, u32, AckState)> {
        self.acks.first_key_value().map(|(t, (e, s))| (*t, *e, *s))
    }

    /// The answer for `topic` was sent.
    pub(crate) fn answered(&mut self, topic: u32) {
        self.acks.remove(&topic);
    }
}

/// Adds an answer to those that wait; their number is limited.
pub(super) fn answer(acks: &mut Answers, topic: u32, edition: u32, state: AckState) {
    if acks.len() < MAX_TOPICS || acks.contains_key(&topic) {
        acks.insert(topic, (edition, state));
    }
}
