//! Why a load was too much, from the counters.

use super::measured::{DELIVERY, Measured, SCHEDULE};

/// A thread, a medium or all processors that are used so much are at their end.
const THREAD: f64 = 0.9;
const WIRE: f64 = 0.9;
/// A channel is never busy all the time: who waits for it backs off first.
const AIR: f64 = 0.97;
const HOST: f64 = 0.93;
/// A link in which so many messages waited has more to send than goes through.
const HELD: u64 = 8;
/// Who used at least this share of what all used is named.
const PART: f64 = 0.2;

/// What was seen, and what was at its end, in one line.
pub(super) fn of(run: &Measured) -> String {
    let mut ends = Vec::new();
    match &run.wire {
        Some(w) if w.wanted >= AIR => ends.push(format!(
            "air: in use or waited for {} of the time (busy {}, {} collisions)",
            percent(w.wanted),
            percent(w.busy),
            w.collisions
        )),
        Some(w) if w.busy >= WIRE => ends.push(format!("wire: busy {}", percent(w.busy))),
        _ => {}
    }
    let all: f64 = run.cpu_s.values().sum();
    if run.host_busy >= HOST {
        let parts = run.cpu_s.iter().filter(|(_, s)| **s >= all * PART);
        let mut parts: Vec<_> = parts
            .map(|(part, s)| (part.as_str(), s / all.max(1e-9)))
            .collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<_> = parts
            .iter()
            .map(|(part, share)| format!("{part} {}", percent(*share)))
            .collect();
        ends.push(format!(
            "cpu: all processors busy {} (of it {})",
            percent(run.host_busy),
            parts.join(", ")
        ));
    }
    if let Some(busiest) = run.busiest.as_ref().filter(|b| b.share >= THREAD) {
        ends.push(format!(
            "cpu: {}'s thread {} uses {} of a processor",
            busiest.part,
            busiest.thread,
            percent(busiest.share)
        ));
    }
    if run.refused > 0 {
        ends.push(format!("memory: {} messages refused", run.refused));
    }
    // Fewer than what would be too many are no cause.
    let counts = |n: u64| n as f64 > (1.0 - DELIVERY) * run.all as f64;
    let mut drops: Vec<_> = run.drops.iter().filter(|(_, n)| counts(**n)).collect();
    drops.sort_by(|a, b| b.1.cmp(a.1));
    if let Some((name, n)) = drops.first() {
        ends.push(format!("drops: {name} {n}"));
    }
    // Where it leaves the air to others, that is not in use all the time.
    if ends.is_empty()
        && let Some(held) = run.held.as_ref().filter(|h| h.messages >= HELD)
    {
        let used = run.wire.as_ref().map(|w| w.busy.max(w.wanted));
        ends.push(format!(
            "queue: {} messages waited for their turn in {}'s link{}",
            held.messages,
            held.host,
            used.map_or(String::new(), |u| format!(
                ", of a medium in use {} of the time",
                percent(u)
            ))
        ));
    }
    if ends.is_empty() {
        ends.push(
            "nothing that is counted here was at its end: queues and waits inside of the system".into(),
        );
    }
    format!("{}; {}", ends.join("; "), symptom(run))
}

/// What made it too much.
fn symptom(run: &Measured) -> String {
    let delivery = run.trips.delivery();
    if run.schedule < SCHEDULE {
        return format!("seen as {} of the schedule sent", percent(run.schedule));
    }
    match run.trips.mean_ms {
        _ if delivery < DELIVERY => format!("seen as {:.2} % delivered", delivery * 100.0),
        Some(mean) => format!(
            "seen as a mean of {mean:.1} ms, {:.1} at the end",
            run.trips.tail_ms.unwrap_or(mean)
        ),
        None => "seen as nothing back".into(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::measured::{Busiest, Held, Wire, example};
    use super::*;

    #[test]
    fn what_is_at_its_end_is_named_first() {
        let mut run = example(150.0, 0);
        assert!(of(&run).starts_with("nothing that is counted") && of(&run).contains("150.0 ms"));
        let held = |messages| Held {
            host: "h1".into(),
            bytes: 4_250 * messages,
            messages,
        };
        run.held = Some(held(7));
        assert!(of(&run).starts_with("nothing that is counted"));
        run.held = Some(held(12));
        assert!(of(&run).starts_with("queue: 12 messages waited for their turn in h1's link; seen"));
        run.host_busy = 0.99;
        run.busiest = Some(Busiest {
            part: "echo".into(),
            thread: "python3".into(),
            share: 0.97,
        });
        run.drops = [
            ("echo: queue_full".to_owned(), 7),
            ("link: expired".to_owned(), 0),
        ]
        .into();
        let text = of(&run);
        for part in [
            "all processors busy 99 %",
            "sender 67 %",
            "echo's thread python3 uses 97 %",
            "drops: echo: queue_full 7",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        run.wire = Some(Wire {
            busy: 0.98,
            ..Wire::default()
        });
        assert!(of(&run).starts_with("wire: busy 98 %"));
        run.wire = Some(Wire {
            busy: 0.86,
            wanted: 0.99,
            collisions: 7,
            ..Wire::default()
        });
        let air = "air: in use or waited for 99 % of the time (busy 86 %, 7 collisions)";
        assert!(of(&run).starts_with(air));
        run.drops = [("link: no_peer".to_owned(), 1)].into();
        assert!(!of(&run).contains("drops"), "one of {}: {}", run.all, of(&run));
        run.schedule = 0.5;
        assert!(of(&run).ends_with("50 % of the schedule sent"));
        run.schedule = 1.0;
        run.trips.censored = 500;
        assert!(of(&run).ends_with("50.00 % delivered"));
    }
}
