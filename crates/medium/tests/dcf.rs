//! The model against the measured figures of the emulator it stands for, and the rules of one queue.

mod common;
use common::{saturate, within};
use medium::{Event, Loss, Medium, MediumConfig};
use stats::{DropReason, Time};

/// Throughput from a saturated host 0 to the far end, in bit/s.
fn goodput(config: MediumConfig) -> f64 {
    let far = config.hosts - 1;
    saturate(config, &[(0, far)], 60).0[0]
}

#[test]
fn one_and_two_hops_carry_what_the_emulator_carried() {
    within("1 hop", goodput(MediumConfig::chain(1)), 5.24e6, 0.03);
    within("2 hops", goodput(MediumConfig::chain(2)), 2.50e6, 0.03);
}

#[test]
fn frame_loss_is_repaired_at_the_price_of_air() {
    let lossy = |hops| MediumConfig {
        loss: Loss::Uniform(0.1),
        ..MediumConfig::chain(hops)
    };
    within("1 hop", goodput(lossy(1)), 4.69e6, 0.03);
    within("2 hops", goodput(lossy(2)), 2.25e6, 0.03);
}

#[test]
fn a_frame_is_given_up_after_seven_retries() {
    let config = MediumConfig {
        loss: Loss::Uniform(1.0),
        ..MediumConfig::chain(1)
    };
    let mut air = Medium::new(config).expect("a valid medium");
    air.send(Time::ZERO, 0, 1, 100, 7u32).expect("there is room");
    let mut seen = Vec::new();
    while let Some(t) = air.next_event() {
        seen.extend(std::iter::from_fn(|| air.poll(t)));
    }
    assert!(
        matches!(
            seen[..],
            [Event::Dropped {
                host: 0,
                reason: DropReason::Air,
                payload: 7,
                ..
            }]
        ),
        "{seen:?}"
    );
    assert_eq!(
        (air.stats().hosts[0].attempts, air.stats().hosts[0].retries),
        (8, 7)
    );
    assert_eq!(air.queue_len(0), 0);
}

#[test]
fn a_full_queue_returns_the_payload_and_a_full_relay_reports_the_drop() {
    let config = MediumConfig {
        queue_frames: 2,
        ..MediumConfig::chain(2)
    };
    let mut air = Medium::new(config).expect("a valid medium");
    let mut refused = 0;
    for n in 0..5u32 {
        if let Err(medium::SendError::QueueFull { payload, .. }) = air.send(Time::ZERO, 0, 2, 1500, n) {
            assert_eq!(payload, n);
            refused += 1;
        }
    }
    assert_eq!(refused, 3);
    // Two large frames sit in the relay behind each other while the source, with tiny ones, keeps winning.
    let (mut at_relay, mut n, mut now) = (0, 0u64, Time::ZERO);
    while n < 2000 {
        while air.queue_len(0) < 2 {
            air.send(now, 0, 2, 40, 0).expect("there is room");
            n += 1;
        }
        now = air.next_event().expect("a saturated medium never rests");
        while let Some(e) = air.poll(now) {
            if let Event::Dropped {
                host: 1,
                reason: DropReason::DeviceQueue,
                ..
            } = e
            {
                at_relay += 1;
            }
        }
    }
    assert!(at_relay > 0);
    assert_eq!(
        air.stats().hosts[1].drops.count(DropReason::DeviceQueue),
        at_relay
    );
    assert_eq!(air.stats().hosts[1].queue_high_water, 2);
}

#[test]
fn added_delay_shifts_and_never_slows() {
    let config = MediumConfig {
        path: medium::Path::delay(core::time::Duration::from_millis(500)),
        ..MediumConfig::chain(1)
    };
    let mut air = Medium::new(config).expect("a valid medium");
    for n in 0..3u64 {
        air.send(Time::from_millis(10 * n), 0, 1, 1028, n)
            .expect("there is room");
    }
    let mut at = Vec::new();
    while let Some(t) = air.next_event() {
        while let Some(e) = air.poll(t) {
            at.push(e.at());
        }
    }
    let ideal = |n: u64| Time::from_micros(501_478 + 10_000 * n);
    assert_eq!(at, [ideal(0), ideal(1), ideal(2)]);
}

#[test]
fn late_polling_does_not_change_what_happens() {
    let run = |step_us: u64| {
        let config = MediumConfig {
            loss: Loss::Uniform(0.2),
            ..MediumConfig::chain(3)
        };
        let mut air = Medium::new(config).expect("a valid medium");
        for n in 0..200u64 {
            let _ = air.send(Time::ZERO, (n % 3) as usize, 3, 500, n);
        }
        let (mut t, mut seen) = (Time::ZERO, Vec::new());
        while air.next_event().is_some() {
            t += core::time::Duration::from_micros(step_us);
            seen.extend(std::iter::from_fn(|| air.poll(t)));
        }
        seen
    };
    let fine = run(1);
    assert_eq!(fine.len(), 200);
    assert_eq!(fine, run(7_919));
}

#[test]
fn settings_without_meaning_are_named() {
    let bad = |c: MediumConfig| Medium::<()>::new(c).err().expect("refused").to_string();
    let base = MediumConfig::chain(1);
    assert!(
        bad(MediumConfig {
            rate_bits: 0,
            ..base.clone()
        })
        .contains("rate 0")
    );
    assert!(
        bad(MediumConfig {
            hosts: 1,
            ..base.clone()
        })
        .contains("1 hosts")
    );
    assert!(
        bad(MediumConfig {
            queue_frames: 0,
            ..base.clone()
        })
        .contains("queue")
    );
    assert!(
        bad(MediumConfig {
            loss: Loss::Uniform(f64::NAN),
            ..base
        })
        .contains("0 to 1")
    );
    let mut air = Medium::<()>::new(MediumConfig::chain(1)).expect("valid");
    assert!(matches!(
        air.send(Time::ZERO, 0, 2, 10, ()),
        Err(medium::SendError::NoRoute { .. })
    ));
}
