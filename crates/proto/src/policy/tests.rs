use super::flight::Lesson;
use super::*;
use crate::config::PeerId;

const MBIT: u64 = 1_000_000;
const IN_FLIGHT: usize = 3;

fn config(airtime: AirtimeModel, auto_rate: bool, unrated_cable: bool) -> RadioConfig {
    RadioConfig {
        auto_rate,
        unrated_cable,
        in_flight: IN_FLIGHT as u32,
        ..RadioConfig::new(1, airtime)
    }
}

fn peer(config: &RadioConfig, policy: &dyn Policy) -> Peer {
    Peer::new(Time::ZERO, PeerId(0), PeerConfig::default(), config, policy)
}

fn wifi() -> AirtimeModel {
    AirtimeModel::wifi(6 * MBIT)
}

fn cable(rate: u64) -> AirtimeModel {
    AirtimeModel::bytes(rate, 28).with_gain(1.0)
}

#[test]
fn each_medium_has_its_policy() {
    use RateSource::{Guessed, Set, Unlimited};
    // Unless receipts clock the sending, two rows of asks may be in flight in addition.
    let wide = IN_FLIGHT + 2 * tuning().sparse;
    for (what, config, source, shared, clocked, window) in [
        ("a radio", config(wifi(), false, false), Set, true, false, wide),
        (
            "its rate unknown",
            config(wifi(), true, false),
            Guessed,
            true,
            true,
            IN_FLIGHT,
        ),
        (
            "a cable",
            config(cable(6 * MBIT), false, false),
            Set,
            false,
            false,
            wide,
        ),
        (
            "its rate unknown",
            config(cable(6 * MBIT), true, false),
            Guessed,
            false,
            true,
            IN_FLIGHT,
        ),
        (
            "without a rate",
            config(cable(6 * MBIT), false, true),
            Unlimited,
            false,
            true,
            IN_FLIGHT,
        ),
        (
            "it comes first",
            config(wifi(), true, true),
            Unlimited,
            false,
            true,
            IN_FLIGHT,
        ),
    ] {
        let policy = choose(&config);
        let peer = peer(&config, &*policy);
        let (air, pause) = (Duration::from_millis(2), Duration::from_micros(100));
        let slot = if clocked { Duration::ZERO } else { air + pause };
        assert_eq!(policy.rate_source(&peer), source, "{what}");
        assert_eq!(policy.is_shared(), shared, "{what}");
        assert_eq!(policy.slot(&peer, air, pause), slot, "{what}");
        assert_eq!(policy.makes_room(&peer), !clocked, "{what}");
        assert_eq!(policy.is_queue_common(&peer), clocked, "{what}");
        assert_eq!(policy.may_ask(&peer, false), clocked, "{what}");
        assert_eq!(policy.window(&peer, true), window, "{what}");
        assert_eq!(
            policy.late_at(Time::ZERO, &peer, Time::ZERO, 1) == Time::MAX,
            clocked,
            "{what}"
        );
        assert_eq!(policy.receipt_air(&peer).is_zero(), !shared, "{what}");
        let gap = policy.gap(&peer, Others::AtAnyTime);
        assert_eq!(
            (gap.is_zero(), policy.longest(1400) == 1400),
            (!shared, !shared),
            "{what}"
        );
    }
}

#[test]
fn receipts_clock_the_sending_until_there_is_an_estimate() {
    let config = config(wifi(), true, false);
    let policy = choose(&config);
    let mut peer = peer(&config, &*policy);
    let air = Duration::from_millis(2);
    assert!(policy.slot(&peer, air, Duration::ZERO).is_zero());
    let lesson = Lesson {
        bytes: 1400,
        service: Some(air),
        ..Lesson::default()
    };
    let estimate = peer.estimate.as_mut().expect("over one hop");
    while !estimate.learn(lesson, Duration::ZERO, Duration::ZERO, tuning().receipt) {}
    assert_eq!(policy.slot(&peer, air, Duration::ZERO), air);
    assert_eq!(policy.rate_source(&peer), RateSource::Estimated);
}

fn entry(number: u64) -> Entry {
    Entry {
        number,
        at: Time::ZERO,
        bytes: 1400,
        pieces: 1,
        importance: 0,
        asks: false,
    }
}

#[test]
fn four_milliseconds_of_a_quick_cable_may_be_in_flight() {
    for (rate, least, every) in [
        (6, IN_FLIGHT, IN_FLIGHT),
        (10, IN_FLIGHT, IN_FLIGHT),
        (100, 33, 9),
    ] {
        let flight = choose(&config(cable(rate * MBIT), false, false)).flight();
        assert_eq!(flight.window(true, Duration::ZERO), least, "{rate}");
        // No datagram has asked yet.
        let asks = |sent| {
            let mut flight = choose(&config(cable(rate * MBIT), false, false)).flight();
            (0..sent).for_each(|n| flight.sent(entry(n), Time::MAX, Duration::ZERO));
            flight.should_ask(Time::ZERO, true, false, 100)
        };
        assert!(!asks(every as u64 - 2) && asks(every as u64 - 1), "{rate}");
    }
}

#[test]
fn fragments_make_room_for_foreseen_messages() {
    let config = config(wifi(), false, false);
    let policy = choose(&config);
    let peer = peer(&config, &*policy);
    let now = Time::from_millis(100);
    let ms = Duration::from_millis;
    let fragment = Fragment {
        max: 1400,
        whole: 9_000,
        least: 80,
        begins: false,
    };
    let comes = |after: Duration| Foreseen {
        from: now + after,
        until: now + after + Duration::from_micros(300),
        period: ms(20),
    };
    let room = |fragment, foreseen| policy.make_room(now, &peer, &fragment, foreseen);
    assert_eq!(
        room(fragment, comes(ms(3))),
        Room::Within(1400),
        "it is over by then"
    );
    let Room::Within(cut) = room(fragment, comes(ms(2))) else {
        panic!("it is cut")
    };
    let air = |bytes| peer.airtime.airtime(bytes, 1);
    assert!(air(cut) <= ms(2) && air(cut + 4) > ms(2), "{cut}");
    let soon = comes(tuning().worth_cutting / 2);
    assert_eq!(room(fragment, soon), Room::Wait(soon.until));
    let quick = Foreseen {
        period: tuning().least_waited_for / 2,
        ..soon
    };
    assert_eq!(
        room(fragment, quick),
        Room::Within(1400),
        "a source without pauses"
    );
    let short = Fragment {
        whole: 100,
        begins: true,
        ..fragment
    };
    assert_eq!(room(short, soon), Room::Wait(soon.until));
    let stray = Foreseen {
        until: soon.from + ms(2),
        ..soon
    };
    assert_eq!(
        room(short, stray),
        Room::Within(1400),
        "it would wait for longer than it takes"
    );
}
