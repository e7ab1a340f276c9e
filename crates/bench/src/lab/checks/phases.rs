//! Scenarios that change while they run, at full length: the goodput of each phase, and a check that every packet is
//! accounted for.

use super::{Check, IP_BYTES, OWN};
use crate::kit::cell::{Params, Target, Timing, Values};
use crate::kit::error::RunError;
use crate::kit::site::Site;
use crate::kit::traffic::{PAYLOAD, Probing, probe};
use crate::lab::probe::Arrivals;
use medium::{Phy, Standard, theory};
use serde_json::json;
use std::time::Duration;

const ENDS: [&str; 2] = ["robot", "base"];
/// Duration of each rate in `drive-away`.
const PHASE: Duration = Duration::from_secs(20);
/// Excluded at both ends of a phase: the frame in the air, and the time between status and start.
const EDGE: Duration = Duration::from_secs(1);
/// `drive-away`'s rates in bit/s, and their names here.
const RATES: [(u64, &str, &str); 4] = [
    (6_000_000, "first_6_mbit_s", "first_6_ratio"),
    (2_000_000, "at_2_mbit_s", "at_2_ratio"),
    (1_000_000, "at_1_mbit_s", "at_1_ratio"),
    (6_000_000, "last_6_mbit_s", "last_6_ratio"),
];
/// An outage's length.
const OUTAGE_MS: f64 = 5000.0;

pub(super) fn rows() -> [Check; 3] {
    [drive_away(), outage("outage-5s"), outage("outage-5s-relay")]
}

/// More than the radio carries at 6 Mbit/s, for all four phases.
fn drive_away() -> Check {
    // 5.9 Mbit/s of payload, until a second before the end.
    const EVERY: Duration = Duration::from_millis(2);
    const COUNT: u32 = 39_500;
    let mut targets: Vec<Target> = RATES
        .iter()
        .map(|(.., ratio)| Target::about(ratio, 1.0, 0.03))
        .collect();
    targets.push(Target::exactly("uncounted_packets", 0.0));
    Check {
        system: "ropewalk",
        what: "goodput by phase",
        scenario: "drive-away",
        params: Params::from([
            ("packets".into(), json!(COUNT)),
            ("payload_bytes".into(), json!(PAYLOAD)),
            ("phase_s".into(), json!(PHASE.as_secs())),
        ]),
        targets,
        source: "Jun, Peddabachagari, Sichitiu (NCA 2003), at each phase's rate",
        needs_time: true,
        run: Box::new(|ground| {
            let site = Site::up(ground, "drive-away", None)?;
            let start = began(&site)?;
            let way = Probing {
                from: ENDS[0],
                to: ENDS[1],
                count: COUNT,
                every: EVERY,
                size: PAYLOAD,
                linger: Duration::from_secs(2),
            };
            let all = probe(&site, &[way])?;
            let mut values = Values::new();
            for (phase, (bits, goodput, ratio)) in (0..).zip(RATES) {
                let from = start + PHASE * phase + EDGE;
                let span = PHASE - EDGE * 2;
                let bytes = all[0].between(from.as_nanos() as u64, (from + span).as_nanos() as u64) * PAYLOAD;
                let mbit_s = bytes as f64 * 8.0 / span.as_secs_f64() / 1e6;
                let phy = Phy::of(Standard::G, bits, &[]).expect("a rate of the standard");
                let closed = theory::lone_sender(&phy, IP_BYTES, PAYLOAD) / 1e6;
                values.extend([(goodput, mbit_s), (ratio, mbit_s / closed)]);
            }
            account(&site, COUNT, &all[0], &mut values)
        }),
    }
}

/// Pound's laser through five seconds without radio (Table V).
fn outage(scenario: &'static str) -> Check {
    const EVERY: Duration = Duration::from_millis(20);
    const COUNT: u32 = 1_250;
    const BYTES: usize = 1_000;
    Check {
        system: "ropewalk",
        what: "outage",
        scenario,
        params: Params::from([
            ("packets".into(), json!(COUNT)),
            ("payload_bytes".into(), json!(BYTES)),
            ("period_ms".into(), json!(EVERY.as_millis() as u64)),
        ]),
        targets: vec![
            // The last packet before and the first after are up to a period away, plus the duration of a frame and its
            // retries.
            Target::within("silence_ms", OUTAGE_MS, OUTAGE_MS + 60.0),
            Target::exactly("lost_beside_the_outage_packets", 0.0),
            Target::exactly("uncounted_packets", 0.0),
        ],
        source: OWN,
        needs_time: true,
        run: Box::new(move |ground| {
            let site = Site::up(ground, scenario, None)?;
            let way = Probing {
                from: ENDS[0],
                to: ENDS[1],
                count: COUNT,
                every: EVERY,
                size: BYTES,
                linger: Duration::from_secs(5),
            };
            let all = probe(&site, &[way])?;
            let times = all[0].arrival_ns.windows(2).map(|w| w[1].saturating_sub(w[0]));
            let silence = times.max().unwrap_or_default() as f64 / 1e6;
            account(
                &site,
                COUNT,
                &all[0],
                &mut Values::from([("silence_ms", silence)]),
            )
        }),
    }
}

/// Returns when the lab's time began, by CLOCK_MONOTONIC, to some milliseconds.
fn began(site: &Site<'_>) -> Result<Duration, RunError> {
    let up = Duration::try_from_secs_f64(site.status()?.uptime_s).unwrap_or_default();
    Ok(clock::monotonic().since(stats::Time::ZERO).saturating_sub(up))
}

/// Accounts for every sent packet: received, or counted as lost with a reason.
fn account(
    site: &Site<'_>,
    sent: u32,
    arrivals: &Arrivals,
    values: &mut Values,
) -> Result<(Values, Timing), RunError> {
    let status = site.status()?;
    let mut drops = stats::Drops::default();
    let hosts = status.media.iter().flat_map(|m| &m.hosts);
    hosts.for_each(|h| drops.merge(&h.drops));
    let count = |reason| drops.count(reason) as f64;
    let (sent, received) = (f64::from(sent), arrivals.arrival_ns.len() as f64);
    let (outage, queue) = (
        count(stats::DropReason::Outage),
        count(stats::DropReason::DeviceQueue),
    );
    let all = drops.total() as f64;
    values.extend([
        ("sent_packets", sent),
        ("received_packets", received),
        ("lost_by_outage_packets", outage),
        ("lost_in_queue_packets", queue),
        ("lost_beside_the_outage_packets", all - outage),
        ("uncounted_packets", sent - received - all),
    ]);
    Ok((std::mem::take(values), Timing::of(&status)))
}
