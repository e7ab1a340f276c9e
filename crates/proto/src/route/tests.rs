use super::*;

const A: PeerId = PeerId(0);
const B: PeerId = PeerId(1);
const FULL: Duration = Duration::from_millis(2);

fn up(_: PeerId) -> LinkState {
    LinkState {
        up: true,
        silent: false,
        full: FULL,
    }
}

fn ways(seq: u64, entries: &[(u64, u64, u64)]) -> Ways {
    Ways {
        serial: seq,
        echo: 0,
        heard: 0,
        held: 0,
        seq,
        entries: entries
            .iter()
            .map(|(host, seq, cost)| Entry {
                host: *host,
                seq: *seq,
                cost: *cost,
                hops: 1,
            })
            .collect(),
    }
}

/// A relay with the neighbours 100 (A) and 200 (B).
fn router() -> Router {
    let config = RouteConfig {
        relay: true,
        ..RouteConfig::default()
    };
    let mut r = Router::new(config, 1, 7);
    r.add(Time::ZERO, A, 100);
    r.add(Time::ZERO, B, 200);
    r.tick(Time::ZERO, up);
    r
}

fn next(r: &Router, host: u64) -> Option<PeerId> {
    r.way(host, |_| true, up).map(|w| w.next)
}

fn probe(r: &mut Router, now: Time, peer: PeerId) -> Ways {
    r.turned(now, peer, up);
    let model = AirtimeModel::wifi(6_000_000);
    r.probe(now, peer, 1_000, &model, 1).expect("a probe is due")
}

#[test]
fn the_cheaper_way_is_taken_and_left_when_it_ends() {
    let mut r = router();
    r.take(Time(1), A, &ways(1, &[(9, 5, 1_000)]), up);
    r.take(Time(1), B, &ways(1, &[(9, 5, 8_000)]), up);
    assert_eq!(
        (next(&r, 9), next(&r, 100), next(&r, 200)),
        (Some(A), Some(A), Some(B))
    );
    assert_eq!(
        r.way(9, |_| true, up).map(|w| (w.hops, w.cost_us)),
        Some((2, 3_000))
    );
    // It says that it cannot reach the host any more.
    r.take(Time(2), A, &ways(2, &[(9, 0, 0)]), up);
    assert_eq!(next(&r, 9), Some(B));
    // A little better is not enough to change again, and much better is not soon after a change.
    r.take(Time(3), A, &ways(3, &[(9, 6, 1_000)]), up);
    assert_eq!(next(&r, 9), Some(B));
    let later = Time::ZERO + DWELL + Duration::from_millis(1);
    r.take(later, B, &ways(4, &[(9, 6, 8_000)]), up);
    r.take(later, A, &ways(4, &[(9, 6, 1_000)]), up);
    assert_eq!(next(&r, 9), Some(A));
    // Nobody repeats it: forgotten.
    let mut r = router();
    r.take(Time(1), A, &ways(1, &[(9, 5, 1_000)]), up);
    r.tick(Time::ZERO + EXPIRY + EXPIRY, up);
    assert_eq!(next(&r, 9), None);
}

#[test]
fn what_came_from_here_does_not_lead_back() {
    let mut r = router();
    r.take(Time(1), A, &ways(1, &[(9, 5, 1_000)]), up);
    let told = probe(&mut r, Time(2), B);
    assert_eq!(told.entries.len(), 2, "{told:?}");
    let own = told.entries.iter().find(|e| e.host == 9).expect("is told");
    assert_eq!((own.seq, own.cost), (5, 3_000));
    // B tells of it with what it heard from here; A is lost.
    r.take(Time(3), B, &ways(1, &[(9, 5, 5_000)]), up);
    r.take(Time(4), A, &ways(2, &[(9, 0, 0)]), up);
    assert_eq!(next(&r, 9), None, "no loop by way of B");
    // What is newer comes from the host itself.
    r.take(Time(5), B, &ways(2, &[(9, 6, 9_000)]), up);
    assert_eq!(next(&r, 9), Some(B));
    // And a host that was started anew counts anew.
    r.take(Time(6), B, &ways(3, &[(9, 1 << 40, 9_000)]), up);
    assert_eq!(next(&r, 9), Some(B));
    // What ended is told, once.
    let told = probe(&mut r, Time(7), A);
    assert!(told.entries.iter().any(|e| e.host == 9), "now it leads over B");
    r.take(Time(8), B, &ways(4, &[(9, 0, 0)]), up);
    let told = probe(&mut r, Time(9), A);
    assert!(
        told.entries.iter().any(|e| e.host == 9 && e.cost == 0),
        "{told:?}"
    );
    let told = probe(&mut r, Time(10), A);
    assert!(told.entries.iter().all(|e| e.host != 9), "{told:?}");
}

#[test]
fn a_silent_neighbour_is_no_way_and_tables_are_bounded() {
    let mut r = router();
    let ms = Time::from_millis;
    let p = probe(&mut r, ms(10), A);
    let answer = Ways {
        echo: p.serial,
        heard: 1,
        ..ways(1, &[])
    };
    r.take(ms(12), A, &answer, up);
    assert_eq!(next(&r, 100), Some(A));
    r.tick(ms(320), up);
    assert_eq!(next(&r, 100), None, "it answered for 300 ms nothing");
    assert_eq!(
        next(&r, 200),
        Some(B),
        "one that never answered does not find ways"
    );
    let many: Vec<_> = (0..64).map(|i| (1_000 + i, 5, 100)).collect();
    for i in 0..20 {
        let shifted: Vec<_> = many.iter().map(|(h, s, c)| (h + 64 * i, *s, *c)).collect();
        r.take(ms(330), B, &ways(i + 2, &shifted), up);
    }
    assert!(r.ways().count() <= 2 * MAX_HOSTS);
    let told = probe(&mut r, ms(340), A);
    assert!(told.entries.len() <= (1_000 - Ways::ROOM) / ENTRY_ROOM);
    // Nonsense does no harm: answers to what was never sent, its own host, endless hops.
    let wrong = Ways {
        echo: u64::MAX,
        heard: u64::MAX,
        held: u64::MAX,
        serial: u64::MAX,
        seq: u64::MAX,
        entries: vec![Entry {
            host: 1,
            seq: u64::MAX,
            cost: u64::MAX,
            hops: 255,
        }],
    };
    r.take(ms(350), B, &wrong, up);
    r.take(ms(351), PeerId(9), &wrong, up);
    assert_eq!(next(&r, 1), None);
}

#[test]
fn lost_probes_and_slow_answers_make_a_link_dear() {
    let mut r = router();
    let ms = Time::from_millis;
    let cost = |r: &Router| r.way(100, |_| true, up).map(|w| w.cost_us);
    assert_eq!(cost(&r), Some(2_000));
    let model = AirtimeModel::wifi(6_000_000);
    let mut heard = 0;
    for i in 0..12u64 {
        r.tick(ms(100 * i + 100), up);
        let p = r.probe(ms(100 * i + 100), A, 1_000, &model, 1).expect("is due");
        // From the sixth on, every answer takes 6 ms; in the end half the probes are lost.
        if i >= 9 && i % 2 == 1 {
            continue;
        }
        heard += 1;
        let answer = Ways {
            echo: p.serial,
            heard,
            ..ways(i + 1, &[])
        };
        let trip = if i < 6 { 1 } else { 6 };
        r.take(ms(100 * i + 100 + trip), A, &answer, up);
        match i {
            5 => assert!(cost(&r).is_some_and(|c| c < 4_000), "{:?}", cost(&r)),
            8 => assert!(cost(&r).is_some_and(|c| c > 6_000), "{:?}", cost(&r)),
            _ => {}
        }
    }
    assert!(cost(&r).is_some_and(|c| c > 8_000), "{:?}", cost(&r));
}
