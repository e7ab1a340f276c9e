//! The cause why a load was too high, from the counters.

use super::measured::{Busiest, DELIVERY, InSockets, Measured, SCHEDULE};
use super::point::Point;

/// A thread, a medium or all processors with this usage are at their limit.
const THREAD: f64 = 0.9;
/// A thread that waited for a processor for less than this was not limited by it.
const WAITED: f64 = 0.05;
const WIRE: f64 = 0.9;
/// A channel is never busy all the time, because senders back off first.
const AIR: f64 = 0.97;
const HOST: f64 = 0.93;
/// If this many messages waited, more arrived than were sent on.
const HELD: u64 = 8;
/// If it is this share of a round trip, airtime is the cause of the delay.
const TRIP: f64 = 0.5;
/// A part that used at least this share of the total is named.
const PART: f64 = 0.2;

/// Returns the resources at their limit and the symptom, in one line.
pub(super) fn of(run: &Measured, point: &Point) -> String {
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
    // Each host of a lab has its own share of the same processors.
    let share = (point.cpu_share * f64::from(point.hosts)).min(1.0);
    if run.host_busy >= HOST * share {
        let parts = run.cpu_s.iter().filter(|(_, s)| **s >= all * PART);
        let mut parts: Vec<_> = parts
            .map(|(part, s)| (part.as_str(), s / all.max(1e-9)))
            .collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<_> = parts
            .iter()
            .map(|(part, share)| format!("{part} {}", percent(*share)))
            .collect();
        let given = match share {
            1.0 => String::new(),
            share => format!(", of {} that it may use", percent(share)),
        };
        ends.push(format!(
            "cpu: all processors busy {}{given} (of it {})",
            percent(run.host_busy),
            parts.join(", ")
        ));
    }
    if let Some(busiest) = run.busiest.as_ref().filter(|b| b.wanted() >= THREAD) {
        ends.push(thread(busiest));
    }
    if run.refused > 0 {
        ends.push(format!("memory: {} messages refused", run.refused));
    }
    let mut drops: Vec<_> = run.drops.iter().filter(|(_, n)| too_many(run, **n)).collect();
    drops.sort_by(|a, b| b.1.cmp(a.1));
    if let Some((name, n)) = drops.first() {
        ends.push(format!("drops: {name} {n}"));
    }
    // The following resources are not busy all the time, since a link leaves air to others.
    if ends.is_empty() {
        ends.extend(on_the_air(run, point));
    }
    if ends.is_empty() {
        ends.extend(waiting(run, point));
    }
    if ends.is_empty() {
        ends.push("nothing that is counted here was at its limit: queues and waits inside the system".into());
    }
    format!("{}; {}", ends.join("; "), symptom(run))
}

/// A cause has at least as many losses as make the delivery too low.
fn too_many(run: &Measured, n: u64) -> bool {
    n as f64 > (1.0 - DELIVERY) * run.all as f64
}

fn thread(busiest: &Busiest) -> String {
    let waited = if busiest.waiting_share < WAITED {
        String::new()
    } else {
        format!(
            " and waited for one {} of the time",
            percent(busiest.waiting_share)
        )
    };
    format!(
        "cpu: {}'s thread {} uses {} of a processor{waited}",
        busiest.part,
        busiest.thread,
        percent(busiest.share)
    )
}

/// A message and its answer that alone take too long.
fn on_the_air(run: &Measured, point: &Point) -> Option<String> {
    let wire = run.wire.as_ref().filter(|w| w.wanted > 0.0)?;
    let ms = wire.busy / (point.messages_per_s() * run.schedule).max(1e-9) * 1e3;
    let long = run.trips.mean_ms.is_some_and(|mean| ms >= mean * TRIP);
    long.then(|| format!("air: a message and its answer take {ms:.0} ms of it"))
}

/// Messages that wait for their turn: in a link, or else in sockets.
fn waiting(run: &Measured, point: &Point) -> Option<String> {
    let used = run.wire.as_ref().map(|w| w.busy.max(w.wanted));
    let used = used.map_or(String::new(), |u| {
        format!(", of a medium in use {} of the time", percent(u))
    });
    if let Some(held) = run.held.as_ref().filter(|h| h.messages >= HELD) {
        let (n, host) = (held.messages, &held.host);
        return Some(format!(
            "queue: {n} messages waited for their turn in {host}'s link{used}"
        ));
    }
    let mut lost = [
        (run.lost.datagrams, "datagrams arrived at full sockets"),
        (run.lost.frames, "frames arrived at full devices"),
        (
            run.lost.fragments,
            "fragments belonged to datagrams that could not be reassembled",
        ),
    ];
    lost.sort_by_key(|(n, _)| *n);
    let [.., (n, what)] = lost;
    if too_many(run, n) {
        return Some(format!("drops: {n} {what}"));
    }
    let messages = |s: &InSockets| s.most() / point.bytes.max(1);
    let sockets = run.sockets.as_ref().filter(|s| messages(s) >= HELD)?;
    let (n, part) = (messages(sockets), &sockets.part);
    Some(if sockets.to_read >= sockets.to_send {
        format!("queue: the bytes of {n} messages waited in sockets until {part} read them")
    } else {
        format!("queue: the bytes of {n} messages that {part} sent waited in its sockets{used}")
    })
}

/// Returns the symptom of the excessive load.
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
    use super::super::measured::{Held, Wire, example};
    use super::super::point;
    use super::*;

    fn of(run: &Measured) -> String {
        super::of(run, &point::example())
    }

    #[test]
    fn exhausted_resources_are_named_first() {
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
            waiting_share: 0.02,
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
            "echo's thread python3 uses 97 % of a processor;",
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

    #[test]
    fn a_thread_that_waits_for_a_processor_wants_it() {
        let mut run = example(150.0, 0);
        let busiest = |waiting_share| Busiest {
            part: "link".into(),
            thread: "tx".into(),
            share: 0.5,
            waiting_share,
        };
        run.busiest = Some(busiest(0.3));
        assert!(of(&run).starts_with("nothing that is counted"));
        run.busiest = Some(busiest(0.41));
        let cause = "cpu: link's thread tx uses 50 % of a processor and waited for one 41 % of the time; ";
        assert!(of(&run).starts_with(cause));
    }

    #[test]
    fn a_quota_is_all_that_there_is() {
        let mut run = example(150.0, 0);
        run.host_busy = 0.49;
        let half = Point {
            cpu_share: 0.5,
            ..point::example()
        };
        let text = super::of(&run, &half);
        assert!(
            text.starts_with("cpu: all processors busy 49 %, of 50 % that it may use"),
            "{text}"
        );
        let hosts = Point { hosts: 2, ..half };
        assert!(super::of(&run, &hosts).starts_with("nothing that is counted"));
    }

    #[test]
    fn messages_waiting_in_sockets_or_on_the_air_are_named() {
        let mut run = example(150.0, 0);
        let sockets = |to_send: u64, to_read: u64| {
            Some(InSockets {
                part: "sender".into(),
                to_send: to_send * 4_250,
                to_read: to_read * 4_250,
            })
        };
        run.sockets = sockets(7, 7);
        assert!(of(&run).starts_with("nothing that is counted"));
        run.sockets = sockets(7, 9);
        let read = "queue: the bytes of 9 messages waited in sockets until sender read them; ";
        assert!(of(&run).starts_with(read), "{}", of(&run));
        run.sockets = sockets(90, 9);
        run.wire = Some(Wire {
            busy: 0.83,
            ..Wire::default()
        });
        let sent = "queue: the bytes of 90 messages that sender sent waited in its sockets, of a medium in use 83 % of the time; ";
        assert!(of(&run).starts_with(sent), "{}", of(&run));
        run.lost.datagrams = 1;
        assert!(of(&run).starts_with("queue: "));
        run.lost.frames = 2;
        let frames = "drops: 2 frames arrived at full devices; ";
        assert!(of(&run).starts_with(frames), "{}", of(&run));
        run.lost.frames = 0;
        // 400 messages per second have 2 ms each.
        run.wire = Some(Wire {
            busy: 0.8,
            wanted: 0.8,
            ..Wire::default()
        });
        assert!(of(&run).starts_with("queue: "));
        run.trips.mean_ms = Some(4.0);
        assert!(of(&run).starts_with("air: a message and its answer take 2 ms of it; "));
    }
}
