use super::*;
use crate::config::PeerId;
use crate::wire::{Beat, Claim};

const AIR: Duration = Duration::from_millis(2);
const PEER: PeerId = PeerId(0);
/// The peer, which is host 9.
const NINE: Speaker = Speaker { peer: PEER, host: 9 };

fn share() -> Share {
    Share::new(1, 1, true, 0.1, &[])
}

fn claim(host: u32, priority: u8) -> Claim {
    Claim {
        host,
        priority,
        demand_ms: 255,
        age_ms: 0,
    }
}

#[test]
fn the_less_important_keeps_its_least_share_and_the_important_all() {
    let mut s = share();
    let t = Time::from_millis(1_000);
    s.table.claim(t, NINE, &claim(9, 50));
    s.charge(t, 50, AIR);
    let half = s.gate(t, 50).expect("an equal has its half");
    assert!(half.since(t) <= AIR * 2);
    let mut s = share();
    s.table.claim(t, NINE, &claim(9, 50));
    s.charge(t, 10, AIR);
    assert_eq!(s.gate(t, 51), None);
    let gate = s.gate(t, 10).expect("yields");
    assert!(
        (AIR * 9..=AIR * 10).contains(&gate.since(t)),
        "{:?}",
        gate.since(t)
    );
    assert_eq!(
        s.gate(t + Duration::from_millis(200), 10),
        None,
        "it was not renewed"
    );
    let mut s = Share::new(1, 1, false, 0.1, &[]);
    s.table.claim(t, NINE, &claim(9, 50));
    s.charge(t, 10, AIR);
    assert_eq!(s.gate(t, 10), None, "it is configured not to yield");
}

/// Sends datagrams of this priority whenever possible, for two seconds, alongside three peers that claim all they
/// can every 20 ms; returns the share of the air that it took.
fn beside_liars(priority: u8, lies: impl Fn(&mut Table, Speaker, Time)) -> f64 {
    let mut s = share();
    let start = Time::from_millis(1_000);
    let (mut now, mut sent, mut lied) = (start, Duration::ZERO, Time::ZERO);
    while now < start + Duration::from_secs(2) {
        if now >= lied + Duration::from_millis(20) {
            lied = now;
            for n in 0..3 {
                let (peer, host) = (PeerId(n), 2 + n);
                lies(&mut s.table, Speaker { peer, host }, now);
            }
            s.expire(now);
        }
        let foreseen = s.foreseen(now, priority).is_some_and(|f| f.from < now + AIR);
        if s.gate(now, priority).is_some() || foreseen {
            s.holds(now, priority, AIR);
            now += Duration::from_micros(500);
        } else {
            s.goes(now, priority, AIR, AIR);
            s.charge(now, priority, AIR);
            sent += AIR;
            now += AIR;
        }
    }
    sent.div_duration_f64(now.since(start))
}

#[test]
fn whatever_others_say_the_least_share_is_left() {
    let claims = |priority: u8| {
        move |table: &mut Table, by: Speaker, now: Time| {
            for host in 0..12 {
                table.claim(now, by, &claim(by.host + 10 * host, priority));
            }
        }
    };
    let rhythms = |table: &mut Table, by: Speaker, now: Time| {
        for n in 0..16u32 {
            let beat = Beat {
                host: by.host + 10 * (n % 10),
                priority: 120 + (n % 8) as u8,
                at: 0,
                period: 5_000,
                air: 2_500,
                spread: 1_000,
                age_ms: 0,
            };
            let next = now + Duration::from_micros(u64::from(n) * 130);
            table.rhythm(now, by, &beat, 0, next, Duration::ZERO);
        }
    };
    let all = |table: &mut Table, by: Speaker, now: Time| {
        claims(127)(table, by, now);
        rhythms(table, by, now);
    };
    let more = beside_liars(10, claims(127));
    let equal = beside_liars(50, claims(50));
    let foreseen = beside_liars(119, rhythms);
    let both = beside_liars(10, all);
    println!("{more} {equal} {foreseen} {both}");
    for share in [more, equal, foreseen, both] {
        assert!((0.094..0.3).contains(&share), "{more} {equal} {foreseen} {both}");
    }
}

#[test]
fn no_host_speaks_for_another_or_displaces_its_claims() {
    let (t, ms) = (Time::from_millis(1_000), Duration::from_millis);
    let mut table = Table::new(1);
    let liar = Speaker {
        peer: PeerId(1),
        host: 7,
    };
    table.claim(t, NINE, &claim(9, 50));
    table.took(t, 9, AIR * 20);
    for host in 10..10_000 {
        table.claim(t + ms(1), liar, &claim(host, 0));
    }
    assert_eq!(table.contenders(t + ms(1), 30, false).0, 1, "its own word holds");
    assert!(table.claimants(t + ms(1)) <= 10);
    table.claim(t + ms(1), liar, &claim(9, 127));
    assert_eq!(
        table.contenders(t + ms(1), 60, false),
        (0, 0),
        "another's does not"
    );
    let reported = table.claims_for(t + ms(1), PeerId(2));
    let hosts: Vec<u32> = reported.iter().map(|c| c.host).collect();
    assert_eq!(hosts, [9], "only what a host says of itself is repeated");
    table.deny(9);
    assert_eq!(table.contenders(t + ms(1), 30, false).0, 0, "it was denied");
    table.claim(t + ms(2), NINE, &claim(9, 50));
    table.claim(t + ms(2), liar, &claim(9, 50));
    assert_eq!(table.contenders(t + ms(2), 30, false).0, 0, "through nobody");
}

#[test]
fn unfulfilled_claims_are_not_believed_where_the_air_is_free() {
    let (t, ms) = (Time::from_millis(1_000), Duration::from_millis);
    let mut s = share();
    let (mut now, mut believed) = (t, Vec::new());
    while now < t + Duration::from_secs(20) {
        s.table.claim(now, NINE, &claim(9, 50));
        believed.push(s.is_outranked(now, 10));
        if s.is_probe(now, 10) {
            s.probed(now, false);
        }
        now += ms(100);
    }
    let of = |reported: &[bool]| reported.iter().filter(|b| **b).count();
    assert!(of(&believed[..10]) == 10 && of(&believed) < 70, "{believed:?}");
    assert!(s.found_free() >= 2);
    // The claims of a host that uses the claimed air count at once, whether this host hears it or collides with it.
    s.took(now, 9, ms(100));
    assert!(s.is_outranked(now, 10) && !s.is_probe(now, 10));
    let mut s = share();
    for n in 0..200u32 {
        let now = t + ms(100) * n;
        s.table.claim(now, NINE, &claim(9, 50));
        assert!(s.is_outranked(now, 10) && s.is_probe(now, 10));
        s.probed(now, n % 8 == 0);
    }
}

#[test]
fn a_relayed_rhythm_counts_until_its_host_announces_its_own() {
    let (t, ms) = (Time::from_millis(1_000), Duration::from_millis);
    let mut table = Table::new(1);
    let beat = |priority| Beat {
        host: 9,
        priority,
        at: 0,
        period: 20_000,
        air: 1_500,
        spread: 50,
        age_ms: 0,
    };
    let common = Speaker {
        peer: PeerId(1),
        host: 7,
    };
    table.rhythm(t, common, &beat(100), 0, t + ms(3), Duration::ZERO);
    assert!(table.foreseen(t, 99).is_some() && table.rhythms_for(t, PeerId(2)).is_empty());
    table.rhythm(t, NINE, &beat(100), 0, t + ms(9), Duration::ZERO);
    assert!(
        table.rhythms_for(t, PeerId(2)).is_empty(),
        "nothing came of it yet"
    );
    table.took(t, 9, AIR * 10);
    table.rhythm(t, common, &beat(110), 0, t + ms(3), Duration::ZERO);
    let (host, f) = table.foreseen(t, 99).expect("its own");
    assert_eq!((host, f.from), (9, t + ms(9) - Duration::from_micros(50)));
    assert_eq!(table.foreseen(t, 100), None);
    assert_eq!(table.rhythms_for(t, PeerId(2)).len(), 1);
    assert!(table.rhythms_for(t, PEER).is_empty(), "it knows its own");
}

#[test]
fn ages_grow_as_they_are_repeated_and_the_newest_counts() {
    let t = Time::from_millis(1_000);
    let mut table = Table::new(1);
    let aged = |age_ms, priority| Claim {
        age_ms,
        ..claim(9, priority)
    };
    table.claim(t, NINE, &aged(20, 20));
    table.claim(t, NINE, &aged(90, 60));
    assert_eq!(table.contenders(t, 30, false), (0, 0), "the newest says 20");
    assert!(
        table.claims_for(t, PeerId(1)).is_empty(),
        "nothing was heard of it"
    );
    table.took(t, 9, AIR);
    let reported = table.claims_for(t, PeerId(1));
    assert_eq!((reported.len(), reported[0].age_ms), (1, 21));
    assert!(table.claims_for(t, PEER).is_empty(), "who said it knows");
    let old = Claim {
        age_ms: 210,
        ..claim(8, 50)
    };
    table.claim(t, NINE, &old);
    table.claim(t, NINE, &claim(1, 50));
    assert_eq!(table.claimants(t), 1, "neither old ones nor our own");
    table.expire(t + Duration::from_millis(180));
    assert_eq!(table.claimants(t), 0);
}

#[test]
fn a_claim_ends_with_what_it_claims_and_for_equals_in_full_air_later() {
    let (t, ms) = (Time::from_millis(1_000), Duration::from_millis);
    let message = Claim {
        demand_ms: 6,
        ..claim(9, 50)
    };
    let claimed = |before: u32| {
        let mut s = share();
        for n in 0..before {
            s.takes(t - AIR * (before - n), AIR);
        }
        s.table.claim(t, NINE, &message);
        for n in 1..=3 {
            assert_eq!(s.contenders(t + AIR * n, 50), (0, 1));
            s.took(t + AIR * n, 9, AIR);
        }
        s
    };
    let end = t + AIR * 3;
    let free = claimed(0);
    assert_eq!(
        (free.contenders(end, 50), free.contenders(end, 20)),
        ((0, 0), (0, 0))
    );
    let full = claimed(1_000);
    assert_eq!(full.contenders(end, 50), (0, 1), "they go on taking turns");
    assert_eq!(
        full.contenders(end, 20),
        (0, 0),
        "what is less important need not wait"
    );
    assert_eq!(full.contenders(end + ms(60), 50), (0, 0));
    // A fast radio's claim of less than a millisecond does not end with the datagram that carries it.
    let mut quick = share();
    let least = Claim {
        demand_ms: 0,
        ..message
    };
    quick.table.claim(t, NINE, &least);
    quick.took(t, 9, AIR / 8);
    assert_eq!(quick.contenders(t, 50), (0, 1));
    // For a host that it does not hear, it waits as long as what is claimed should take.
    let mut unheard = share();
    unheard.table.claim(t, NINE, &message);
    assert_eq!(unheard.contenders(end, 50), (0, 1));
    assert_eq!(unheard.contenders(t + ms(14), 50), (0, 0));
}

#[test]
fn a_foreign_rhythm_goes_on_until_it_expires() {
    let (t, ms) = (Time::from_millis(1_000), Duration::from_millis);
    let mut s = share();
    let beat = Beat {
        host: 9,
        priority: 100,
        at: 0,
        period: 20_000,
        air: 1_500,
        spread: 50,
        age_ms: 0,
    };
    s.table
        .rhythm(t, NINE, &beat, 0, t + ms(7), Duration::from_micros(50));
    assert_eq!(s.foreseen(t, 100), None, "an equal does not make room");
    for n in 0..20 {
        let now = t + ms(20) * n;
        let f = s.foreseen(now, 99).expect("foreseen");
        assert_eq!(f.from, now + ms(7) - Duration::from_micros(100));
        assert!(f.until > now + ms(7));
        // While its frames are in the air, ours wait by themselves.
        let f = s.foreseen(now + ms(10), 99).expect("the next");
        assert_eq!(f.from, now + ms(27) - Duration::from_micros(100));
    }
    s.table.expire(t + ms(600));
    assert_eq!(s.foreseen(t + ms(600), 99), None);
}
