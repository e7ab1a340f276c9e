//! One test suite for all carriers: the guarantees that the link daemon relies on.

use super::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Instant;

/// No test takes this long unless it hangs.
const WATCHDOG: Duration = Duration::from_secs(30);

/// Two carriers that are each other's peer 0, and the operations of the suite on them.
pub(super) trait Rig: Sized {
    type Carrier: Carrier;

    fn new() -> Self;

    /// Carrier 0 or 1.
    fn carrier(&mut self, which: usize) -> &mut Self::Carrier;

    /// Closes carrier 1 and opens it again, like a restarting process.
    fn restart(&mut self);

    /// Gives carrier 0 another local address. Returns false if it has none.
    fn readdress(&mut self) -> bool {
        false
    }

    /// Sends bytes to carrier 0 that do not come from its peer.
    fn intrude(&mut self, bytes: &[u8]);
}

fn wait<R: Rig>(rig: &mut R) {
    for which in [0, 1] {
        rig.carrier(which).service().expect("goes on");
    }
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: 2_000_000,
    };
    let fd = rig
        .carrier(0)
        .readable()
        .try_clone_to_owned()
        .expect("a descriptor");
    let other = rig.carrier(1).readable();
    let mut fds = [
        PollFd::new(&fd, PollFlags::IN),
        PollFd::from_borrowed_fd(other, PollFlags::IN),
    ];
    let _ = poll(&mut fds, Some(&limit));
}

fn receive<R: Rig>(rig: &mut R, which: usize) -> Option<Vec<u8>> {
    let most = rig.carrier(which).max_datagram() * rig.carrier(which).joined();
    let mut buffer = vec![0; most + 1];
    let got = rig.carrier(which).receive(&mut buffer).expect("goes on")?;
    assert_eq!(got.peer, 0);
    Some(got.datagram.to_vec())
}

/// Sends `datagram` repeatedly until it arrives, since carriers may lose datagrams.
fn deliver<R: Rig>(rig: &mut R, from: usize, datagram: &[u8]) {
    let start = Instant::now();
    let mut sent: Option<Instant> = None;
    loop {
        assert!(start.elapsed() < WATCHDOG, "{} bytes never came", datagram.len());
        let again = sent.is_none_or(|t| t.elapsed() > Duration::from_millis(200));
        if again && rig.carrier(from).ready() {
            match rig.carrier(from).send(0, 100, datagram).expect("goes on") {
                Sent::Taken => sent = Some(Instant::now()),
                // Not connected yet.
                Sent::Lost | Sent::NotReady => {}
            }
            // On a wire, datagrams are batched together with the carrier's own packets.
            assert!(rig.carrier(from).held() <= 1 || rig.carrier(from).batch().is_some());
            rig.carrier(from).flush().expect("goes on");
        }
        while let Some(got) = receive(rig, 1 - from) {
            if got == datagram {
                return;
            }
        }
        while receive(rig, from).is_some() {}
        wait(rig);
    }
}

pub(super) fn datagrams_come_whole_and_apart<R: Rig>() {
    let mut rig = R::new();
    let max = rig.carrier(0).max_datagram();
    for from in [0, 1] {
        for len in [1, 2, 3, 64, 253, 254, 255, 256, max - 1, max] {
            let mark = (len as u8).wrapping_mul(31).wrapping_add(from as u8);
            let datagram: Vec<u8> = (0..len.min(max)).map(|i| (i as u8).wrapping_mul(mark)).collect();
            deliver(&mut rig, from, &datagram);
        }
        deliver(&mut rig, from, &vec![0; max]);
        deliver(&mut rig, from, &vec![0xff; max]);
        // On a wire, also those that the carrier splits and joins.
        let most = match rig.carrier(0).batch() {
            Some(_) => rig.carrier(0).joined() * max,
            None => max,
        };
        for len in [max + 1, 2 * max, most - 1, most]
            .into_iter()
            .filter(|n| *n <= most)
        {
            deliver(
                &mut rig,
                from,
                &(0..len).map(|i| (i / 3) as u8).collect::<Vec<_>>(),
            );
        }
    }
}

pub(super) fn only_oversized_datagrams_are_lost<R: Rig>() {
    let mut rig = R::new();
    deliver(&mut rig, 0, b"before");
    let large = vec![7; rig.carrier(0).max_datagram() * rig.carrier(0).joined() + 1];
    while !rig.carrier(0).ready() {
        wait(&mut rig);
    }
    assert_eq!(rig.carrier(0).send(0, 0, &large).expect("goes on"), Sent::Lost);
    assert_eq!(rig.carrier(0).send(1, 0, b"nobody").expect("goes on"), Sent::Lost);
    deliver(&mut rig, 0, b"after");
}

pub(super) fn at_most_one_is_inside<R: Rig>() {
    let mut rig = R::new();
    deliver(&mut rig, 0, b"connected");
    let datagram = vec![5; rig.carrier(0).max_datagram()];
    let (mut taken, mut came) = (0, 0);
    let start = Instant::now();
    while taken < 200 {
        assert!(start.elapsed() < WATCHDOG);
        if rig.carrier(0).ready() {
            match rig.carrier(0).send(0, 10, &datagram).expect("goes on") {
                Sent::Taken => taken += 1,
                Sent::NotReady => panic!("it was ready"),
                Sent::Lost => {}
            }
            // On a wire, datagrams are batched.
            assert!(
                rig.carrier(0).held() <= 1 || rig.carrier(0).batch().is_some(),
                "a queue"
            );
            rig.carrier(0).flush().expect("goes on");
            if !rig.carrier(0).ready() {
                // If the carrier holds one, it accepts no second one.
                let second = rig.carrier(0).send(0, 10, &datagram).expect("goes on");
                assert!(
                    second != Sent::Taken || rig.carrier(0).held() <= 1 || rig.carrier(0).batch().is_some()
                );
                rig.carrier(0).flush().expect("goes on");
            }
        } else {
            wait(&mut rig);
        }
        while let Some(got) = receive(&mut rig, 1) {
            assert!(got == datagram || got == b"connected");
            came += usize::from(got == datagram);
        }
    }
    while came < taken && start.elapsed() < WATCHDOG {
        wait(&mut rig);
        while receive(&mut rig, 1).is_some() {
            came += 1;
        }
    }
    assert!(came >= taken, "{came} of {taken} came over a line without loss");
}

pub(super) fn a_peer_may_go_and_come_back<R: Rig>() {
    let mut rig = R::new();
    deliver(&mut rig, 0, b"first life");
    for life in 0..3u8 {
        rig.restart();
        deliver(&mut rig, 0, &[b'0', life]);
        deliver(&mut rig, 1, &[b'1', life]);
    }
}

pub(super) fn an_address_may_change<R: Rig>() {
    let mut rig = R::new();
    deliver(&mut rig, 0, b"from home");
    for there in 0..2u8 {
        if !rig.readdress() {
            return;
        }
        deliver(&mut rig, 0, &[b'0', there]);
        deliver(&mut rig, 1, &[b'1', there]);
    }
}

pub(super) fn foreign_bytes_are_refused_and_counted<R: Rig>() {
    let mut rig = R::new();
    deliver(&mut rig, 0, b"before");
    let before = rig.carrier(0).refused();
    rig.intrude(b"let me in, I am a datagram of somebody whom you do not know");
    let start = Instant::now();
    while rig.carrier(0).refused() == before {
        assert!(start.elapsed() < WATCHDOG, "not counted");
        assert_eq!(receive(&mut rig, 0), None, "it was accepted");
        wait(&mut rig);
    }
    deliver(&mut rig, 1, b"after");
}

/// Runs the suite over a rig.
macro_rules! conformance {
    ($name:ident, $rig:ty) => {
        mod $name {
            use super::*;
            use crate::carrier::conformance as suite;

            #[test]
            fn datagrams_come_whole_and_apart() {
                suite::datagrams_come_whole_and_apart::<$rig>();
            }

            #[test]
            fn only_oversized_datagrams_are_lost() {
                suite::only_oversized_datagrams_are_lost::<$rig>();
            }

            #[test]
            fn at_most_one_is_inside() {
                suite::at_most_one_is_inside::<$rig>();
            }

            #[test]
            fn a_peer_may_go_and_come_back() {
                suite::a_peer_may_go_and_come_back::<$rig>();
            }

            #[test]
            fn an_address_may_change() {
                suite::an_address_may_change::<$rig>();
            }

            #[test]
            fn foreign_bytes_are_refused_and_counted() {
                suite::foreign_bytes_are_refused_and_counted::<$rig>();
            }
        }
    };
}
pub(super) use conformance;
