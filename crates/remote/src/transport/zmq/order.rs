//! Answers in the order of the requests, for peers whose requests have no numbers.

use super::listeners::Peer;
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;

/// Maximum unanswered requests of one connection.
const MAX_ASKED: usize = 64;

/// Requests by connection. A connection is known here only while it waits for answers.
#[derive(Default)]
pub(super) struct Orders {
    asked: HashMap<Peer, VecDeque<Asked>>,
    tickets: u64,
}

struct Asked {
    ticket: u64,
    envelope: Envelope,
    answer: Answer,
}

enum Answer {
    Awaited,
    Given(Vec<u8>),
    /// The sink dropped the request.
    Never,
}

/// The parts before the request, including the empty delimiter: REQ sockets match their answer by it.
pub(super) type Envelope = Vec<Vec<u8>>;

impl Orders {
    /// `None`: too many requests of this connection are unanswered.
    pub(super) fn ask(&mut self, peer: &[u8], envelope: Envelope) -> Option<u64> {
        self.tickets += 1;
        let asked = Asked {
            ticket: self.tickets,
            envelope,
            answer: Answer::Awaited,
        };
        match self.asked.get_mut(peer) {
            Some(queue) if queue.len() >= MAX_ASKED => return None,
            Some(queue) => queue.push_back(asked),
            None => {
                self.asked.insert(peer.to_vec(), VecDeque::from([asked]));
            }
        }
        Some(self.tickets)
    }

    /// Returns the answers that may be sent to the peer now, in order.
    pub(super) fn answer(
        &mut self,
        peer: &[u8],
        ticket: u64,
        frame: Option<Vec<u8>>,
    ) -> Vec<(Envelope, Vec<u8>)> {
        let Some(queue) = self.asked.get_mut(peer) else {
            return Vec::new();
        };
        if let Some(asked) = queue.iter_mut().find(|asked| asked.ticket == ticket) {
            asked.answer = frame.map_or(Answer::Never, Answer::Given);
        }
        let mut ready = Vec::new();
        while queue
            .front()
            .is_some_and(|first| !matches!(first.answer, Answer::Awaited))
        {
            if let Some(Asked {
                envelope,
                answer: Answer::Given(frame),
                ..
            }) = queue.pop_front()
            {
                ready.push((envelope, frame));
            }
        }
        if queue.is_empty() {
            self.asked.remove(peer);
        }
        ready
    }
}

/// Splits what a ROUTER socket received after the connection's name into the parts before the request, and the request.
/// `None` without a delimiter, with more than one part after it, or with more before it than proxies add.
pub(super) fn split<P: Deref<Target = [u8]>>(mut parts: Vec<P>) -> Option<(Envelope, P)> {
    let delimiter = parts.iter().position(|part| part.is_empty())?;
    if delimiter + 2 != parts.len() || delimiter > 8 {
        return None;
    }
    let request = parts.pop()?;
    Some((parts.iter().map(|part| part.to_vec()).collect(), request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_leave_in_the_order_of_asking() {
        let mut orders = Orders::default();
        let tickets: Vec<_> = (0..4u8)
            .map(|n| orders.ask(b"a", vec![vec![n]]).unwrap())
            .collect();
        let other = orders.ask(b"b", vec![]).unwrap();
        assert!(orders.answer(b"a", tickets[2], Some(vec![2])).is_empty());
        assert_eq!(orders.answer(b"b", other, Some(vec![9])), [(vec![], vec![9])]);
        assert!(orders.answer(b"a", tickets[1], None).is_empty());
        assert_eq!(
            orders.answer(b"a", tickets[0], Some(vec![0])),
            [(vec![vec![0]], vec![0]), (vec![vec![2]], vec![2])]
        );
        assert_eq!(orders.answer(b"a", tickets[3], None), []);
        assert_eq!(orders.answer(b"a", tickets[3], Some(vec![])), []);
        assert!(orders.asked.is_empty());
    }

    #[test]
    fn one_connection_asks_only_so_much() {
        let mut orders = Orders::default();
        for _ in 0..MAX_ASKED {
            assert!(orders.ask(b"a", vec![]).is_some());
        }
        assert!(orders.ask(b"a", vec![]).is_none());
        assert!(orders.ask(b"b", vec![]).is_some());
    }

    #[test]
    fn delimiters() {
        let halves = |parts: &[&[u8]]| {
            let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
            split(parts).map(|(envelope, request)| (envelope.len(), request))
        };
        assert_eq!(halves(&[b"", b"x"]), Some((1, b"x".to_vec())));
        assert_eq!(halves(&[b"0123", b"", b"x"]), Some((2, b"x".to_vec())));
        assert_eq!(halves(&[b"", b""]), Some((1, vec![])));
        assert_eq!(halves(&[]), None);
        assert_eq!(halves(&[b""]), None);
        assert_eq!(halves(&[b"x"]), None);
        assert_eq!(halves(&[b"id", b"x"]), None);
        assert_eq!(halves(&[b"", b"x", b"y"]), None);
        assert_eq!(
            halves(&[b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"", b"x"]),
            None
        );
    }
}
