//! LoRa, where each host may transmit for a share of the time only.

use crate::common::*;
use medium::{Delay, Path};
use proto::*;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
/// Longest datagram of a LoRa modem with a transparent line.
const DATAGRAM: usize = 256;

fn lora(duty: f64, seed: u64) -> Setup {
    // As fast as spreading factor 7 at 125 kHz and 4/5.
    let path = Path::delay(Delay::Fixed(ms(1)));
    Setup {
        auto: false,
        airtime: Some(AirtimeModel::lora(7, 125_000, 1)),
        duty,
        longest: DATAGRAM,
        ..Setup::cable(5_470, path).seed(seed)
    }
}

/// Two hours of a position every `period`, a picture of 2 kB every ten minutes and a rare command the other way.
/// Returns the largest share of an hour for which each end transmitted.
fn two_hours(w: &mut World, period: Duration) -> [f64; 2] {
    let day = HOUR * 2;
    let small = |bytes| Geometry::new(bytes, &[]).expect("a geometry");
    w.source(0, topic("/position", 100, 1), period, day, |_, _| small(24));
    let minutes = Duration::from_secs(600);
    w.source(0, topic("/picture", 10, 1), minutes, day, |_, _| small(2_000));
    let command = TopicConfig {
        reliability: Reliability::Reliable,
        expiry: Some(Duration::from_secs(120)),
        ..topic("/command", 120, 4)
    };
    w.source(1, command, Duration::from_secs(90), day, |_, _| small(16));
    let step = Duration::from_secs(20);
    let mut air = [vec![Duration::ZERO], vec![Duration::ZERO]];
    while w.now < stats::Time::ZERO + day {
        w.run(step);
        for (n, air) in w.nodes.iter().zip(&mut air) {
            air.push(n.radio.stats().air);
        }
    }
    let window = (HOUR.as_secs() / step.as_secs()) as usize;
    air.map(|air| {
        let hours = air.windows(window + 1);
        let shares = hours.map(|h| (h[window] - h[0]).as_secs_f64() / HOUR.as_secs_f64());
        shares.fold(0.0, f64::max)
    })
}

#[test]
fn the_share_of_the_air_holds_in_every_hour_and_urgent_messages_go_ahead() {
    for (duty, period) in [(0.1, 10), (0.01, 60)] {
        for seed in 1..=3 {
            let mut w = lora(duty, seed).build();
            let shares = two_hours(&mut w, Duration::from_secs(period));
            w.print(&format!("LoRa, {duty} of the time, seed {seed}: {shares:.4?}"));
            // One datagram of each of four priorities may go ahead.
            let ahead = AirtimeModel::lora(7, 125_000, 1).airtime(DATAGRAM, 1) * 4;
            let most = duty + ahead.as_secs_f64() / HOUR.as_secs_f64();
            assert!(shares.iter().all(|s| *s <= most), "{shares:?}");
            assert!(w.nodes.iter().all(|n| n.sink.downs.is_empty()));
            let (position, picture, command) = (w.metrics(0), w.metrics(1), w.metrics(2));
            assert!(position.delivery >= 0.98, "{position:?}");
            assert!(picture.delivery >= 0.9, "{picture:?}");
            assert!(command.delivery >= 0.98, "{command:?}");
            w.check_books();
        }
    }
}

#[test]
fn overload_stays_within_the_share() {
    let mut w = lora(0.01, 1).build();
    let shares = two_hours(&mut w, Duration::from_secs(1));
    w.print(&format!("LoRa with too many messages: {shares:.4?}"));
    assert!((0.0095..0.0105).contains(&shares[0]), "{shares:?}");
    assert!(w.metrics(2).delivery >= 0.98);
    w.check_books();
}

#[test]
fn a_share_needs_a_rate_and_is_no_more_than_all() {
    let new = |config: RadioConfig| Radio::<Blob>::new(config).map(|_| ());
    let with = |duty| RadioConfig {
        duty,
        ..RadioConfig::new(1, AirtimeModel::lora(7, 125_000, 1))
    };
    assert_eq!(new(with(0.01)), Ok(()));
    for duty in [0.0, -0.1, 1.1, f64::NAN] {
        let refused = new(with(duty)).expect_err("no share");
        assert!(refused.to_string().contains("duty cycle"), "{refused}");
    }
    let unpaced = RadioConfig {
        unrated_cable: true,
        ..with(0.1)
    };
    assert!(new(unpaced).is_err());
}
