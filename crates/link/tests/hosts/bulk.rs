//! Large messages over a path that loses datagrams, from bus to bus.
use crate::common::*;
use bus::Stamp;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Carries datagrams between two links, and loses one in five, each way.
struct Path {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Path {
    /// `links` are the links' listening ports, `ends` the ports at which each finds the other.
    fn between(links: [u16; 2], ends: [u16; 2]) -> Path {
        let stop = Arc::new(AtomicBool::new(false));
        let sockets = ends.map(|p| Arc::new(UdpSocket::bind(("127.0.0.1", p)).expect("binds")));
        let threads = [0, 1].map(|i| {
            let (from, to, stop) = (sockets[i].clone(), sockets[1 - i].clone(), stop.clone());
            from.set_read_timeout(Some(Duration::from_millis(50)))
                .expect("sets");
            std::thread::spawn(move || {
                let (mut buffer, mut x) = ([0; 2048], 7 + i as u64);
                while !stop.load(Ordering::Relaxed) {
                    let Ok(n) = from.recv(&mut buffer) else { continue };
                    x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
                    if (x >> 33) % 5 != 0 {
                        let _ = to.send_to(&buffer[..n], ("127.0.0.1", links[1 - i]));
                    }
                }
            })
        });
        Path {
            stop,
            threads: threads.into(),
        }
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn byte(at: usize) -> u8 {
    (at * 31 + at / 253) as u8
}

#[test]
fn a_large_message_comes_whole_though_a_fifth_of_the_datagrams_is_lost() {
    let [x, y, to_y, to_x] = ports();
    let _path = Path::between([x, y], [to_y, to_x]);
    let text = |host: &str, own: u16, peer: &str, port: u16, direction: &str| {
        format!(
            "host: {host}
radio: {{bind: '127.0.0.1:{own}', rate: 50Mbit/s, medium: wire}}
peers: [{{name: {peer}, address: '127.0.0.1:{port}'}}]
topics: [{{name: /map, priority: 0, direction: {direction}, reliability: bulk}}]
"
        )
    };
    let robot = Host::start(&text("robot", x, "base", to_y, "out"));
    let base = Host::start(&text("base", y, "robot", to_x, "in"));
    let (map, got) = (robot.publisher("/map"), base.subscriber("/map"));
    until("the base publishes the topic", || {
        !base.published("/map").is_empty()
    });
    until("the robot's link is ready", || robot.status().ready());
    let lengths = [3_000_000, 10, 1_000_001];
    for n in lengths {
        let mut loan = map.loan(12, &[n]).expect("a loan");
        loan.control_mut().copy_from_slice(b"a map's head");
        loan.part_mut(0)
            .iter_mut()
            .enumerate()
            .for_each(|(i, b)| *b = byte(i));
        map.publish(loan, Stamp::default()).expect("publishes");
    }
    let mut left = lengths.to_vec();
    until("all have arrived", || {
        while let Ok(Some(m)) = got.take() {
            assert_eq!(m.control(), b"a map's head");
            let mut bytes = vec![0; m.part_len(0)];
            m.part(0).copy_to(0, &mut bytes);
            assert!(
                bytes.iter().enumerate().all(|(i, b)| *b == byte(i)),
                "{} B",
                bytes.len()
            );
            let at = left.iter().position(|n| *n == bytes.len());
            left.remove(at.expect("each arrives once"));
        }
        left.is_empty()
    });
    until("it is reported", || robot.status().sent[0].stats.sent == 3);
    let sent = robot.status().sent[0].stats.clone();
    assert_eq!((sent.drops.total(), sent.queued), (0, 0), "{sent:?}");
    assert!(sent.parity_bytes > 0 && sent.parity_bytes < 3_000_000, "{sent:?}");
    assert!(base.status().received[0].stats.repaired_fragments > 0);
}
