//! Numbered, stamped packets from one host to another: losses and delays in one direction.
//!
//! All hosts of a lab share this machine's CLOCK_MONOTONIC, so a delay needs no second clock.

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use stats::{Moments, Time};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The size of a command to a robot.
pub(crate) const SIZE: usize = 64;
/// The largest payload of an Ethernet frame.
const LARGEST: usize = 1472;
/// Maximum number of packets in one direction.
const MOST: u32 = 1_000_000;

/// One end of a probe, for `ropewalk bench lab`.
#[derive(Clone, Debug, Subcommand)]
pub enum Role {
    /// Receives until standard input ends, then prints numbers and delays as JSON.
    Receive {
        /// The UDP port.
        #[arg(long)]
        port: u16,
    },
    /// Sends packets on an absolute schedule.
    Send {
        /// Address and port of the receiver.
        #[arg(long)]
        to: SocketAddr,
        /// Number of packets.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
        count: u32,
        /// Interval in microseconds.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        period_us: u32,
        /// Payload bytes of each packet.
        #[arg(long, default_value_t = SIZE as u32, value_parser = clap::value_parser!(u32).range(16..=LARGEST as i64))]
        size: u32,
    },
}

/// Runs one end. Blocks until it is done.
///
/// # Errors
/// The system's error for a socket.
pub fn run(role: &Role) -> io::Result<()> {
    match role {
        Role::Receive { port } => receive(*port),
        Role::Send {
            to,
            count,
            period_us,
            size,
        } => {
            let every = Duration::from_micros((*period_us).into());
            send(*to, *count, every, *size as usize)
        }
    }
}

fn send(to: SocketAddr, count: u32, every: Duration, size: usize) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to)?;
    let start = clock::monotonic() + Duration::from_millis(100);
    let mut packet = vec![0; size.max(16)];
    for number in 0..count {
        clock::sleep_until(start + every * number, clock::SPIN, || false)?;
        packet[..8].copy_from_slice(&u64::from(number).to_le_bytes());
        packet[8..16].copy_from_slice(&clock::monotonic().0.to_le_bytes());
        match socket.send(&packet) {
            // Counts as lost.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
            sent => sent.map(|_| ())?,
        }
    }
    Ok(())
}

fn receive(port: u16) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    std::thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        end.store(true, Ordering::Release);
    });
    let mut said = Said::default();
    let mut packet = [0; LARGEST];
    while !ended.load(Ordering::Acquire) && said.number.len() < 2 * MOST as usize {
        let Ok(16..) = socket.recv(&mut packet) else {
            continue;
        };
        let now = clock::monotonic();
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| packet[at + i]));
        said.number.push(word(0));
        said.arrival_ns.push(now.0);
        said.delay_ns.push(now.since(Time(word(8))).as_nanos() as u64);
    }
    serde_json::to_writer(io::stdout().lock(), &said)?;
    writeln!(io::stdout())
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Said {
    number: Vec<u64>,
    delay_ns: Vec<u64>,
    arrival_ns: Vec<u64>,
}

/// Packets that arrived in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arrivals {
    /// Lost packets, in per cent.
    pub(crate) lost_percent: f64,
    /// Mean length of a run of lost packets; 0 if none was lost.
    pub(crate) burst_packets: f64,
    pub(crate) delay_mean_ms: f64,
    pub(crate) delay_std_ms: f64,
    pub(crate) delay_min_ms: f64,
    pub(crate) delay_max_ms: f64,
    /// Mean absolute difference of the delays of two successive arrivals: the value to which RFC 3550's jitter tends.
    pub(crate) jitter_ms: f64,
    /// Packets that arrived more than once.
    pub(crate) duplicates: f64,
    /// Packets that arrived after one with a higher number.
    pub(crate) reordered: f64,
    /// Arrival times, in order.
    pub(crate) arrival_ns: Vec<u64>,
}

impl Arrivals {
    /// Parses a receiver's output, for `count` sent packets.
    pub(crate) fn read(json: &str, count: u32) -> Result<Arrivals, String> {
        let said: Said =
            serde_json::from_str(json).map_err(|e| format!("cannot parse the probe's result: {e}"))?;
        let mut here = vec![false; count as usize];
        let (mut duplicates, mut reordered, mut highest) = (0u32, 0u32, 0);
        let mut delay = Moments::default();
        let (mut min, mut max) = (f64::INFINITY, 0.0f64);
        let n = said.number.len();
        if said.delay_ns.len() != n || said.arrival_ns.len() != n {
            return Err("the probe returned different counts of times and numbers".into());
        }
        for (number, ns) in said.number.iter().zip(&said.delay_ns) {
            let known = usize::try_from(*number).ok().and_then(|n| here.get_mut(n));
            let known = known.ok_or_else(|| format!("packet {number} arrived, which was never sent"))?;
            let ms = *ns as f64 / 1e6;
            duplicates += u32::from(*known);
            *known = true;
            reordered += u32::from(*number < highest);
            highest = highest.max(*number);
            delay.record(ms);
            (min, max) = (min.min(ms), max.max(ms));
        }
        if said.number.is_empty() {
            return Err("no packet of the probe arrived".into());
        }
        let steps = said.delay_ns.windows(2).map(|two| two[0].abs_diff(two[1]));
        let jitter_ns: u64 = steps.sum();
        let lost = here.iter().filter(|h| !**h).count();
        let starts = here.iter().zip(std::iter::once(&true).chain(&here));
        let bursts = starts.filter(|(now, before)| !**now && **before).count();
        Ok(Arrivals {
            lost_percent: lost as f64 / f64::from(count) * 100.0,
            burst_packets: lost as f64 / bursts.max(1) as f64,
            delay_mean_ms: delay.mean(),
            delay_std_ms: delay.std(),
            delay_min_ms: min,
            delay_max_ms: max,
            jitter_ms: jitter_ns as f64 / (n - 1).max(1) as f64 / 1e6,
            duplicates: duplicates.into(),
            reordered: reordered.into(),
            arrival_ns: said.arrival_ns,
        })
    }

    /// Number of packets that arrived from `from` on and before `until`.
    pub(crate) fn between(&self, from: u64, until: u64) -> usize {
        self.arrival_ns
            .iter()
            .filter(|t| (from..until).contains(t))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_come_in_runs_and_delays_have_moments() {
        let said = r#"{"number": [0, 3, 4, 3, 2, 9], "delay_ns": [1000000, 3000000, 2000000, 2000000, 2000000, 2000000], "arrival_ns": [1, 2, 3, 4, 5, 6]}"#;
        let a = Arrivals::read(said, 11).expect("is right");
        // 1, 5 to 8 and 10 are missing: three runs of six packets.
        assert!((a.lost_percent - 600.0 / 11.0).abs() < 1e-9, "{a:?}");
        assert_eq!((a.burst_packets, a.duplicates, a.reordered), (2.0, 1.0, 2.0));
        assert_eq!((a.delay_mean_ms, a.delay_min_ms, a.delay_max_ms), (2.0, 1.0, 3.0));
        // 2, 1, 0, 0, 0 ms.
        assert_eq!(a.jitter_ms, 0.6);
        let whole = Arrivals::read(
            r#"{"number": [0, 1], "delay_ns": [1, 1], "arrival_ns": [5, 9]}"#,
            2,
        )
        .expect("is right");
        assert_eq!((whole.lost_percent, whole.burst_packets), (0.0, 0.0));
        assert_eq!((whole.between(5, 9), whole.between(5, 10)), (1, 2));
    }

    #[test]
    fn inconsistent_arrivals_are_refused() {
        for bad in [
            "",
            r#"{"number": [], "delay_ns": [], "arrival_ns": []}"#,
            r#"{"number": [2], "delay_ns": [1], "arrival_ns": [1]}"#,
            r#"{"number": [1], "delay_ns": [], "arrival_ns": [1]}"#,
            r#"{"number": [1], "delay_ns": [1], "arrival_ns": []}"#,
            r#"{"number": [-1], "delay_ns": [1], "arrival_ns": [1]}"#,
        ] {
            assert!(Arrivals::read(bad, 2).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_probe_reaches_its_receiver() {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
        let to = receiver.local_addr().expect("is bound");
        receiver
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("is set");
        send(to, 3, Duration::from_millis(1), SIZE).expect("sends");
        for number in 0..3u64 {
            let mut packet = [0; SIZE];
            assert_eq!(receiver.recv(&mut packet).expect("arrives"), SIZE);
            assert_eq!(packet[..8], number.to_le_bytes());
        }
    }
}
