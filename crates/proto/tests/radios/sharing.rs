//! Several hosts on one channel: important hosts go first wherever they send from, equals share alike, less important
//! hosts keep something, and clocks that differ are aligned.

use crate::common::team::{Clock, Team};
use crate::common::{ms, topic};
use medium::{Access, MediumConfig};
use proto::{RadioConfig, TopicConfig};
use stats::Time;
use std::time::Duration;

pub(crate) const RUN: Duration = Duration::from_secs(10);
const EXACT: Duration = Duration::ZERO;

pub(crate) fn wifi(seed: u64) -> MediumConfig {
    MediumConfig {
        seed,
        ..MediumConfig::chain(1)
    }
}

pub(crate) fn end() -> Time {
    Time::from_millis(500) + RUN + ms(3_000)
}

pub(crate) const CLOCKS: [Clock; 3] = [
    Clock {
        ahead: Duration::ZERO,
        ppm: 0,
    },
    Clock {
        ahead: Duration::from_secs(977),
        ppm: 40,
    },
    Clock {
        ahead: Duration::from_millis(12_345),
        ppm: 15,
    },
];

/// Host 0 is the base; robot 1 sends its laser (and an image), robot 2 saturates at low priority if `second`.
pub(crate) fn two_robots(seed: u64, second: bool, image: bool, change: impl Fn(&mut RadioConfig)) -> Team {
    let mut t = Team::new(3, wifi(seed), &[(1, 0), (2, 0)], &CLOCKS, change);
    t.stream((1, 0), topic("/laser", 100, 5), 1_000, ms(20), EXACT, RUN);
    if image {
        t.stream((1, 0), topic("/image", 50, 2), 64_000, ms(300), EXACT, RUN);
    }
    if second {
        // The laser's rhythm is known by then; before that nobody can make room.
        t.start = ms(1_500);
        t.stream((2, 0), topic("/bulk", 5, 2), 64_000, ms(50), EXACT, RUN);
    }
    t.run_until(end());
    t
}

#[test]
fn a_robot_that_saturates_at_low_priority_does_not_delay_the_others_laser() {
    let alone = two_robots(1, false, false, |_| ());
    let off = two_robots(1, true, false, |c| c.yields = false);
    alone.print("alone");
    off.print("with a second robot that does not yield");
    let delay = |t: &Team| t.metrics(0).delay_ms;
    let (alone, off_) = (delay(&alone), delay(&off));
    assert!(
        off_.mean > 2.0 * alone.mean && off_.p99 > 4.0 * alone.p99,
        "the scenario tests nothing: {off_:?}"
    );
    let mut p99 = Vec::new();
    for seed in 1..=5 {
        let on = two_robots(seed, true, false, |_| ());
        on.print("with a second robot that yields");
        let on_ = delay(&on);
        assert!(on_.mean <= 1.1 * alone.mean, "{on_:?} against {alone:?}");
        // A few frames still collide, where a receipt of the base comes between.
        assert!(on_.p99 <= 3.0 * alone.p99, "{on_:?} against {alone:?}");
        assert_eq!(on.metrics(0).delivery, 1.0);
        // The second robot still has most of what is left.
        assert!(
            on.metrics(1).mbit_s > 0.9 * off.metrics(1).mbit_s,
            "{:?}",
            on.metrics(1)
        );
        p99.push(on_.p99);
    }
    p99.sort_by(f64::total_cmp);
    assert!(p99[2] <= 1.5 * alone.p99, "{p99:?} against {alone:?}");
}

#[test]
fn an_image_of_more_importance_gets_the_air_and_the_other_its_least_share() {
    for seed in [1, 2] {
        let alone = two_robots(seed, false, true, |_| ());
        let on = two_robots(seed, true, true, |_| ());
        let off = two_robots(seed, true, true, |c| c.yields = false);
        alone.print("alone");
        on.print("with a second robot that yields");
        off.print("with a second robot that does not");
        let image = |t: &Team| t.metrics(1).delay_ms.mean;
        assert!(
            image(&on) <= 1.4 * image(&alone),
            "{} against {}",
            image(&on),
            image(&alone)
        );
        assert!(
            image(&off) > 1.4 * image(&alone),
            "the scenario tests nothing: {}",
            image(&off)
        );
    }
}

#[test]
fn a_joystick_is_on_time_against_video_the_other_way() {
    for seed in [1, 2] {
        let mut t = Team::new(2, wifi(seed), &[(0, 1)], &CLOCKS, |_| ());
        t.stream((0, 1), topic("/joy", 120, 2), 64, ms(10), EXACT, RUN);
        t.stream((1, 0), topic("/video", 10, 2), 64_000, ms(150), EXACT, RUN);
        t.run_until(end());
        t.print("joystick against video");
        let joy = t.metrics(0);
        assert!(joy.delay_ms.p99 <= 2.0 && joy.delivery >= 0.995, "{joy:?}");
    }
}

/// Twists that nobody can foresee, 64 B about every 7 ms, and their answers 1 ms later, next to a file in the other
/// direction.
pub(crate) fn twists(seed: u64, file: proto::Reliability, change: impl Fn(&mut RadioConfig)) -> Team {
    let mut t = Team::new(2, wifi(seed), &[(0, 1)], &CLOCKS, change);
    let reliable = |name, priority| TopicConfig {
        reliability: proto::Reliability::Reliable,
        ..topic(name, priority, 64)
    };
    let twist = t.stream((0, 1), reliable("/twist", 110), 64, ms(7), ms(5), RUN);
    let answer = t.stream((1, 0), reliable("/answer", 110), 64, ms(7), EXACT, RUN);
    let asked = t.streams[twist].events.clone();
    t.streams[answer].events = asked.into_iter().map(|(t, g)| (t + ms(1), g)).collect();
    let file = TopicConfig {
        reliability: file,
        ..reliable("/file", 5)
    };
    t.stream((1, 0), file, 64_000, ms(100), EXACT, RUN);
    t.stream((0, 1), reliable("/ask", 5), 40, ms(100), EXACT, RUN);
    t.run_until(end());
    t
}

/// The same, but each twist follows 5 ms after the answer to the one before: a delay of one delays all that follow.
pub(crate) fn twists_in_a_row(seed: u64, file: bool, change: impl Fn(&mut RadioConfig)) -> Team {
    let mut t = Team::new(2, wifi(seed), &[(0, 1)], &CLOCKS, change);
    let reliable = |name, priority| TopicConfig {
        reliability: proto::Reliability::Reliable,
        ..topic(name, priority, 64)
    };
    let twist = t.stream((0, 1), reliable("/twist", 110), 64, RUN, EXACT, RUN);
    let answer = t.stream((1, 0), reliable("/answer", 110), 64, RUN, EXACT, RUN);
    if file {
        t.stream((1, 0), reliable("/file", 5), 256_000, ms(300), EXACT, RUN);
        t.stream((0, 1), reliable("/ask", 5), 40, ms(500), EXACT, RUN);
    }
    let (_, body) = t.streams[twist].events.pop_front().expect("one");
    t.streams[answer].events.clear();
    t.streams[twist]
        .events
        .push_back((Time::from_millis(1_500), body));
    let came = |t: &Team, host: usize, name: &str| {
        let h = &t.hosts[host];
        let topics = h.radio.remote_topics(h.peers[0].0);
        topics
            .filter(|(_, t)| t.name == name)
            .map(|(_, t)| t.delivered)
            .sum::<u64>()
    };
    let mut seen = [0, 0];
    while t.now < end() {
        let next = t.now + Duration::from_micros(50);
        t.run_until(next);
        for (i, (host, name, then, rest)) in [(1, "/twist", answer, 200), (0, "/answer", twist, 5_400)]
            .into_iter()
            .enumerate()
        {
            let n = came(&t, host, name);
            if n > seen[i] {
                seen[i] = n;
                let at = t.now + Duration::from_micros(rest);
                t.streams[then].events.push_back((at, body));
            }
        }
    }
    t
}

#[test]
fn twists_one_after_another_are_foreseen_beside_a_file() {
    for seed in 1..=3 {
        let alone = twists_in_a_row(seed, false, |_| ());
        let off = twists_in_a_row(seed, true, |c| c.yields = false);
        off.print("twists in a row beside a file that does not yield");
        let on = twists_in_a_row(seed, true, |_| ());
        on.print("twists in a row beside a file");
        for stream in [0, 1] {
            let p99 = |t: &Team| t.metrics(stream).delay_ms.p99;
            // A frame's airtime is 2.3 ms.
            assert!(p99(&on) <= p99(&alone) + 2.6, "{} {}", p99(&on), p99(&alone));
            assert!(p99(&on) <= 0.5 * p99(&off), "{} {}", p99(&on), p99(&off));
        }
        assert!(on.metrics(2).mbit_s > 0.8 * off.metrics(2).mbit_s);
    }
}

#[test]
fn unforeseen_twists_are_on_time_beside_a_file() {
    for (file, part) in [
        (proto::Reliability::Reliable, 0.5),
        (proto::Reliability::Bulk, 0.7),
    ] {
        for seed in 1..=4 {
            let off = twists(seed, file, |c| c.yields = false);
            off.print(&format!("twists beside a {file:?} file that does not yield"));
            let on = twists(seed, file, |_| ());
            on.print(&format!("twists beside a {file:?} file that yields"));
            for stream in [0, 1] {
                let (on, off) = (on.metrics(stream).delay_ms, off.metrics(stream).delay_ms);
                assert!(on.p99 <= part * off.p99, "{on:?} against {off:?}");
                assert!(on.mean <= 0.8 * off.mean, "{on:?} against {off:?}");
            }
            assert!(on.metrics(2).mbit_s > 0.9 * off.metrics(2).mbit_s);
            // No datagram is empty.
            let datagrams = |t: &Team| t.hosts[1].radio.stats().datagrams;
            assert!(datagrams(&on) < 2 * datagrams(&off));
        }
    }
}

#[test]
fn quick_sources_are_waited_for() {
    for (rate_mbit_s, period_us) in [(6, 5_200), (6, 7_000), (2, 10_000), (2, 20_000)] {
        for way in [(0, 1), (1, 0)] {
            let medium = MediumConfig {
                rate_bits: rate_mbit_s * 1_000_000,
                ..wifi(1)
            };
            let mut t = Team::new(2, medium, &[(0, 1)], &CLOCKS, |_| ());
            let strays = Duration::from_micros(60);
            t.stream(
                way,
                topic("/joy", 120, 2),
                64,
                Duration::from_micros(period_us),
                strays,
                RUN,
            );
            t.stream((1, 0), topic("/video", 10, 2), 64_000, ms(100), EXACT, RUN);
            t.run_until(end());
            t.print(&format!("every {period_us} µs at {rate_mbit_s} Mbit/s"));
            let (joy, video) = (t.metrics(0), t.metrics(1));
            // Less than a frame's airtime: 2.3 and 6.6 ms.
            let frame = if rate_mbit_s == 6 { 2.3 } else { 6.6 };
            assert!(joy.delay_ms.p99 <= frame / 2.0, "{joy:?}");
            assert!(video.mbit_s > 0.66 * rate_mbit_s as f64, "{video:?}");
        }
    }
}

/// Jain's index of fairness (Jain, Chiu and Hawe 1984).
fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    sum * sum / (values.len() as f64 * values.iter().map(|v| v * v).sum::<f64>())
}

#[test]
fn eight_robots_share_one_radio() {
    for (seed, rate) in [(1, 24_000_000), (2, 6_000_000)] {
        let medium = MediumConfig {
            rate_bits: rate,
            access: Access::Edca(medium::Mapping::default()),
            ..wifi(seed)
        };
        let pairs: Vec<_> = (0..8).map(|i| (i, (i + 1) % 8)).collect();
        let mut t = Team::new(8, medium, &pairs, &[], |_| ());
        let mut images = Vec::new();
        for i in 0..8 {
            let to = (i + 1) % 8;
            t.stream((i, to), topic("/laser", 100, 2), 1_000, ms(50), EXACT, RUN);
            images.push(t.stream((i, to), topic("/image", 10, 2), 16_000, ms(500), EXACT, RUN));
        }
        t.run_until(end());
        t.print(&format!("eight robots at {rate}"));
        let lasers = (0..16).step_by(2).map(|i| t.metrics(i).delivery);
        let least = lasers.fold(1.0, f64::min);
        let images: Vec<f64> = images.iter().map(|i| t.metrics(*i).mbit_s).collect();
        assert!(least >= 0.99, "{least}");
        assert!(jain(&images) >= 0.9, "{images:?}");
    }
}

/// Three hosts that fill the air at equal priority, with a laser each.
pub(crate) fn three_equals(seed: u64, auto: bool) -> Team {
    let mut t = Team::new(4, wifi(seed), &[(1, 0), (2, 0), (3, 0)], &CLOCKS, |c| {
        c.auto_rate = auto
    });
    for i in 1..4 {
        t.stream((i, 0), topic("/laser", 100, 2), 500, ms(100), EXACT, RUN);
        t.stream((i, 0), topic("/bulk", 10, 2), 64_000, ms(100), EXACT, RUN);
    }
    t.run_until(end());
    t
}

#[test]
fn equals_that_saturate_share_alike_and_keep_their_queues_short() {
    for (seed, auto) in [(1, false), (2, true)] {
        let t = three_equals(seed, auto);
        t.print(&format!("three equals, auto {auto}"));
        let bulk: Vec<f64> = [1, 3, 5].map(|i| t.metrics(i).mbit_s).into();
        assert!(jain(&bulk) >= 0.9, "{bulk:?}");
        assert!(bulk.iter().sum::<f64>() > 3.5, "{bulk:?}");
        for i in [0, 2, 4] {
            let laser = t.metrics(i);
            assert!(laser.delay_ms.p99 <= 40.0 && laser.delivery >= 0.99, "{laser:?}");
        }
    }
}

#[test]
fn receipts_of_equals_that_fill_the_air_both_ways_go_with_their_data() {
    for seed in [1, 2, 3] {
        let mut t = Team::new(2, wifi(seed), &[(0, 1)], &CLOCKS, |_| ());
        for ends in [(0, 1), (1, 0)] {
            t.stream(ends, topic("/scan", 10, 10), 4_250, ms(10), EXACT, RUN);
        }
        t.run_until(Time::from_millis(500) + RUN);
        t.print("scans both ways");
        let both = t.metrics(0).mbit_s + t.metrics(1).mbit_s;
        for host in &t.hosts {
            let peer = host.radio.peer_stats(host.peers[0].0).expect("a peer");
            let alone = peer.control_sent as f64 / peer.datagrams_sent as f64;
            println!("{:.1} % without data", alone * 100.0);
            assert!(alone < 0.04, "{alone:.3} of all datagrams are without data");
        }
        assert!(both > 4.9, "{both}");
    }
}

/// Mean delays, in each direction, of scans that go in both directions every `period`.
pub(crate) fn scans_both_ways(seed: u64, period: Duration) -> [f64; 2] {
    let mut t = Team::new(2, wifi(seed), &[(0, 1)], &CLOCKS, |_| ());
    for ends in [(0, 1), (1, 0)] {
        t.stream(ends, topic("/scan", 10, 100), 4_250, period, EXACT, RUN);
    }
    t.run_until(end());
    t.print(&format!("scans every {period:?} both ways"));
    [0, 1].map(|stream| {
        let m = t.metrics(stream);
        assert!(m.delivery >= 0.999, "{m:?}");
        m.delay_ms.mean
    })
}

#[test]
fn equals_that_nearly_fill_the_air_take_turns_and_no_queue_stays() {
    for seed in [1, 2, 3] {
        // Three full frames each: 0.92 of the air, in datagrams with room for 34 bytes more of messages than QUIC's.
        let delays = scans_both_ways(seed, Duration::from_micros(13_850));
        assert!(delays.iter().all(|d| *d < 30.0), "{delays:?}");
    }
}

#[test]
fn short_messages_fill_frames_also_where_another_peers_turn_is_next() {
    let mut t = Team::new(3, wifi(1), &[(0, 1), (0, 2)], &CLOCKS, |_| ());
    for to in [1, 2] {
        // A little more than three frames.
        t.stream((0, to), topic("/scan", 10, 10), 4_450, ms(10), EXACT, RUN);
    }
    t.run_until(Time::from_millis(500) + RUN);
    t.print("scans to two peers");
    let sent: Vec<u64> = [0, 1].map(|i| t.metrics(i).received).into();
    let peers = t.hosts[0].peers.iter();
    let stats = peers.map(|(p, _)| t.hosts[0].radio.peer_stats(*p).expect("a peer"));
    let datagrams: u64 = stats.map(|p| p.datagrams_sent - p.control_sent).sum();
    let each = datagrams as f64 / sent.iter().sum::<u64>() as f64;
    assert!(each < 3.3, "{each:.2} datagrams a scan");
    assert!(sent[0].abs_diff(sent[1]) <= 10, "{sent:?}");
}

#[test]
fn a_host_stops_claiming_what_it_has_sent() {
    for seed in [1, 2, 3] {
        // Of 6.7 ms of air each. A host that has sent all that it claimed no longer halves the other's air.
        let delays = scans_both_ways(seed, ms(40));
        assert!(delays.iter().all(|d| *d < 9.0), "{delays:?}");
    }
}

#[test]
fn a_saturating_topic_leaves_the_stated_share() {
    // By the radio's setting and by the topic's own.
    for by_topic in [false, true] {
        let share = 0.2;
        let mut t = Team::new(2, wifi(1), &[(0, 1)], &[], |c| {
            if !by_topic {
                c.min_share = share;
            }
        });
        let low = TopicConfig {
            min_share: if by_topic { share } else { 0.0 },
            ..topic("/low", 10, 2)
        };
        t.stream((0, 1), topic("/high", 100, 2), 64_000, ms(50), EXACT, RUN);
        t.stream((0, 1), low, 16_000, ms(20), EXACT, RUN);
        t.run_until(Time::from_millis(500) + RUN);
        t.print("a share of 20 %");
        let (high, low) = (t.metrics(0).mbit_s, t.metrics(1).mbit_s);
        let got = low / (high + low);
        assert!((0.18..0.22).contains(&got), "{got}");
    }
    let mut t = Team::new(2, wifi(1), &[(0, 1)], &[], |_| ());
    t.stream((0, 1), topic("/high", 100, 2), 64_000, ms(50), EXACT, RUN);
    t.stream((0, 1), topic("/low", 10, 2), 16_000, ms(20), EXACT, RUN);
    t.run_until(Time::from_millis(500) + RUN);
    assert!(
        t.metrics(1).mbit_s < 0.1,
        "strictly by priority: {:?}",
        t.metrics(1)
    );
}

#[test]
fn clocks_align_within_the_stated_error_and_delays_are_reported() {
    let t = two_robots(1, true, true, |_| ());
    let base = &t.hosts[0];
    for i in [1, 2] {
        let robot = &t.hosts[i];
        let truth = robot.clock.local(t.now).signed_since(base.clock.local(t.now)) as f64 / 1e3;
        for (host, peer, sign) in [(robot, 0, -1.0), (base, i - 1, 1.0)] {
            let stats = host.radio.peer_stats(host.peers[peer].0).expect("a peer");
            let clock = stats.clock.expect("aligned");
            let error = (clock.ahead_us - sign * truth).abs();
            println!("robot {i}: off by {error:.1} µs, stated {clock:?}");
            assert!(error <= clock.uncertainty_us, "off by {error} µs: {clock:?}");
            assert!(error < 500.0, "off by {error} µs: {clock:?}");
        }
    }
    let peer = base.peers[0].0;
    let (_, laser) = base
        .radio
        .remote_topics(peer)
        .find(|(_, t)| t.name == "/laser")
        .expect("a topic");
    let (reported, truth) = (laser.delay.expect("measured"), t.metrics(0).delay_ms.mean * 1e3);
    println!("{reported:?}, true mean {truth:.0} µs");
    assert!(
        reported.messages >= 80 && (reported.mean_us - truth).abs() < reported.uncertainty_us + 1e3,
        "{reported:?} {truth}"
    );
}

#[test]
fn a_message_past_its_deadline_at_the_receiver_is_dropped_and_counted() {
    // The radio is ten times slower than the sender estimates, so messages leave in time and arrive late.
    let medium = MediumConfig {
        rate_bits: 1_000_000,
        ..wifi(1)
    };
    let mut t = Team::new(2, medium, &[(0, 1)], &CLOCKS, |c| {
        c.airtime = proto::AirtimeModel::wifi(54_000_000);
    });
    let urgent = TopicConfig {
        deadline: Some(ms(12)),
        ..topic("/urgent", 100, 2)
    };
    t.stream((0, 1), urgent, 1_000, ms(40), EXACT, RUN);
    t.stream((0, 1), topic("/bulk", 10, 2), 64_000, ms(500), EXACT, RUN);
    t.run_until(end());
    t.print("late messages");
    let far = &t.hosts[1];
    let (_, at_far) = far
        .radio
        .remote_topics(far.peers[0].0)
        .find(|(_, s)| s.name == "/urgent")
        .expect("a topic");
    let late = at_far.drops.count(stats::DropReason::Expired);
    assert!(late > 20, "{at_far:?}");
    let sent = t.hosts[0]
        .radio
        .topic_stats(t.streams[0].topic)
        .expect("a topic")
        .sent;
    assert_eq!(sent, at_far.delivered + at_far.drops.total(), "{at_far:?}");
    // Delivered messages are past their deadline by at most the uncertainty of the clocks.
    let most = t.metrics(0).delay_ms.max;
    let clock = far
        .radio
        .peer_stats(far.peers[0].0)
        .expect("a peer")
        .clock
        .expect("aligned");
    assert!(
        most <= 12.0 + 2.0 * clock.uncertainty_us / 1e3 + 1.0,
        "{most} ms, {clock:?}"
    );
}

/// Three robots and their base: lasers of 1 KB at 20 Hz, an image of 64 KB at 2 Hz of one, joysticks at 50 Hz to two, all
/// but the image up to `strays` late.
pub(crate) fn robots(seed: u64, strays: Duration) -> Team {
    let mut t = Team::new(4, wifi(seed), &[(1, 0), (2, 0), (3, 0)], &CLOCKS, |_| ());
    for to in [1, 3] {
        t.stream((0, to), topic("/joy", 120, 2), 64, ms(20), strays, RUN);
    }
    for from in 1..4 {
        t.stream((from, 0), topic("/scan", 100, 2), 1_000, ms(50), strays, RUN);
    }
    t.stream((1, 0), topic("/image", 10, 2), 64_000, ms(500), EXACT, RUN);
    t.run_until(end());
    t
}

#[test]
fn joysticks_that_stray_are_on_time_and_short_messages_do_not_wait_for_them() {
    for (strays, laser, joystick) in [(1, 2.1, 2.4), (3, 1.8, 3.2)] {
        let teams: Vec<Team> = (1..=32).map(|seed| robots(seed, ms(strays))).collect();
        teams[0].print(&format!("robots whose messages are up to {strays} ms late"));
        let median = |value: &dyn Fn(&Team) -> f64| {
            let mut all: Vec<f64> = teams.iter().map(value).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        // A laser's frame takes the air for 1.5 ms, an image's for 2.3 ms.
        let mean = |t: &Team| (2..5).map(|i| t.metrics(i).delay_ms.mean).sum::<f64>() / 3.0;
        assert!(median(&mean) <= laser, "{strays}: {}", median(&mean));
        let p99 = median(&|t| t.metrics(0).delay_ms.p99.max(t.metrics(1).delay_ms.p99));
        assert!(p99 <= joystick, "{strays}: {p99}");
    }
}
