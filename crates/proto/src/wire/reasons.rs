//! Drop reasons as numbers on the wire. The numbers never change; a new reason gets a new number.

use stats::DropReason;

const CODES: &[(u8, DropReason)] = &[
    (1, DropReason::QueueFull),
    (2, DropReason::HoldLimit),
    (3, DropReason::MemoryShort),
    (4, DropReason::PeerStalled),
    (5, DropReason::Replaced),
    (6, DropReason::Expired),
    (7, DropReason::Overflow),
    (8, DropReason::RateLimit),
    (9, DropReason::Unannounced),
    (10, DropReason::NoPeer),
    (11, DropReason::Incomplete),
    (12, DropReason::ReassemblyFull),
    (13, DropReason::ReceiverMemory),
    (14, DropReason::Duplicate),
    (15, DropReason::OutOfOrder),
    (16, DropReason::Malformed),
    (17, DropReason::TooLarge),
    (18, DropReason::Carrier),
    (19, DropReason::DeviceQueue),
    (20, DropReason::Air),
    (21, DropReason::PeerLost),
    (22, DropReason::PathLoss),
    (23, DropReason::Outage),
    (24, DropReason::OtherWay),
    (25, DropReason::Unsealed),
    (26, DropReason::Forged),
    (27, DropReason::NotTaken),
    (28, DropReason::Unwritten),
    (29, DropReason::Unwatched),
];

/// The number of `reason`; 0 for one that has none in this version.
pub(crate) fn code(reason: DropReason) -> u8 {
    CODES.iter().find(|(_, r)| *r == reason).map_or(0, |(c, _)| *c)
}

/// The reason of `code`. An unknown number, from a later version, counts as the least specific reason.
pub(crate) fn reason(code: u8) -> DropReason {
    CODES
        .iter()
        .find(|(c, _)| *c == code)
        .map_or(DropReason::Carrier, |(_, r)| *r)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_number() {
        for r in DropReason::ALL {
            assert_ne!(
                code(*r),
                0,
                "{r} has no number on the wire: give it the next free one"
            );
            assert_eq!(reason(code(*r)), *r);
        }
        assert!(CODES.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
