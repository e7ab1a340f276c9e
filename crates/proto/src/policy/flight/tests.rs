use super::*;

const AIR: Duration = Duration::from_millis(2);

fn entry(number: u64, at: Time, asks: bool) -> Entry {
    Entry {
        number,
        at,
        bytes: 1400,
        pieces: 1,
        importance: 10,
        asks,
    }
}

fn receipt(newest: u64, gap: u64) -> Receipt {
    Receipt {
        newest,
        gap,
        held: 100,
    }
}

#[test]
fn two_in_flight_are_clocked_by_receipts_and_the_urgent_passes() {
    let mut f = Flight::new(2);
    let t = Time::from_millis(10);
    assert!(!f.should_ask(t, true, false, 2));
    f.sent(entry(5, t, false), Time::MAX, AIR);
    assert!(f.admits(t, 10, 2) && f.should_ask(t, true, false, 2));
    f.sent(entry(6, t, true), Time::MAX, AIR);
    assert!(!f.admits(t, 10, f.window(true, AIR)) && f.admits(t, 11, f.window(true, AIR)));
    let later = t + Duration::from_micros(4_500);
    let lesson = f.receipt(later, &receipt(6, 2_100), |_| Duration::from_micros(2_500), AIR);
    assert_eq!(lesson.round_trip, Some(Duration::from_micros(4_400)));
    assert_eq!(lesson.service, Some(Duration::from_micros(2_100)));
    assert_eq!(f.len(), 0);
}

#[test]
fn a_late_receipt_narrows_the_bound_and_many_in_time_widen_it_again() {
    let mut f = Flight::new(2);
    let mut t = Time::from_millis(10);
    assert!(f.window(false, AIR) > 10);
    f.sent(entry(0, t, true), t + AIR * 3, AIR);
    f.expire(t + AIR * 3);
    assert!(!f.doubts());
    f.expire(t + AIR * 4);
    assert_eq!(f.window(false, AIR), 2);
    t += AIR * 5;
    f.receipt(t, &receipt(0, 0), |_| AIR * 5, AIR);
    for n in 1..=u64::from(tuning().penalty) {
        assert!(f.doubts());
        f.sent(entry(n, t, true), t + AIR * 3, AIR);
        t += AIR;
        f.receipt(t, &receipt(n, 0), |_| AIR, AIR);
    }
    assert!(!f.doubts());
}

#[test]
fn nothing_blocks_for_ever_and_a_long_path_holds_more() {
    let mut f = Flight::new(2);
    let t = Time::from_millis(10);
    f.sent(entry(0, t, false), Time::MAX, AIR);
    f.sent(entry(1, t, true), Time::MAX, AIR);
    let timeout = f.next_timeout().expect("patience ends");
    f.expire(timeout);
    assert!(f.len() == 0 && f.is_silent());
    f.sent(entry(2, timeout, true), Time::MAX, AIR);
    assert!(
        f.next_timeout().expect("one").since(timeout) > timeout.since(t),
        "less often"
    );
    f.receipt(timeout + Duration::from_secs(2), &receipt(2, 0), |_| AIR, AIR);
    assert!(!f.is_silent());
    assert!(
        (1_050..1_075).contains(&f.window(true, AIR)),
        "{}",
        f.window(true, AIR)
    );
    for n in 3..10_000 {
        f.sent(entry(n, timeout, false), Time::MAX, AIR);
    }
    assert!(f.len() <= MOST);
}

#[test]
fn on_a_cable_what_its_bytes_do_not_explain_is_its_delay() {
    let delay = AIR * 5;
    let in_doubt = |mut f: Flight| {
        let mut t = Time::from_millis(10);
        for n in 0..100 {
            f.sent(entry(n, t, true), t + AIR * 3, AIR);
            t += AIR + delay;
            f.expire(t);
            f.receipt(t, &receipt(n, 0), |_| AIR, AIR);
        }
        (f.doubts(), f.path_delay(AIR))
    };
    assert_eq!(in_doubt(Flight::new(2)), (true, Duration::ZERO));
    let (doubts, path) = in_doubt(Flight::new(2).with_own_delay());
    assert!(!doubts && (delay - AIR..delay * 2).contains(&path), "{path:?}");
}

#[test]
fn where_receipts_get_lost_one_that_is_missing_means_nothing() {
    let mut f = Flight::new(2);
    f.loses(0.2, 1.0);
    let mut t = Time::from_millis(10);
    let mut n = 0;
    let mut ask = |f: &mut Flight, t: Time| {
        n += 1;
        f.sent(entry(n, t, true), t + AIR * 3, AIR);
        n
    };
    for round in 0..40 {
        let number = ask(&mut f, t);
        if round % 4 == 0 {
            f.receipt(t + AIR, &receipt(number, 0), |_| AIR, AIR);
        } else {
            f.expire(f.next_timeout().expect("patience ends"));
        }
        assert!(!f.doubts() && !f.is_silent(), "{round}: {f:?}");
        t += AIR * 100;
    }
    // A late receipt does, and so does silence.
    let number = ask(&mut f, t);
    f.receipt(t + AIR * 50, &receipt(number, 0), |_| AIR, AIR);
    assert!(f.doubts());
    for _ in 0..10 {
        t += AIR * 1000;
        ask(&mut f, t);
        f.expire(t + AIR * 999);
    }
    assert!(f.is_silent());
}

#[test]
fn small_datagrams_count_as_the_air_that_they_take() {
    let mut f = Flight::new(2);
    let t = Time::from_millis(10);
    for n in 0..8 {
        assert!(f.admits(t, 10, 2), "{n}");
        let small = Entry {
            bytes: 64,
            ..entry(n, t, true)
        };
        f.sent(small, Time::MAX, AIR);
    }
    assert!(!f.admits(t, 10, 2) && f.admits(t, 11, 2));
}

#[test]
fn an_acknowledgement_ends_silence() {
    let mut f = Flight::new(2);
    let mut t = Time::from_millis(10);
    for n in 0..5 {
        f.sent(entry(n, t, true), Time::MAX, AIR);
        t = f.next_timeout().expect("patience ends");
        f.expire(t);
    }
    assert!(f.is_silent());
    f.sent(entry(5, t, true), Time::MAX, AIR);
    assert!(!f.admits(t, 10, f.window(false, AIR)));
    f.came(3);
    assert!(!f.is_silent() && f.admits(t, 10, f.window(false, AIR)));
    assert_eq!(f.len(), 1);
    f.came(u64::MAX);
    assert_eq!((f.len(), f.next_timeout()), (0, None));
    f.sent(entry(6, t, true), Time::MAX, AIR);
    f.expire(f.next_timeout().expect("patience ends"));
    f.came(3);
    assert!(f.is_silent(), "reported before");
}

#[test]
fn receipts_of_anything_do_no_harm() {
    let mut f = Flight::new(2);
    f.sent(entry(3, Time(5), true), Time(9), AIR);
    f.receipt(Time(6), &receipt(2, u64::MAX), |_| AIR, AIR);
    assert_eq!(f.len(), 1);
    f.receipt(Time(6), &receipt(u64::MAX, 7), |_| AIR, AIR);
    assert_eq!(f.len(), 0);
}
