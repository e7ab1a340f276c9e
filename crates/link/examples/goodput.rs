//! Saturated goodput of QUIC and UDP between two carriers in one thread, over loopback sockets: the cost of
//! encryption and copies, without a radio. Usage: goodput [SECONDS]

use link::keys::{Bundle, Team};
use link::{Carrier, QuicCarrier, QuicConfig, Sent, TeamPeer, UdpCarrier};
use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const SIZE: usize = 1400;

fn free() -> std::io::Result<SocketAddr> {
    UdpSocket::bind("127.0.0.1:0")?.local_addr()
}

/// Received datagrams per second, and the number of lost ones.
fn saturate(
    from: &mut dyn Carrier,
    to: &mut dyn Carrier,
    time: Duration,
) -> Result<(f64, u64), Box<dyn Error>> {
    let mut buffer = [0; 1500];
    let (mut sent, mut came) = (0u64, 0u64);
    let start = Instant::now();
    while start.elapsed() < time {
        if from.ready() && from.send(0, 0, &[7; SIZE])? == Sent::Taken {
            sent += 1;
        }
        while to.receive(&mut buffer)?.is_some() {
            came += 1;
        }
        to.service()?;
        while from.receive(&mut buffer)?.is_some() {}
        from.service()?;
    }
    Ok((
        came as f64 / start.elapsed().as_secs_f64(),
        sent.saturating_sub(came),
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(3.0), |s| s.parse())?;
    let time = Duration::from_secs_f64(seconds);
    let folder = tempfile::tempdir()?;
    let team = Team::create(&folder.path().join("team"), "goodput")?;
    let (a, b) = (free()?, free()?);
    let mut quic = Vec::new();
    for (name, own, peer, at) in [("base", a, "robot", b), ("robot", b, "base", a)] {
        let bundle = Bundle::load(&team.add_host(name, Duration::from_secs(86_400))?, name)?;
        let peer = TeamPeer {
            name: peer.into(),
            address: at,
        };
        quic.push(QuicCarrier::bind(QuicConfig::new(own, vec![peer]), bundle)?);
    }
    let (c, d) = (free()?, free()?);
    let mut udp = [UdpCarrier::bind(c, vec![d])?, UdpCarrier::bind(d, vec![c])?];
    while !quic.iter().all(|c| c.connected(0)) {
        for c in &mut quic {
            c.receive(&mut [0; 1500])?;
            c.service()?;
        }
    }
    for _ in 0..3 {
        for carrier in ["udp", "quic"] {
            let (rate, lost) = if carrier == "udp" {
                let [from, to] = &mut udp;
                saturate(from, to, time)?
            } else {
                let (from, to) = quic.split_at_mut(1);
                saturate(&mut from[0], &mut to[0], time)?
            };
            let mbit = rate * SIZE as f64 * 8.0 / 1e6;
            println!(
                r#"{{"carrier":"{carrier}","datagram_bytes":{SIZE},"goodput_mbit_s":{mbit:.0},"lost":{lost}}}"#
            );
        }
    }
    Ok(())
}
