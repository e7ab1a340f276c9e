//! Outcomes of the messages of a topic, as far as both ends know (decision 100).

use crate::statistics::{Account, ReceiverReport};
use stats::{DropReason, Drops};

/// The sender's record of what it began to send: each message of which anything was sent has a number.
///
/// Only the sender knows about messages that it did not begin. For the others the receiver's report is final, since it
/// has one fate for each number: a message that was given up here is lost only if the receiver says so, because it may
/// have been delivered all the same.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Messages begun and given up, since the topic began.
    given_up: Drops,
    /// The same in the peer's present session, plus messages that arrived over another route.
    given_up_now: Drops,
    /// Totals of past sessions of the peer.
    delivered: u64,
    lost: Drops,
    /// Number of the first message of the peer's present session.
    first: u64,
    report: Option<ReceiverReport>,
}

impl Ledger {
    /// A message that was sent in part is given up; it counts among the topic's drops.
    pub(crate) fn gives_up(&mut self, reason: DropReason) {
        self.given_up.add(reason, 1);
        self.given_up_now.add(reason, 1);
    }

    /// A message that was begun has arrived over another route.
    pub(crate) fn came_elsewhere(&mut self) {
        self.given_up_now.add(DropReason::OtherWay, 1);
    }

    /// Number of messages begun and given up.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.total()
    }

    /// The receiver's latest report in its present session.
    pub(crate) fn report(&self) -> Option<&ReceiverReport> {
        self.report.as_ref()
    }

    /// Takes a report of the receiver; `next` is the number of the next message. Returns false if it reports more than
    /// was begun.
    pub(crate) fn record_report(&mut self, report: ReceiverReport, next: u64) -> bool {
        let begun = next - self.first.min(next);
        let known = [report.delivered, report.abandoned, lost(&report).total()];
        let known = known.into_iter().fold(0, u64::saturating_add);
        if known > begun {
            return false;
        }
        self.report = Some(report);
        true
    }

    /// The receiver no longer knows messages numbered below `next`: those that it has not reported are lost.
    pub(crate) fn ends_session(&mut self, next: u64) {
        let begun = next - self.first.min(next);
        let report = self.report.take().unwrap_or_default();
        let mut lost = lost(&report);
        let rest = begun.saturating_sub(report.delivered + lost.total());
        let known = self.given_up_now.first(rest);
        lost.add(DropReason::PeerLost, rest - known.total());
        lost.merge(&known);
        self.delivered += report.delivered;
        self.lost.merge(&lost);
        (self.first, self.given_up_now) = (next, Drops::default());
    }

    /// The account of `offered` messages, `drops` of which were lost here.
    pub(crate) fn account(&self, offered: u64, drops: &Drops) -> Account {
        let mut dropped = drops.minus(&self.given_up);
        dropped.merge(&self.lost);
        let mut delivered = self.delivered;
        if let Some(report) = &self.report {
            delivered += report.delivered;
            dropped.merge(&lost(report));
            dropped.merge(&self.given_up_now.first(report.abandoned));
        }
        let in_flight = offered.saturating_sub(delivered.saturating_add(dropped.total()));
        Account {
            offered,
            delivered,
            dropped,
            in_flight,
        }
    }
}

/// The receiver's counts of messages that did not arrive: without copies of others and losses of subscribers.
fn lost(report: &ReceiverReport) -> Drops {
    let mut beside = Drops::default();
    for reason in [DropReason::Duplicate, DropReason::NotTaken] {
        beside.add(reason, report.drops.count(reason));
    }
    report.drops.minus(&beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(of: &[(DropReason, u64)]) -> Drops {
        let mut all = Drops::default();
        of.iter().for_each(|(reason, n)| all.add(*reason, *n));
        all
    }

    fn report(delivered: u64, abandoned: u64, of: &[(DropReason, u64)]) -> ReceiverReport {
        ReceiverReport {
            delivered,
            abandoned,
            drops: drops(of),
        }
    }

    fn balanced(a: &Account) {
        assert_eq!(a.offered, a.delivered + a.dropped.total() + a.in_flight, "{a:?}");
    }

    #[test]
    fn unreported_messages_are_in_flight_and_copies_are_no_losses() {
        let mut ledger = Ledger::default();
        let here = drops(&[(DropReason::Replaced, 3)]);
        let a = ledger.account(10, &here);
        assert_eq!((a.delivered, a.in_flight, a.delivery()), (0, 7, Some(0.0)));
        assert!(ledger.record_report(
            report(
                4,
                0,
                &[
                    (DropReason::Air, 1),
                    (DropReason::Duplicate, 9),
                    (DropReason::NotTaken, 4)
                ]
            ),
            6
        ));
        let a = ledger.account(10, &here);
        balanced(&a);
        assert_eq!((a.delivered, a.in_flight), (4, 2));
        assert_eq!(
            a.dropped,
            drops(&[(DropReason::Replaced, 3), (DropReason::Air, 1)])
        );
        assert_eq!(a.delivery(), Some(0.5));
    }

    #[test]
    fn the_receivers_word_is_final_for_what_was_begun() {
        let mut ledger = Ledger::default();
        // Ten were begun, two expired. One of them was delivered all the same; the notice of the other was lost.
        ledger.gives_up(DropReason::Expired);
        ledger.gives_up(DropReason::Expired);
        let here = drops(&[(DropReason::Expired, 2)]);
        assert!(ledger.record_report(report(9, 0, &[(DropReason::Incomplete, 1)]), 10));
        let a = ledger.account(10, &here);
        balanced(&a);
        assert_eq!((a.delivered, a.in_flight, a.dropped.total()), (9, 0, 1));
        // Or it received both notices.
        assert!(ledger.record_report(report(8, 2, &[]), 10));
        let a = ledger.account(10, &here);
        balanced(&a);
        assert_eq!((a.delivered, a.in_flight, &a.dropped), (8, 0, &here));
    }

    #[test]
    fn a_receiver_that_reports_more_than_was_begun_is_not_believed() {
        let mut ledger = Ledger::default();
        assert!(!ledger.record_report(report(161, 0, &[]), 131));
        assert!(!ledger.record_report(report(u64::MAX, u64::MAX, &[(DropReason::Air, u64::MAX)]), 131));
        assert!(ledger.record_report(report(131, 0, &[]), 131));
    }

    #[test]
    fn a_restarted_receiver_revokes_no_reports() {
        let mut ledger = Ledger::default();
        assert!(ledger.record_report(report(5, 0, &[(DropReason::Air, 1)]), 10));
        ledger.gives_up(DropReason::PeerLost);
        let here = drops(&[(DropReason::PeerLost, 1)]);
        ledger.ends_session(10);
        let a = ledger.account(12, &here);
        balanced(&a);
        // Messages that it had not reported are lost; two more wait.
        assert_eq!(
            (a.delivered, a.dropped.count(DropReason::PeerLost), a.in_flight),
            (5, 4, 2)
        );
        assert!(
            !ledger.record_report(report(5, 0, &[]), 12),
            "only two were begun since"
        );
        assert!(ledger.record_report(report(2, 0, &[]), 12));
        let a = ledger.account(12, &here);
        balanced(&a);
        assert_eq!((a.delivered, a.in_flight), (7, 0));
    }
}
