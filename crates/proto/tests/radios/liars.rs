//! A peer that claims the air for itself and for others, with ten small datagrams per second. A host that gives it no
//! say is not affected; a host that does keeps the least share, and soon gets more.

use crate::common::ms;
use crate::common::team::Team;
use crate::common::topic;
use medium::MediumConfig;
use proto::{PeerConfig, short_id};
use stats::{FlowMetrics, Time};
use std::time::Duration;

const RUN: Duration = Duration::from_secs(8);
const EXACT: Duration = Duration::ZERO;
const BASE: usize = 0;
const VICTIM: usize = 1;
const LIAR: usize = 2;

fn id(host: usize) -> u64 {
    1000 + host as u64
}

fn varint(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(&(n | 3 << 62).to_be_bytes());
}

/// A clock reading as every host has, and eight claims of this priority: the liar's own, and those of possible other
/// hosts.
fn claims(now: Time, priority: u8) -> Vec<u8> {
    let mut out = vec![0x21];
    varint(&mut out, now.as_nanos() / 1000);
    out.push(1);
    [0, 1, 1].into_iter().for_each(|n| varint(&mut out, n));
    out.extend_from_slice(&[0x20, 8]);
    for n in 0..8 {
        // The other hosts change over time.
        let other = 77 + n + (now.as_nanos() / 500_000_000 % 10 * 8) as u32;
        let host = if n == 0 { short_id(id(LIAR)) } else { other };
        out.extend_from_slice(&host.to_le_bytes());
        out.extend_from_slice(&[priority, 255, 0]);
    }
    out
}

fn rhythms(now: Time) -> Vec<u8> {
    let mut out = vec![0x22, 8];
    for n in 0..8u32 {
        let host = if n < 4 { short_id(id(LIAR)) } else { 77 + n };
        out.extend_from_slice(&host.to_le_bytes());
        out.extend_from_slice(&[120 + n as u8 % 4, 0]);
        varint(&mut out, now.as_nanos() / 1000 + u64::from(n) * 620);
        [5_000, 2_400, 1_000]
            .into_iter()
            .for_each(|v| varint(&mut out, v));
    }
    out
}

fn outranks(now: Time) -> Vec<u8> {
    claims(now, 127)
}

fn equals(now: Time) -> Vec<u8> {
    claims(now, 50)
}

fn foretells(now: Time) -> Vec<u8> {
    [claims(now, 0), rhythms(now)].concat()
}

fn does_all(now: Time) -> Vec<u8> {
    [claims(now, 127), rhythms(now)].concat()
}

type Lies = fn(Time) -> Vec<u8>;

/// The victim sends scans, or as much as it can; the liar sends ten small messages per second to its peer. `denied`:
/// hosts that give it no say.
fn beside(lies: Option<Lies>, to: usize, saturates: bool, denied: &[usize]) -> FlowMetrics {
    let peer = |host: usize, other: usize| PeerConfig {
        host: id(other),
        air: other != LIAR || !denied.contains(&host),
        ..PeerConfig::default()
    };
    let deny = |host: usize, config: &mut proto::RadioConfig| {
        if denied.contains(&host) {
            config.denied_air = vec![id(LIAR)];
        }
    };
    let medium = MediumConfig {
        seed: 1,
        ..MediumConfig::chain(1)
    };
    let mut t = Team::with_peers(3, medium, &[(VICTIM, BASE), (LIAR, to)], &[], deny, peer);
    match saturates {
        true => t.stream((VICTIM, BASE), topic("/image", 50, 2), 16_000, ms(20), EXACT, RUN),
        false => t.stream((VICTIM, BASE), topic("/scan", 50, 2), 4_250, ms(50), EXACT, RUN),
    };
    // Traffic in the other direction, so that the base announces to the victim what it hears.
    t.stream((BASE, VICTIM), topic("/joy", 110, 1), 64, ms(50), ms(5), RUN);
    t.stream((LIAR, to), topic("/small", 1, 1), 20, ms(100), EXACT, RUN);
    if let Some(lies) = lies {
        t.liars.insert(LIAR, lies);
    }
    t.run_until(Time::from_millis(500) + RUN + ms(1_000));
    t.print(&format!("to {to}, lies {}, denied by {denied:?}", lies.is_some()));
    if lies.is_some() {
        println!("{:?}", t.hosts[VICTIM].radio.stats().yields_to);
    }
    t.metrics(0)
}

#[test]
fn a_liar_without_permission_changes_nothing() {
    for (to, denied) in [
        // Its peer, which gives it no say.
        (VICTIM, &[VICTIM][..]),
        // A common peer, which gives it no say.
        (BASE, &[BASE][..]),
        // A common peer, which gives it a say, while the victim does not.
        (BASE, &[VICTIM][..]),
    ] {
        let alone = beside(None, to, false, denied);
        for lies in [equals as Lies, foretells, does_all] {
            let m = beside(Some(lies), to, false, denied);
            assert_eq!((m.received, m.delivery), (alone.received, 1.0), "{m:?}");
            assert!(m.delay_ms.mean <= 1.02 * alone.delay_ms.mean, "{m:?} {alone:?}");
            assert!(m.delay_ms.p99 <= 1.1 * alone.delay_ms.p99, "{m:?} {alone:?}");
        }
    }
}

#[test]
fn hosts_that_let_a_liar_claim_air_keep_the_least_share() {
    for to in [VICTIM, BASE] {
        let alone = beside(None, to, true, &[]).mbit_s;
        for lies in [outranks as Lies, equals, foretells, does_all] {
            let share = beside(Some(lies), to, true, &[]).mbit_s / alone;
            println!("{:.1} % of what it gets alone", share * 100.0);
            assert!(share >= 0.1, "{share}");
            // The claimed air is free, which is detected after two seconds.
            assert!(share >= 0.5, "{share}");
        }
    }
}

#[test]
fn claims_fulfilled_towards_a_third_host_are_believed() {
    // The base's image is for another robot, so this one does not hear it.
    let medium = MediumConfig {
        seed: 3,
        ..MediumConfig::chain(1)
    };
    let mut t = Team::new(3, medium, &[(0, 1), (0, 2)], &[], |_| ());
    t.stream((0, 1), topic("/map", 50, 2), 64_000, ms(50), EXACT, RUN);
    t.stream((2, 0), topic("/bulk", 5, 2), 64_000, ms(50), EXACT, RUN);
    t.run_until(Time::from_millis(500) + RUN);
    t.print("an image for another");
    let [map, bulk] = [0, 1].map(|i| t.metrics(i).mbit_s);
    let stats = t.hosts[2].radio.stats();
    println!("{:?}, found free {}", stats.yields_to, stats.found_free);
    assert!(map > 3.0 * bulk && bulk > 0.3, "{map} {bulk}");
    assert_eq!(stats.found_free, 0);
}
