//! The largest packet that fits the path to a peer, found by probes (RFC 8899).
//!
//! Nothing waits for the result: datagrams longer than the known size are sent in parts
//! ([`super::quic::parts`]). A search probes the largest size first, which fits nearly every path and costs
//! one packet, and then bisects the list of sizes. If packets above a size stop arriving while smaller ones
//! do, the smallest size applies at once, and a search starts (decision 070).

use std::time::{Duration, Instant};

/// UDP payload sizes, in bytes: those of the usual path MTUs (1500, 1492, 1480, 1440, 1420, 1400, 1300, 1280
/// and 576) over IPv4 and IPv6, and some in between.
const SIZES: [u16; 16] = [
    LEAST, 548, 760, 972, START, 1232, 1252, 1272, 1352, 1372, 1392, 1412, 1432, 1444, 1452, MOST,
];
/// The size that every host accepts over IPv4 (RFC 791: 576 bytes, 60 of them for IP and 8 for UDP).
pub(super) const LEAST: u16 = 508;
/// The size that QUIC requires of a path and starts with (RFC 9000, section 14).
pub(super) const START: u16 = 1200;
/// Ethernet's 1500 bytes minus IPv4 and UDP.
pub(super) const MOST: u16 = super::socket::MAX_PAYLOAD as u16;
/// Bytes by which a packet number may be longer than in the probe.
const GROWTH: u16 = 3;
/// Number of lost probes after which a size counts as too large (`MAX_PROBES` of RFC 8899).
const TRIES: u32 = 3;
/// Reordering tolerance: a packet may be overtaken by this much.
const REORDERED: Duration = Duration::from_millis(10);
/// Interval after which to try a larger size again (`PMTU_RAISE_TIMER` of RFC 8899 is ten minutes, but robots
/// move).
const RAISE: Duration = Duration::from_secs(60);
/// A size counts as too large after this many unanswered packets, if the first of them is this much older
/// than a smaller packet that arrived.
const HOLE: (u32, Duration) = (4, Duration::from_millis(200));

/// Packets of a size since the last acknowledgement of one of that size or larger.
#[derive(Clone, Copy, Debug, Default)]
struct Unanswered {
    first: Option<Instant>,
    count: u32,
}

/// A sent probe.
#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u64,
    bytes: u16,
    sent: Instant,
}

/// A change of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A search ended: this many bytes of payload fit.
    Found(u16),
    /// Packets of this many bytes no longer arrive.
    Hole(u16),
}

/// The path MTU of one connection.
#[derive(Debug)]
pub(super) struct PathMtu {
    /// Index of the largest size that fits.
    at: usize,
    /// Bytes of payload that fit.
    passes: u16,
    /// Index of the smallest size that is too large.
    above: usize,
    /// Index of the probed size, the number of its lost probes, and its last probe.
    asked: usize,
    lost: u32,
    probe: Option<Probe>,
    /// A probe is being made: the next packet is the probe.
    arming: bool,
    /// The last packet made is a probe.
    made: bool,
    /// When the next search starts; `None` during a search, or if searching is off.
    next: Option<Instant>,
    searches: bool,
    unanswered: [Unanswered; SIZES.len()],
    /// When the newest acknowledged packet was sent.
    acknowledged: Option<Instant>,
    news: Option<News>,
}

impl PathMtu {
    /// Starts with `size` bytes of payload, and stays there until [`PathMtu::search`].
    pub(super) fn new(size: u16) -> Self {
        PathMtu {
            at: index(size),
            passes: size,
            above: SIZES.len(),
            asked: SIZES.len() - 1,
            lost: 0,
            probe: None,
            arming: false,
            made: false,
            next: None,
            searches: false,
            unanswered: Default::default(),
            acknowledged: None,
            news: None,
        }
    }

    /// Starts to search.
    pub(super) fn search(&mut self, now: Instant) {
        self.searches = true;
        self.ask(SIZES.len(), now);
    }

    /// Bytes of payload that fit one packet.
    pub(super) fn passes(&self) -> u16 {
        self.passes
    }

    /// The size to make packets for.
    pub(super) fn size(&self) -> u16 {
        if self.searches {
            SIZES[self.at]
        } else {
            self.passes
        }
    }

    /// The latest change, returned once.
    pub(super) fn news(&mut self) -> Option<News> {
        self.news.take()
    }

    /// Searches for the largest size below the index `above`.
    fn ask(&mut self, above: usize, now: Instant) {
        self.above = above;
        self.asked = above - 1;
        self.lost = 0;
        self.probe = None;
        self.next = None;
        self.settle(now);
    }

    /// Ends the search if no size is left between the largest that fits and the smallest that does not.
    fn settle(&mut self, now: Instant) {
        if self.at + 1 < self.above {
            return;
        }
        self.probe = None;
        self.next = (self.at + 1 < SIZES.len()).then(|| now + RAISE);
        self.news = Some(News::Found(self.size()));
    }

    fn is_searching(&self) -> bool {
        self.searches && self.at + 1 < self.above
    }

    /// The size of a probe to send now, if any. Call it after processing acknowledgements.
    pub(super) fn due(&mut self, now: Instant, rtt: Duration) -> Option<u16> {
        self.look_for_hole(now);
        if self.next.is_some_and(|t| t <= now) {
            self.ask(SIZES.len(), now);
        }
        if !self.is_searching() {
            return None;
        }
        if let Some(probe) = self.probe {
            // A later packet arrived, so the path works.
            let overtaken = self.acknowledged.is_some_and(|t| t > probe.sent);
            let waited = now.saturating_duration_since(probe.sent);
            if !overtaken || waited < rtt + rtt / 8 + REORDERED {
                return None;
            }
            self.probe = None;
            self.lost += 1;
            if self.lost >= TRIES {
                self.is_too_large(self.asked, now);
                if !self.is_searching() {
                    return None;
                }
            }
        }
        Some(SIZES[self.asked])
    }

    /// When to call [`PathMtu::due`] again if no packet arrives.
    pub(super) fn next(&self, rtt: Duration) -> Option<Instant> {
        if !self.searches {
            return None;
        }
        let probe = self
            .probe
            .filter(|p| self.acknowledged.is_some_and(|t| t > p.sent));
        (probe.map(|p| p.sent + rtt + rtt / 8 + REORDERED)).or(self.next)
    }

    fn is_too_large(&mut self, size: usize, now: Instant) {
        self.above = self.above.min(size).max(self.at + 1);
        self.lost = 0;
        self.probe = None;
        self.asked = (self.at + self.above) / 2;
        self.settle(now);
    }

    /// Makes the next packet a probe.
    pub(super) fn arm(&mut self) {
        self.arming = true;
    }

    /// Cancels [`PathMtu::arm`] if no packet was made since.
    pub(super) fn disarm(&mut self) {
        self.arming = false;
    }

    /// Returns whether the last packet made is a probe, which must not be split.
    pub(super) fn made_probe(&mut self) -> bool {
        std::mem::take(&mut self.made)
    }

    /// This host itself refused to send this many bytes in one packet.
    pub(super) fn refused(&mut self, bytes: u16, now: Instant) {
        let size = (SIZES.iter().position(|s| *s + GROWTH >= bytes)).unwrap_or(SIZES.len() - 1);
        if size <= self.at {
            // The next smaller size may be too large as well; then it is refused in turn.
            self.at = size.saturating_sub(1);
            self.passes = SIZES[self.at];
            self.unanswered = Default::default();
        }
        self.is_too_large(size.max(1), now);
    }

    /// Packet `number` of this many bytes was made.
    pub(super) fn sent(&mut self, now: Instant, bytes: u16, number: u64) {
        // A packet that other content made longer would probe too much: it is sent in parts.
        if self.arming && bytes > self.passes && bytes <= SIZES[self.asked] {
            self.arming = false;
            self.made = true;
            self.probe = Some(Probe {
                number,
                bytes,
                sent: now,
            });
            return;
        }
        // A longer packet is sent in parts of the size that fits.
        let of = &mut self.unanswered[index(bytes.min(self.passes))];
        of.first.get_or_insert(now);
        of.count = of.count.saturating_add(1);
    }

    /// Packet `number` of this many bytes, sent at `sent`, arrived.
    pub(super) fn acked(&mut self, now: Instant, sent: Instant, bytes: u16, number: u64) {
        self.acknowledged = self.acknowledged.max(Some(sent));
        if let Some(probe) = self.probe.filter(|p| (p.number, p.bytes) == (number, bytes)) {
            self.probe = None;
            self.at = self.asked;
            self.passes = (probe.bytes + GROWTH).min(SIZES[self.at]);
            self.lost = 0;
            // A size that fits now may have failed by chance before, but not in this search.
            self.asked = (self.at + self.above) / 2;
            self.unanswered = Default::default();
            self.settle(now);
            return;
        }
        let size = index(bytes.min(self.passes));
        self.unanswered[..=size].fill(Unanswered::default());
    }

    fn look_for_hole(&mut self, now: Instant) {
        let Some(newest) = self.acknowledged.filter(|_| self.searches) else {
            return;
        };
        // Loss of the smallest size does not mean a hole, but the end of the radio's range.
        let is_hole = |u: &Unanswered| {
            u.count >= HOLE.0
                && u.first
                    .is_some_and(|t| newest.saturating_duration_since(t) >= HOLE.1)
        };
        if self.at == 0 || !self.unanswered[1..].iter().any(is_hole) {
            return;
        }
        let news = News::Hole(self.size());
        let before = self.at;
        self.at = 0;
        self.passes = LEAST;
        self.unanswered = Default::default();
        // If the hole was chance, the previous size still fits.
        self.ask(before + 1, now);
        self.news = Some(news);
    }
}

/// The index of the largest size that is at most `bytes`, or of the smallest.
fn index(bytes: u16) -> usize {
    SIZES.iter().rposition(|s| *s <= bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(20);

    /// A path that passes packets of up to this many bytes, and may lose others by chance.
    struct Path {
        mtu: PathMtu,
        hole: u16,
        now: Instant,
        number: u64,
        probes: u32,
        /// One packet in N is lost, by a fixed sequence.
        loses: u64,
    }

    impl Path {
        fn new(start: u16, hole: u16) -> Self {
            let mut mtu = PathMtu::new(start);
            mtu.search(Instant::now());
            Path {
                mtu,
                hole,
                now: Instant::now(),
                number: 0,
                probes: 0,
                loses: u64::MAX,
            }
        }

        fn packet(&mut self, bytes: u16) {
            self.number += 1;
            self.mtu.sent(self.now, bytes, self.number);
            let whole = self.mtu.made_probe();
            let largest = if whole {
                bytes
            } else {
                bytes.min(self.mtu.passes())
            };
            let by_chance = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            if largest <= self.hole && (self.loses == u64::MAX || !by_chance.is_multiple_of(self.loses)) {
                self.mtu.acked(self.now + RTT, self.now, bytes, self.number);
            }
        }

        /// Simulates a period in which packets of full size and small ones are sent every 10 ms.
        fn run(&mut self, time: Duration) {
            let end = self.now + time;
            while self.now < end {
                if let Some(size) = self.mtu.due(self.now, RTT) {
                    self.probes += 1;
                    self.mtu.arm();
                    self.packet(size - 8);
                }
                let full = self.mtu.size() - 8;
                self.packet(full);
                self.now += Duration::from_millis(10);
                self.packet(60);
            }
        }
    }

    #[test]
    fn an_ordinary_path_costs_one_probe() {
        let mut path = Path::new(START, 1472);
        path.run(Duration::from_secs(30));
        assert_eq!((path.mtu.size(), path.mtu.passes(), path.probes), (1472, 1467, 1));
        path.run(Duration::from_secs(3600));
        assert_eq!(path.probes, 1);
    }

    #[test]
    fn any_path_is_known_within_a_second() {
        for hole in LEAST..=MOST {
            for start in [LEAST, START].into_iter().filter(|s| *s <= hole) {
                let mut path = Path::new(start, hole);
                path.run(Duration::from_millis(900));
                let size = path.mtu.size();
                assert!(size <= hole + 8, "{size} of {hole} from {start}");
                let best = SIZES[index(hole)];
                assert!(size >= best, "{size} of {hole} from {start}");
                assert!(path.probes <= 1 + 4 * TRIES, "{} probes", path.probes);
                assert_eq!(path.mtu.news(), Some(News::Found(size)));
            }
        }
    }

    #[test]
    fn a_hole_that_opens_is_noticed_and_left_once_it_is_gone() {
        for hole in [560, 1000, 1252, 1400, 1460] {
            let mut path = Path::new(START, MOST);
            path.run(Duration::from_secs(1));
            path.hole = hole;
            path.run(Duration::from_millis(300));
            assert!(
                path.mtu.passes() <= hole + GROWTH,
                "{} of {hole}",
                path.mtu.passes()
            );
            path.run(Duration::from_millis(900));
            let size = path.mtu.size();
            assert!(size <= hole + 8 && size >= SIZES[index(hole)], "{size} of {hole}");
            path.hole = MOST;
            path.run(RAISE + Duration::from_secs(1));
            assert_eq!(path.mtu.size(), MOST);
        }
    }

    #[test]
    fn a_path_that_ends_or_loses_is_no_hole() {
        let mut path = Path::new(START, MOST);
        path.run(Duration::from_secs(1));
        path.hole = 0;
        path.run(Duration::from_secs(20));
        path.hole = MOST;
        path.run(Duration::from_millis(300));
        assert_eq!((path.mtu.size(), path.probes), (MOST, 1));
        path.loses = 3;
        let (mut small, mut all) = (0, 0);
        for _ in 0..1000 {
            path.run(Duration::from_millis(100));
            small += u32::from(path.mtu.size() < 1400);
            all += 1;
        }
        assert!(small * 50 < all, "{small} of {all} tenths of a second");
    }

    #[test]
    fn sizes_this_host_refuses_count_as_too_large_at_once() {
        let mut path = Path::new(START, MOST);
        path.mtu.refused(1194, path.now);
        assert!(path.mtu.passes() < 1194);
        let before = path.mtu.passes();
        path.run(Duration::from_millis(100));
        assert!(path.mtu.passes() >= before && path.mtu.passes() < 1194);
    }
}
