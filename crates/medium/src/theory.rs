//! Closed forms from the 802.11 literature, to compare the model's and the lab's figures with.
//!
//! All rates are in bit/s of `payload` (what a program sends), for IP packets of `ip_bytes` (decision 050).

use crate::edca::Contention;
use crate::phy::Phy;

/// Throughput of one lone saturated sender over a perfect link: Jun, Peddabachagari, Sichitiu, "Theoretical maximum
/// throughput of IEEE 802.11 and its applications" (NCA 2003).
pub fn lone_sender(phy: &Phy, ip_bytes: usize, payload: usize) -> f64 {
    bits(payload) / phy.frame_airtime(ip_bytes).as_secs_f64()
}

/// The same if each frame is lost with probability `loss` and retried `retries` times: every attempt costs the exchange
/// and the mean back-off of its window, and all but `loss^(retries + 1)` of the packets arrive.
pub fn lone_sender_with_loss(phy: &Phy, ip_bytes: usize, payload: usize, loss: f64, retries: u8) -> f64 {
    let rules = Contention::dcf(phy.standard());
    let (mut cost, mut reached) = (0.0, 1.0);
    for try_ in 0..=retries {
        let mean = rules.slot.as_secs_f64() * (window(&rules, try_) - 1.0) / 2.0;
        cost += reached * (rules.space + phy.exchange(ip_bytes)).as_secs_f64() + reached * mean;
        reached *= loss;
    }
    bits(payload) * (1.0 - reached) / cost
}

/// Bound on TCP over one hop: a lone exchange for each segment of 1500 B, and one for each second segment's
/// acknowledgement (RFC 5681, section 4.2) of 52 B. The two ends collide, so no TCP reaches it.
pub fn tcp_bound(phy: &Phy) -> f64 {
    let cost = phy.frame_airtime(1500) * 2 + phy.frame_airtime(52);
    bits(2 * 1448) / cost.as_secs_f64()
}

/// `stations` saturated senders that all hear each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// Probability that a station transmits in a slot.
    pub tau: f64,
    /// Probability that a transmission collides.
    pub collision: f64,
    /// Payload of all stations together, in bit/s.
    pub total: f64,
}

/// Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function" (JSAC 2000), with
/// the limit of retries of Wu, Peng, Long, Cheng, Ma, "Performance of reliable transport protocol over IEEE
/// 802.11 wireless LAN" (INFOCOM 2002).
///
/// The Markov chain is solved for the mean number of attempts and of slots of a frame, as in Kumar, Altman, Miorandi,
/// Goyal, "New insights from a fixed-point analysis of single cell IEEE 802.11 WLANs" (ToN 2007). A collision lasts as
/// long as a success: the senders wait in vain for an acknowledgement.
pub fn saturated(phy: &Phy, stations: u32, ip_bytes: usize, payload: usize, retries: u8) -> Saturation {
    let rules = Contention::dcf(phy.standard());
    let others = f64::from(stations.saturating_sub(1));
    let tau_of = |p: f64| {
        let (mut tries, mut slots, mut reached) = (0.0, 0.0, 1.0);
        for try_ in 0..=retries {
            tries += reached;
            slots += reached * (window(&rules, try_) + 1.0) / 2.0;
            reached *= p;
        }
        tries / slots
    };
    // The more frames collide, the fewer are sent: the two curves cross once.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let p = (low + high) / 2.0;
        if 1.0 - (1.0 - tau_of(p)).powf(others) > p {
            low = p;
        } else {
            high = p;
        }
    }
    let (collision, tau) = (low, tau_of(low));
    let busy = 1.0 - (1.0 - tau).powf(others + 1.0);
    let success = (others + 1.0) * tau * (1.0 - tau).powf(others);
    let cycle = (1.0 - busy) * rules.slot.as_secs_f64() + busy * exchange_and_space(phy, &rules, ip_bytes);
    Saturation {
        tau,
        collision,
        total: bits(payload) * success / cycle,
    }
}

/// Throughput of a chain of two hops whose source is saturated and whose hosts all hear each other.
///
/// Source and relay contend as two saturated stations do ([`saturated`]). By the fairness of the back-off the relay
/// gets as many turns as it gets frames, so its queue neither empties nor grows for long, and each packet takes two
/// turns (Li, Blake, De Couto, Lee, Morris, "Capacity of ad hoc wireless networks", MobiCom 2001: neighbours in a chain
/// share one channel).
pub fn two_hop_chain(phy: &Phy, ip_bytes: usize, payload: usize, retries: u8) -> f64 {
    saturated(phy, 2, ip_bytes, payload, retries).total / 2.0
}

fn exchange_and_space(phy: &Phy, rules: &Contention, ip_bytes: usize) -> f64 {
    (phy.exchange(ip_bytes) + rules.space).as_secs_f64()
}

/// Number of values that the back-off of an attempt can take.
fn window(rules: &Contention, try_: u8) -> f64 {
    let first = u64::from(rules.cw_min) + 1;
    let widened = first.checked_shl(u32::from(try_)).unwrap_or(u64::MAX);
    widened.min(u64::from(rules.cw_max) + 1) as f64
}

fn bits(bytes: usize) -> f64 {
    bytes as f64 * 8.0
}
