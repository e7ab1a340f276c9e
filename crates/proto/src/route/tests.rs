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
    // It advertises that it cannot reach the host any more.
    r.take(Time(2), A, &ways(2, &[(9, 0, 0)]), up);
    assert_eq!(next(&r, 9), Some(B));
    // A little better is not enough to change again, and much better is not enough soon after a change.
    r.take(Time(3), A, &ways(3, &[(9, 6, 1_000)]), up);
    assert_eq!(next(&r, 9), Some(B));
    let later = Time::ZERO + DWELL + Duration::from_millis(1);
    r.take(later, B, &ways(4, &[(9, 6, 8_000)]), up);
    r.take(later, A, &ways(4, &[(9, 6, 1_000)]), up);
    assert_eq!(next(&r, 9), Some(A));
    // Not repeated by anyone: dropped.
    let mut r = router();
    r.take(Time(1), A, &ways(1, &[(9, 5, 1_000)]), up);
    for ms in (100..=2_000).step_by(100) {
        r.tick(Time::from_millis(ms), up);
    }
    assert_eq!(next(&r, 9), None);
}

#[test]
fn routes_learned_from_here_do_not_lead_back() {
    let mut r = router();
    r.take(Time(1), A, &ways(1, &[(9, 5, 1_000)]), up);
    let sent = probe(&mut r, Time(2), B);
    assert_eq!(sent.entries.len(), 2, "{sent:?}");
    let own = sent.entries.iter().find(|e| e.host == 9).expect("is reported");
    assert_eq!((own.seq, own.cost), (5, 3_000));
    // B advertises what it received from here; A is lost.
    r.take(Time(3), B, &ways(1, &[(9, 5, 5_000)]), up);
    r.take(Time(4), A, &ways(2, &[(9, 0, 0)]), up);
    assert_eq!(next(&r, 9), None, "no loop by way of B");
    // A newer number comes from the host itself.
    r.take(Time(5), B, &ways(2, &[(9, 6, 9_000)]), up);
    assert_eq!(next(&r, 9), Some(B));
    // And a host that has restarted counts from scratch.
    r.take(Time(6), B, &ways(3, &[(9, 1 << 40, 9_000)]), up);
    assert_eq!(next(&r, 9), Some(B));
    // The end of a route is advertised once.
    let sent = probe(&mut r, Time(7), A);
    assert!(sent.entries.iter().any(|e| e.host == 9), "now it leads over B");
    r.take(Time(8), B, &ways(4, &[(9, 0, 0)]), up);
    let sent = probe(&mut r, Time(9), A);
    assert!(
        sent.entries.iter().any(|e| e.host == 9 && e.cost == 0),
        "{sent:?}"
    );
    let sent = probe(&mut r, Time(10), A);
    assert!(sent.entries.iter().all(|e| e.host != 9), "{sent:?}");
}

/// A probe is sent at `ms` milliseconds and answered 2 ms later.
fn answered(r: &mut Router, ms: u64) {
    let p = probe(r, Time::from_millis(ms), A);
    let answer = Ways {
        echo: p.serial,
        heard: 1,
        ..ways(1, &[])
    };
    r.take(Time::from_millis(ms + 2), A, &answer, up);
}

#[test]
fn this_hosts_sleep_is_not_a_neighbours_silence() {
    let mut r = router();
    answered(&mut r, 10);
    r.take(Time::from_millis(15), B, &ways(1, &[(9, 5, 1_000)]), up);
    r.tick(Time::from_millis(100), up);
    // Due at 200 ms at the latest.
    r.tick(Time::from_millis(5_000), up);
    assert_eq!((next(&r, 100), next(&r, 9)), (Some(A), Some(B)));
    // Then it is silent while this host is awake.
    let mut now = Time::from_millis(5_000);
    while now < Time::from_millis(5_400) {
        now = r.next_timeout(up);
        r.tick(now, up);
    }
    assert!(r.is_left(A));
}

#[test]
fn a_silent_neighbour_is_no_way_and_tables_are_bounded() {
    let mut r = router();
    let ms = Time::from_millis;
    answered(&mut r, 10);
    assert_eq!(next(&r, 100), Some(A));
    r.tick(ms(150), up);
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
    let sent = probe(&mut r, ms(340), A);
    assert!(sent.entries.len() <= (1_000 - Ways::ROOM) / ENTRY_ROOM);
    // Nonsense does no harm: answers to probes never sent, its own host, endless hops.
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
        // From the sixth on, every answer takes 6 ms; in the end half of the probes are lost.
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

#[test]
fn a_link_that_loses_datagrams_is_left_at_once_and_trusted_late() {
    let mut r = router();
    let ms = Time::from_millis;
    let model = AirtimeModel::wifi(6_000_000);
    let (mut round, mut heard) = (0u64, 0u64);
    // Both lead to 9, A at lower cost, B with newer numbers; a probe to A is answered or lost.
    let mut turn = |r: &mut Router, answers: bool| {
        round += 1;
        let now = ms(100 * round);
        r.tick(now, up);
        for (peer, count, cost) in [(A, round, 2_000), (B, round + 1, 6_000)] {
            let Some(p) = r.probe(now, peer, 1_000, &model, 1) else {
                continue;
            };
            let lost = peer == A && !answers;
            heard += u64::from(peer == A && answers);
            let answer = Ways {
                echo: if lost { 0 } else { p.serial },
                heard: if peer == A { heard } else { p.serial },
                ..ways(round, &[(9, count, cost)])
            };
            r.take(now + Duration::from_millis(1), peer, &answer, up);
        }
        now + Duration::from_millis(1)
    };
    let mut now = Time::ZERO;
    for _ in 0..6 {
        now = turn(&mut r, true);
    }
    assert_eq!(next(&r, 9), Some(A));
    // One loss in eight may be chance, and a late datagram is not lost.
    r.traffic(now, A, (7, 1), up);
    r.traffic(now, A, (2, 1), up);
    r.came_late(A);
    r.traffic(now, A, (0, 1), up);
    assert_eq!((next(&r, 9), r.is_left(A)), (Some(A), false));
    let changes = r.changes();
    r.traffic(now, A, (0, 1), up);
    assert_eq!((next(&r, 9), r.chosen(9), r.is_left(A)), (Some(B), Some(B), true));
    assert_eq!(next(&r, 100), Some(A), "there is no other way to it");
    // Answers to most of its probes are not enough to return.
    for i in 0..60 {
        turn(&mut r, i % 10 != 5);
        assert_eq!(next(&r, 9), Some(B), "{i}");
    }
    let mut trusted = 0;
    while next(&r, 9) == Some(B) {
        turn(&mut r, true);
        trusted += 1;
    }
    assert!((10..30).contains(&trusted), "{trusted}");
    assert_eq!(r.changes(), changes + 2);
}

#[test]
fn neighbours_that_answer_no_probes_are_judged_by_their_session_only() {
    let mut r = router();
    r.traffic(Time(1), A, (0, 8), up);
    assert_eq!((next(&r, 100), r.is_left(A)), (Some(A), false));
}

#[test]
fn silence_to_data_too_is_shorter_and_is_noticed_in_time() {
    let mut r = router();
    let ms = Time::from_millis;
    answered(&mut r, 10);
    let silent = |_| LinkState {
        silent: true,
        ..up(A)
    };
    r.tick(ms(150), up);
    assert_eq!(r.next_timeout(silent), ms(212));
    assert!(r.next_timeout(up) > ms(212));
    r.tick(ms(211), silent);
    assert!(!r.is_left(A));
    r.tick(ms(212), silent);
    assert!(r.is_left(A));
}

#[test]
fn a_way_that_is_doubted_is_left_at_once_and_taken_where_no_other_leads() {
    let mut r = router();
    r.take(Time(1), A, &ways(1, &[(9, 5, 1_000)]), up);
    r.take(Time(1), B, &ways(1, &[(9, 5, 8_000)]), up);
    assert_eq!(next(&r, 9), Some(A));
    let until = Time(3) + Duration::from_millis(150);
    r.doubt(Time(3), (9, A), until, up);
    assert_eq!(
        (next(&r, 9), next(&r, 100)),
        (Some(B), Some(A)),
        "to that host alone"
    );
    r.take(Time(4), B, &ways(2, &[(9, 0, 0)]), up);
    assert_eq!(next(&r, 9), Some(A), "better than none");
    // The route to the neighbour itself cannot be doubted: the carrier vouches for it.
    r.doubt(Time(5), (100, A), until, up);
    assert_eq!(r.way(100, |_| true, up).map(|w| w.cost_us), Some(2_000));
    r.tick(until + Duration::from_millis(1), up);
    assert_eq!(r.way(9, |_| true, up).map(|w| w.cost_us), Some(3_000));
}
