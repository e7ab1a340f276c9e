//! The model against the closed forms of the literature; `medium::theory` names the sources.

mod common;
use common::*;
use medium::{Loss, Medium, MediumConfig, Phy, Standard, Topology, theory};
use stats::Time;
use std::time::Duration;

fn cell(hosts: usize, standard: Standard, rate_bits: u64) -> MediumConfig {
    MediumConfig {
        standard,
        rate_bits,
        hosts,
        topology: Topology::Mesh,
        ..MediumConfig::chain(1)
    }
}

fn phy(standard: Standard, rate_bits: u64) -> Phy {
    Phy::of(standard, rate_bits, &[]).expect("a rate of the standard")
}

const SHORT_B: Standard = Standard::B { short_preamble: true };
const LONG_SLOT_G: Standard = Standard::G {
    short_slot: false,
    short_preamble: false,
};

#[test]
fn the_closed_form_is_the_paper_s_sum() {
    // Jun et al. for CSMA/CA over high-rate DSSS, in µs: DIFS 50, SIFS 10, back-off 310, acknowledgement 304 (at 1
    // Mbit/s), preamble 192, and 34 B around an MSDU, which is the IP packet and 8 B of LLC/SNAP. Their header of 34 B
    // has the fourth address; 6 of its bytes are not in ours.
    for (mbit, rate) in [(5.5, 5_500_000), (11.0, 11_000_000)] {
        let phy = Phy::of(Standard::B, rate, &[1_000_000]).expect("rates of 802.11b");
        let micros = 50.0 + 10.0 + 310.0 + 304.0 + 192.0 + 8.0 * (34.0 - 6.0 + 8.0 + IP as f64) / mbit;
        within(
            "Jun et al.",
            theory::lone_sender(&phy, IP, PAYLOAD),
            PAYLOAD as f64 * 8e6 / micros,
            0.001,
        );
    }
}

#[test]
fn a_lone_sender_gets_the_closed_form() {
    let mbit = |m: f64| (m * 1e6) as u64;
    let of =
        |standard: Standard, rates: &[f64]| rates.iter().map(|r| (standard, mbit(*r))).collect::<Vec<_>>();
    let cells = [
        of(Standard::A, &[6.0, 9.0, 12.0, 18.0, 24.0, 36.0, 48.0, 54.0]),
        of(Standard::B, &[1.0, 2.0, 5.5, 11.0]),
        of(SHORT_B, &[2.0, 11.0]),
        of(Standard::G, &[1.0, 2.0, 6.0, 54.0]),
        of(LONG_SLOT_G, &[54.0]),
    ];
    for (standard, rate) in cells.concat() {
        let (got, air) = saturate(cell(2, standard, rate), &[(0, 1)], 30);
        let want = theory::lone_sender(&phy(standard, rate), IP, PAYLOAD);
        within(&format!("{standard} at {rate}"), got[0], want, 0.005);
        assert_eq!(air.stats().collisions, 0, "a lone sender collides with nobody");
        within("wanted", air.stats().wanted.as_secs_f64(), 30.0, 0.001);
        assert!(air.stats().busy < air.stats().wanted);
    }
}

#[test]
fn a_channel_is_wanted_from_the_queue_to_the_acknowledgement() {
    let phy = phy(Standard::A, 6_000_000);
    let mut air: Medium<()> = Medium::new(cell(2, Standard::A, 6_000_000)).expect("valid");
    let at = |i: u64| Time::from_millis(100 * i);
    for i in 1..=10 {
        air.send(at(i), 0, 1, IP, ()).expect("room");
        while air.poll(at(i + 1)).is_some() {}
    }
    let stats = air.stats();
    assert_eq!(stats.busy, phy.exchange(IP) * 10);
    // DIFS, and the longest first back-off.
    let most = (phy.exchange(IP) + Duration::from_micros(34 + 15 * 9)) * 10;
    assert!(
        (stats.busy..=most).contains(&stats.wanted) && stats.wanted > Duration::ZERO,
        "{stats:?}"
    );
}

#[test]
fn frame_loss_costs_what_the_closed_form_says() {
    for loss in [0.1, 0.3] {
        let config = MediumConfig {
            loss: Loss::Uniform(loss),
            ..MediumConfig::chain(1)
        };
        let want =
            theory::lone_sender_with_loss(&phy(Standard::A, 6_000_000), IP, PAYLOAD, loss, config.retries);
        within(
            &format!("loss {loss}"),
            saturate(config, &[(0, 1)], 120).0[0],
            want,
            0.01,
        );
    }
}

#[test]
fn saturated_stations_collide_as_bianchi_says() {
    for (standard, rate) in [
        (Standard::A, 6_000_000),
        (Standard::A, 54_000_000),
        (Standard::B, 11_000_000),
        (Standard::G, 24_000_000),
    ] {
        for n in [2u32, 4, 8] {
            let flows: Vec<_> = (0..n as usize).map(|i| (i, (i + 1) % n as usize)).collect();
            let config = cell(n as usize, standard, rate);
            let want = theory::saturated(&phy(standard, rate), n, IP, PAYLOAD, config.retries);
            let (got, air) = saturate(config, &flows, 60);
            let hosts = &air.stats().hosts;
            let (tried, hit) = hosts
                .iter()
                .fold((0, 0), |(a, c), h| (a + h.attempts, c + h.collisions));
            let p = hit as f64 / tried as f64;
            println!("p {p:.4}, closed form {:.4}", want.collision);
            within(
                &format!("{n} stations, {standard} at {rate}"),
                got.iter().sum(),
                want.total,
                0.03,
            );
        }
    }
}

#[test]
fn two_hops_get_half_of_two_saturated_stations() {
    for rate in [6_000_000, 54_000_000] {
        let config = MediumConfig {
            rate_bits: rate,
            ..MediumConfig::chain(2)
        };
        let want = theory::two_hop_chain(&phy(Standard::A, rate), IP, PAYLOAD, config.retries);
        let (got, _) = saturate(config, &[(0, 2)], 120);
        within(&format!("two hops at {rate}"), got[0], want, 0.03);
    }
}

#[test]
fn an_access_point_halves_the_air() {
    let ap = Topology::AccessPoint { ap: 1 };
    let config = MediumConfig {
        topology: ap,
        ..MediumConfig::chain(2)
    };
    let want = theory::two_hop_chain(&phy(Standard::A, 6_000_000), IP, PAYLOAD, config.retries);
    within(
        "through an access point",
        saturate(config, &[(0, 2)], 120).0[0],
        want,
        0.03,
    );
}

#[test]
fn saturated_hosts_are_served_alike() {
    let (got, _) = saturate(cell(3, Standard::A, 6_000_000), &[(0, 2), (1, 2)], 60);
    let jain = got.iter().sum::<f64>().powi(2) / (got.len() as f64 * got.iter().map(|g| g * g).sum::<f64>());
    println!("{got:?}, Jain's index {jain:.5}");
    assert!(jain > 0.99, "{got:?}");
}
