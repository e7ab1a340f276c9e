//! An unauthenticated sender that floods a link, from many addresses of the link's own host, so that the flood takes no
//! airtime.

use super::{Gate, PeerError, say};
use link::unauthenticated::{UnauthenticatedPeer, admission_secret};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use serde_json::json;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Handshakes that are started and never continued, each from its own address.
const HALF_OPEN: usize = 10_000;
/// Maximum number of the true peer's datagrams that are recorded for replay.
const REPLAYS: usize = 1_000;
/// Sockets for datagrams from few addresses.
const SOCKETS: usize = 64;
/// Interval of the bursts.
const TICK: Duration = Duration::from_millis(2);
/// Bytes of IPv4's and UDP's headers.
const IP_UDP: usize = 28;

/// Target and parameters of the flood.
#[derive(clap::Args, Clone, Debug)]
pub struct Flood {
    /// The link's address.
    #[arg(long)]
    target: SocketAddrV4,
    /// The link's host.
    #[arg(long)]
    host: String,
    /// The link's configuration, by which its process is found.
    #[arg(long)]
    of: PathBuf,
    /// The team's connection secret (`admission`), which every other handshake contains.
    #[arg(long)]
    admission: PathBuf,
    /// Datagrams per second; 0 only watches.
    #[arg(long)]
    rate: u32,
    /// Duration in seconds.
    #[arg(long)]
    seconds: u32,
}

/// Number of datagrams sent, by kind.
#[derive(Default)]
struct Sent {
    garbage: u64,
    handshakes: u64,
    replays: u64,
    forged: u64,
}

/// Floods the link. Prints `values`: number of datagrams sent of each kind (garbage, handshakes, replays, forged
/// sizes), bytes received in answer, and the link's resident bytes before, at maximum, and after.
pub(super) fn run(flood: &Flood) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let process = find(&flood.of)?;
    let mut arsenal = Arsenal::new(flood)?;
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let before = resident(process)?;
    let (mut sent, mut most) = (Sent::default(), before);
    let begin = clock::monotonic();
    let end = begin + Duration::from_secs(flood.seconds.into());
    let mut done = 0;
    let mut tick = begin;
    while tick < end && !gate.stopped() {
        let due = u64::from(flood.rate) * tick.since(begin).as_millis() as u64 / 1_000;
        arsenal.listen()?;
        for n in done..due {
            arsenal.fire(n, &mut sent);
        }
        done = due;
        most = most.max(resident(process)?);
        tick += TICK;
        clock::sleep_until(tick, Duration::ZERO, || gate.stopped())?;
    }
    let after = resident(process)?;
    let values = [
        sent.garbage,
        sent.handshakes,
        sent.replays,
        sent.forged,
        arsenal.answered,
        before,
        most.max(after),
        after,
    ];
    say(&json!({ "values": values.map(|n| n as f64) }))?;
    gate.wait_for_stop();
    Ok(())
}

struct Arsenal {
    target: SocketAddrV4,
    sockets: Vec<UdpSocket>,
    first_packets: Vec<Vec<u8>>,
    /// Captures packets that arrive at this host.
    ear: OwnedFd,
    heard: Vec<Vec<u8>>,
    seed: u64,
    answered: u64,
    begun: usize,
}

impl Arsenal {
    fn new(flood: &Flood) -> Result<Arsenal, PeerError> {
        let text = std::fs::read_to_string(&flood.admission)?;
        let secret = admission_secret(&text)
            .ok_or_else(|| PeerError::Type("the admission secret is not a hexadecimal number".into()))?;
        let mut senders = [
            UnauthenticatedPeer::new(None),
            UnauthenticatedPeer::new(Some(secret)),
        ];
        let count = if flood.rate == 0 { 0 } else { HALF_OPEN };
        let packet = |i: usize| senders[i % 2].first_packet(&flood.host, flood.target.into());
        let first_packets: Option<Vec<_>> = (0..count).map(packet).collect();
        let sockets = (0..SOCKETS)
            .map(|i| bind(i as u32 + 2))
            .collect::<io::Result<_>>()?;
        // ETH_P_IP, in network order.
        let ip = NonZeroU32::new(u32::from(0x0800u16.to_be())).map(rustix::net::Protocol::from_raw);
        let ear = socket_with(
            AddressFamily::PACKET,
            SocketType::DGRAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            ip,
        );
        Ok(Arsenal {
            target: flood.target,
            sockets,
            first_packets: first_packets.ok_or_else(|| PeerError::Type("cannot start a handshake".into()))?,
            ear: ear.map_err(io::Error::from)?,
            heard: Vec::new(),
            seed: 1,
            answered: 0,
            begun: 0,
        })
    }

    fn random(&mut self, below: usize) -> usize {
        self.seed = self
            .seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.seed >> 33) as usize % below
    }

    /// Sends one datagram; one that the socket does not accept is not counted.
    fn fire(&mut self, n: u64, sent: &mut Sent) {
        let socket = n as usize % SOCKETS;
        let (packet, counter) = match n % 4 {
            0 => {
                let len = 1 + self.random(1_472);
                let mut garbage: Vec<u8> = (0..len).map(|_| self.random(256) as u8).collect();
                if self.random(2) == 0 && len > 6 {
                    // The beginning of a first packet of QUIC.
                    garbage[..6].copy_from_slice(&[0xC3, 0, 0, 0, 1, 16]);
                }
                (garbage, &mut sent.garbage)
            }
            1 => {
                let at = self.begun % self.first_packets.len();
                self.begun += 1;
                // From its own address and port.
                let from = bind(256 + at as u32);
                let went = from.and_then(|s| s.send_to(&self.first_packets[at], self.target));
                sent.handshakes += u64::from(went.is_ok());
                return;
            }
            2 if !self.heard.is_empty() => {
                let at = self.random(self.heard.len());
                (self.heard[at].clone(), &mut sent.replays)
            }
            2 => return,
            _ => {
                // A handshake with wrong lengths, or longer or shorter than its lengths say.
                let at = self.random(self.first_packets.len());
                let mut forged = self.first_packets[at].clone();
                match self.random(3) {
                    0 => forged.truncate(1 + self.random(forged.len())),
                    1 => forged.resize(1_472, 0xFF),
                    _ => {
                        let at = 5 + self.random(60);
                        forged.iter_mut().skip(at).take(2).for_each(|b| *b = 0xFF);
                    }
                }
                (forged, &mut sent.forged)
            }
        };
        if self.sockets[socket].send_to(&packet, self.target).is_ok() {
            *counter += 1;
        }
    }

    /// Receives answers, and the true peer's datagrams.
    fn listen(&mut self) -> Result<(), PeerError> {
        let mut buffer = [0; 2_048];
        for socket in &self.sockets {
            while let Ok((n, _)) = socket.recv_from(&mut buffer) {
                self.answered += n as u64;
            }
        }
        for _ in 0..256 {
            let n = match recv(&self.ear, &mut buffer[..], RecvFlags::empty()) {
                Ok((n, _)) => n,
                Err(rustix::io::Errno::AGAIN) => break,
                Err(e) => return Err(io::Error::from(e).into()),
            };
            if let Some(datagram) = self.of_peer(&buffer[..n]) {
                let datagram = datagram.to_vec();
                if self.heard.len() < REPLAYS {
                    self.heard.push(datagram);
                } else {
                    let at = self.random(REPLAYS);
                    self.heard[at] = datagram;
                }
            }
        }
        Ok(())
    }

    /// Returns the datagram in an IPv4 packet, if another host sent it to the link.
    fn of_peer<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        let head = packet.get(..IP_UDP).filter(|h| h[0] == 0x45 && h[9] == 17)?;
        let address = |at: usize| Ipv4Addr::from([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let port = u16::from_be_bytes([head[22], head[23]]);
        let to_link = (address(16), port) == (*self.target.ip(), self.target.port());
        (to_link && !address(12).is_loopback()).then(|| &packet[IP_UDP..])
    }
}

/// Opens a socket with the `n`th address of this host's loopback network.
fn bind(n: u32) -> io::Result<UdpSocket> {
    let address = Ipv4Addr::from(0x7F00_0000 | n);
    let socket = UdpSocket::bind(SocketAddrV4::new(address, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns the process id of the link daemon that runs with this configuration.
fn find(configuration: &Path) -> Result<u32, PeerError> {
    let wanted = configuration.to_string_lossy();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        // Not the process that entered the lab's host to start it.
        if words.get(1).is_some_and(|w| w == "link") && words.get(2).is_some_and(|w| *w == wanted) {
            return Ok(pid);
        }
    }
    Err(PeerError::Type(format!("no link runs with {wanted}")))
}

/// Returns the resident memory of a process in bytes.
fn resident(process: u32) -> Result<u64, PeerError> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm"))?;
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    let pages = pages.ok_or_else(|| PeerError::Type("no memory size in /proc".into()))?;
    Ok(pages * rustix::param::page_size() as u64)
}
