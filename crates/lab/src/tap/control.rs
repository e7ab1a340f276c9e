//! Answers requests on the control socket.

use super::air::{Capturing, Ended};
use super::emulator::Emulator;
use super::pcap;
use super::request::{Entrance, MAX_REQUEST, Namespace, Reply, Request, read_line, to_line};
use super::status::{
    CategoryStatus, HostStatus, InterfaceStatus, MediumStatus, StationStatus, Status, Timing,
};
use clock::{PollFd, PollFlags};
use medium::{Category, CategoryStats};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Connections that are answered at once; more are closed.
const MAX_VISITORS: usize = 64;
/// A request is one short line; a client that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// The bus's runtime folder on every host: in the host's own /dev/shm.
const BUS_FOLDER: &str = "/dev/shm/ropewalk";

/// Number of connections being answered.
#[derive(Clone, Default)]
pub(crate) struct Visitors(Arc<AtomicUsize>);

impl Visitors {
    /// Answers one connection on its own thread.
    pub(crate) fn receive(&self, emulator: &Arc<Emulator>, stream: UnixStream) {
        if self.0.fetch_add(1, Ordering::Relaxed) >= MAX_VISITORS {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let (here, emulator) = (Here(self.0.clone()), emulator.clone());
        let spawned = std::thread::Builder::new().name("control".into()).spawn(move || {
            let _here = here;
            if let Err(error) = answer(&emulator, stream) {
                tracing::debug!(%error, "a client disconnected");
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "cannot answer a request");
        }
    }
}

struct Here(Arc<AtomicUsize>);

impl Drop for Here {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(emulator: &Emulator, mut stream: UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = read_line(&mut stream, MAX_REQUEST)?;
    let refuse = |mut stream: &UnixStream, why: String| stream.write_all(&to_line(&Reply::<()>::Error(why)));
    let request = match Request::parse(&line) {
        Ok(request) => request,
        Err(why) => return refuse(&stream, why),
    };
    let done = match request {
        Request::Status {} => match status(emulator) {
            Ok(status) => return stream.write_all(&to_line(&Reply::Ok(status))),
            Err(why) => Err(why),
        },
        Request::Set { target, set } => set_now(emulator, &target, set),
        Request::Enter { host } => match find(emulator, &host) {
            Ok(host) => return let_in(emulator, &stream, host),
            Err(why) => Err(why),
        },
        Request::Pcap { host, count } => match find(emulator, &host) {
            Ok(host) => return capture(emulator, &stream, host, count),
            Err(why) => Err(why),
        },
        Request::Hold {} => {
            stream.write_all(&to_line(&Reply::Ok(())))?;
            stream.set_read_timeout(None)?;
            // Input is ignored; only the end of the connection matters.
            while matches!(stream.read(&mut [0; 64]), Ok(1..)) {}
            return (&emulator.end).write_all(b"x");
        }
        Request::Down {} => {
            stream.write_all(&to_line(&Reply::Ok(())))?;
            return (&emulator.end).write_all(b"x");
        }
    };
    match done {
        Ok(()) => stream.write_all(&to_line(&Reply::Ok(()))),
        Err(why) => refuse(&stream, why),
    }
}

fn find(emulator: &Emulator, host: &str) -> Result<usize, String> {
    let hosts = &emulator.plan.hosts;
    hosts
        .iter()
        .position(|h| h == host)
        .ok_or_else(|| format!("no host '{host}'; there are {}", hosts.join(", ")))
}

fn set_now(emulator: &Emulator, target: &str, set: crate::scenario::Settings) -> Result<(), String> {
    let change = emulator.scenario.change(target, set)?;
    emulator.air.change(change).unwrap_or_else(|e| Err(e.to_string()))
}

fn let_in(emulator: &Emulator, stream: &UnixStream, host: usize) -> io::Result<()> {
    let inside = &emulator.hosts[host];
    let mut all: Vec<(Namespace, BorrowedFd<'_>)> = vec![
        (Namespace::Pid, emulator.pid.as_fd()),
        (Namespace::Ipc, inside.ipc.as_fd()),
        (Namespace::Uts, inside.uts.as_fd()),
        (Namespace::Net, inside.net.as_fd()),
        (Namespace::Mount, inside.mount.as_fd()),
    ];
    if let Some(user) = &emulator.user {
        // First: it grants the rights for the others.
        all.insert(0, (Namespace::User, user.as_fd()));
    }
    let name = &emulator.plan.hosts[host];
    let environment = BTreeMap::from(
        [
            ("ROS_IP", emulator.plan.address(host).to_string()),
            ("ROS_HOSTNAME", name.clone()),
            ("ROPEWALK_RUNTIME_DIR", BUS_FOLDER.to_owned()),
            ("ROPEWALK_LAB", emulator.name.clone()),
            ("ROPEWALK_LAB_HOST", name.clone()),
        ]
        .map(|(k, v)| (k.to_owned(), v)),
    );
    let (namespaces, fds): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let line = to_line(&Reply::Ok(Entrance {
        namespaces,
        environment,
    }));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(6))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = rustix::net::sendmsg(stream, &[IoSlice::new(&line)], &mut control, SendFlags::NOSIGNAL)?;
    let mut rest = stream;
    rest.write_all(&line[sent..])
}

fn capture(emulator: &Emulator, mut stream: &UnixStream, host: usize, count: Option<u64>) -> io::Result<()> {
    let Capturing { frames, missed } = match emulator.air.capture(host) {
        Ok(taken) => taken,
        Err(why) => return stream.write_all(&to_line(&Reply::<()>::Error(why))),
    };
    stream.write_all(&to_line(&Reply::Ok(())))?;
    stream.write_all(&pcap::header())?;
    let mut left = count.unwrap_or(u64::MAX);
    let mut out = Vec::new();
    while left > 0 {
        match frames.recv_timeout(Duration::from_millis(200)) {
            Ok(frame) => {
                out.clear();
                pcap::record(&frame, &mut out);
                left -= 1;
                stream.write_all(&out)?;
            }
            Err(RecvTimeoutError::Timeout) => {
                let mut fds = [PollFd::new(&stream, PollFlags::IN)];
                if clock::wait(&mut fds, Some(clock::monotonic()), Duration::ZERO)? {
                    // The client only closes the connection from here on.
                    break;
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let missed = missed.load(Ordering::Relaxed);
    if missed > 0 {
        tracing::warn!(missed, "frames left out of a capture whose reader was too slow");
    }
    Ok(())
}

fn status(emulator: &Emulator) -> Result<Status, String> {
    let snapshot = emulator.air.snapshot().map_err(|e| e.to_string())?;
    let plan = &emulator.plan;
    let hosts = plan
        .hosts
        .iter()
        .zip(&plan.of_host)
        .zip(&snapshot.traffic)
        .enumerate();
    let hosts = hosts.map(|(index, ((name, interfaces), traffic))| HostStatus {
        name: name.clone(),
        address: plan.address(index),
        interfaces: interfaces
            .iter()
            .map(|i| InterfaceStatus {
                device: plan.interfaces[*i].device.clone(),
                address: plan.interfaces[*i].address,
            })
            .collect(),
        sent_frames: traffic.sent,
        received_frames: traffic.received,
        refused_frames: traffic.refused,
    });
    let media = emulator.scenario.media.iter().zip(snapshot.media);
    let media = media.map(|(medium, counts)| MediumStatus {
        name: medium.name.clone(),
        busy_s: counts.stats.busy.as_secs_f64(),
        wanted_s: counts.stats.wanted.as_secs_f64(),
        collisions: counts.stats.collisions,
        lost_frames: counts.stats.lost,
        delivered_frames: counts.stats.delivered,
        delivered_bytes: counts.stats.delivered_bytes,
        hosts: medium
            .hosts
            .iter()
            .zip(counts.stats.hosts)
            .zip(counts.queues)
            .enumerate()
            .map(|(station, ((host, stats), queue_frames))| StationStatus {
                host: plan.hosts[*host].clone(),
                air_s: stats.air.as_secs_f64(),
                attempts: stats.attempts,
                retries: stats.retries,
                queue_frames,
                queue_high_water_frames: stats.queue_high_water,
                drops: stats.drops,
                categories: categories(stats.categories, counts.categories.get(station)),
            })
            .collect(),
    });
    Ok(Status {
        name: emulator.name.clone(),
        scenario: emulator.scenario.name().to_owned(),
        congestion_control: plan.congestion_control.clone(),
        uptime_s: snapshot.up.as_secs_f64(),
        hosts: hosts.collect(),
        media: media.collect(),
        timing: Timing::new(&snapshot.lateness, snapshot.scheduling),
    })
}

fn categories(stats: Vec<CategoryStats>, queues: Option<&[usize; 4]>) -> Vec<CategoryStatus> {
    let queues = queues.into_iter().flatten();
    let all = Category::ALL.iter().zip(stats).zip(queues);
    all.map(|((category, stats), queue)| CategoryStatus {
        name: category.name().to_owned(),
        attempts: stats.attempts,
        queue_frames: *queue,
        queue_high_water_frames: stats.queue_high_water,
        drops: stats.drops,
    })
    .collect()
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the lab is ending")
    }
}
