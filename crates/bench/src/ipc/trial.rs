//! One run of one system under one setting.

use super::copies::{self, CopyCount};
use super::setting::{Mode, Setting};
use crate::kit::error::RunError;
use crate::kit::line::{Count, Published, Received, Spoken};
use crate::kit::processes::{Peer, Processes};
use crate::kit::programs::Ready;
use crate::kit::roscore::Roscore;
use crate::kit::sandbox::Sandbox;
use crate::kit::usage::{Host, HostLoad, Memory, Usage};
use rustix::process::getpid;
use stats::Time;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long peers may take to find each other.
const READY: Duration = Duration::from_secs(60);
/// How long messages may be in transit after the last was published.
const GRACE: Duration = Duration::from_secs(5);
/// How long peers may take to print their results.
const RESULT: Duration = Duration::from_secs(30);
/// How long a publisher may take beyond its schedule before it counts as hung.
const HANGING: Duration = Duration::from_secs(60);
/// Time between the last `ready` and `go`.
const SETTLE: Duration = Duration::from_millis(100);
/// The same if the publisher cannot know which peers are connected.
const SETTLE_BLIND: Duration = Duration::from_secs(1);
/// Publishers wait this long after `go`.
const BEFORE: Duration = Duration::from_millis(200);

/// Result of one run.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub(super) published: Published,
    pub(super) received: Vec<Received>,
    pub(super) round_trip_ns: Vec<u64>,
    /// From the first message to the arrival of the last, including warm-up.
    pub(super) window: Duration,
    /// Publisher first; with one process, only that one.
    pub(super) used: Vec<(Usage, Memory)>,
    pub(super) copies: Vec<CopyCount>,
    /// Load by other programs on the host meanwhile.
    pub(super) others: HostLoad,
}

/// The environment of runs.
pub(super) struct Surroundings<'a> {
    pub(super) sandbox: &'a Sandbox,
    pub(super) roscore: Option<&'a Roscore>,
    /// The library that counts copies.
    pub(super) copy_counter: Option<&'a Path>,
    pub(super) stopped: &'a dyn Fn() -> bool,
}

/// Runs `system` once. `number` makes the topic unique.
pub(super) fn run(
    system: &Ready,
    setting: &Setting,
    number: u64,
    around: &Surroundings<'_>,
) -> Result<Trial, RunError> {
    let count = Count {
        warmup: u64::from(setting.warmup),
        messages: u64::from(setting.messages),
    };
    let mut processes = Processes::<Spoken>::new(count, around.sandbox, around.stopped);
    let roles = roles(system, setting);
    for (i, role) in roles.iter().enumerate() {
        let mut command = command(system, setting, role, number);
        if let Some(roscore) = around.roscore.filter(|_| system.system.needs_roscore()) {
            roscore.prepare(&mut command);
        }
        if setting.count_copies {
            let library = around
                .copy_counter
                .ok_or("the library that counts copies is missing".to_owned())?;
            copies::prepare(&mut command, library, around.sandbox, i);
        }
        processes.start(format!("{} {}", system.system, role.name()), &mut command)?;
    }
    let trial = conduct(&mut processes, system, setting);
    processes.look();
    let mut trial = trial?;
    processes.join()?;
    if setting.count_copies {
        for i in 0..roles.len() {
            trial.copies.push(copies::read(around.sandbox, i)?);
        }
    }
    for peer in processes.into_peers() {
        if let Some((_, published)) = peer.said.published {
            trial.published = published;
        }
        if let Some((_, trips)) = peer.said.round_trips {
            trial.round_trip_ns.extend(trips.round_trip_ns);
        }
        trial.received.extend(peer.said.received);
    }
    Ok(trial)
}

/// From the start of the processes to their results.
fn conduct(
    processes: &mut Processes<'_, Spoken>,
    system: &Ready,
    setting: &Setting,
) -> Result<Trial, RunError> {
    let ready = |peers: &[Peer<Spoken>]| peers.iter().all(|p| p.said.ready > 0);
    if !processes.listen(clock::monotonic() + READY, ready)? {
        let late: Vec<_> = processes
            .peers()
            .iter()
            .filter(|p| p.said.ready == 0)
            .map(|p| &*p.name)
            .collect();
        return Err(format!("not ready within {READY:?}: {}", late.join(", ")).into());
    }
    let settle = if system.system.counts_subscribers() {
        SETTLE
    } else {
        SETTLE_BLIND
    };
    processes.listen(clock::monotonic() + settle, |_| false)?;

    let host = Host::now();
    let own_before = Usage::of(getpid()).unwrap_or_default();
    let before: Vec<_> = processes.peers().iter().map(Peer::usage).collect();
    let start = clock::monotonic();
    // With several clients, each has its own schedule.
    let leaders = if setting.mode == Mode::Call {
        setting.subscribers as usize
    } else {
        1
    };
    (0..leaders).for_each(|who| processes.tell(who, "go"));
    let used_up = |peers: &[Peer<Spoken>]| {
        let mut leaders = peers.iter().take(leaders);
        leaders.all(|p| p.said.published.is_some() || p.said.round_trips.is_some())
    };
    let patience = setting.expected() * 2 + HANGING;
    if !processes.listen(start + patience, used_up)? {
        return Err(
            processes.peers()[0].complain(&format!("it did not finish publishing within {patience:?}"))
        );
    }
    let expected = if matches!(setting.mode, Mode::PingPong | Mode::Call) {
        0
    } else {
        setting.subscribers as usize
    };
    // A slow subscriber may still have to process its queue: its last message is not awaited.
    let awaited = expected - usize::from(setting.slow_us.is_some()).min(expected);
    processes.listen(clock::monotonic() + GRACE, |peers| {
        peers.iter().map(|p| p.said.done.len()).sum::<usize>() >= awaited
    })?;

    let after: Vec<_> = processes.peers().iter().map(Peer::usage).collect();
    let used = before.into_iter().zip(after).map(|(before, after)| {
        let (before, _) = before.unwrap_or_default();
        let (after, memory) = after.unwrap_or_default();
        (after.since(&before), memory)
    });
    let used: Vec<_> = used.collect();
    let end = last_event(processes.peers()).unwrap_or(start);
    let elapsed = clock::monotonic().since(start);
    // The loops that keep the processors awake are in this process.
    let own = Usage::of(getpid()).unwrap_or_default().since(&own_before);
    let others = others(Host::now().since(&host), own.cpu, &used, elapsed);
    processes.look();

    let results =
        |peers: &[Peer<Spoken>]| peers.iter().map(|p| p.said.received.len()).sum::<usize>() >= expected;
    if !processes.stop(RESULT, results)? {
        return Err(format!(
            "{}: not all subscribers gave a result within {RESULT:?}",
            system.system
        )
        .into());
    }
    Ok(Trial {
        window: end.since(start + BEFORE),
        used,
        others,
        ..Trial::default()
    })
}

fn last_event(peers: &[Peer<Spoken>]) -> Option<Time> {
    let results = peers.iter().flat_map(|p| {
        let published = p.said.published.as_ref().map(|(at, _)| *at);
        published
            .into_iter()
            .chain(p.said.round_trips.as_ref().map(|(at, _)| *at))
    });
    results
        .chain(peers.iter().flat_map(|p| p.said.done.iter().copied()))
        .max()
}

/// Returns the host's load without the peers' own usage.
fn others(all: HostLoad, own: Duration, used: &[(Usage, Memory)], elapsed: Duration) -> HostLoad {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get()) as f64;
    let own: Duration = own + used.iter().map(|(u, _)| u.cpu).sum::<Duration>();
    let own = own.as_secs_f64() / (elapsed.as_secs_f64() * processors).max(1e-9);
    HostLoad {
        busy: (all.busy - own).max(0.0),
        steal: all.steal,
    }
}

/// The role of one process of a run.
enum Role {
    Publish,
    Subscribe(u32),
    Ping,
    Pong,
    Call(u32),
    Serve,
    Run,
}

impl Role {
    fn name(&self) -> String {
        match self {
            Role::Publish => "publisher".into(),
            Role::Subscribe(i) => format!("subscriber {}", i + 1),
            Role::Ping => "ping".into(),
            Role::Pong => "pong".into(),
            Role::Call(i) => format!("client {}", i + 1),
            Role::Serve => "server".into(),
            Role::Run => "process".into(),
        }
    }
}

/// The roles that receive `go` come first.
fn roles(system: &Ready, setting: &Setting) -> Vec<Role> {
    if setting.mode == Mode::PingPong {
        return vec![Role::Ping, Role::Pong];
    }
    if setting.mode == Mode::Call {
        let clients = (0..setting.subscribers).map(Role::Call);
        return clients.chain([Role::Serve]).collect();
    }
    if system.is_intra() {
        return vec![Role::Run];
    }
    let subscribers = (0..setting.subscribers).map(Role::Subscribe);
    std::iter::once(Role::Publish).chain(subscribers).collect()
}

fn command(system: &Ready, setting: &Setting, role: &Role, number: u64) -> Command {
    let verb = match role {
        Role::Publish => "publish",
        Role::Subscribe(_) => "subscribe",
        Role::Ping => "ping",
        Role::Pong => "pong",
        Role::Call(_) => "call",
        Role::Serve => "serve",
        Role::Run => "run",
    };
    let mut command = system.command(verb);
    let mut option = |name: &str, value: &dyn std::fmt::Display| {
        command.arg(format!("--{name}")).arg(value.to_string());
    };
    option("topic", &format!("/bench/n{number}"));
    option("size", &setting.size);
    option("warmup", &setting.warmup);
    option("messages", &setting.messages);
    if let Some(priority) = setting.fifo {
        option("fifo", &priority);
    }
    if !matches!(role, Role::Ping | Role::Pong) {
        option("subscribers", &setting.subscribers);
    }
    if matches!(role, Role::Publish | Role::Call(_) | Role::Run) {
        option("rate", &setting.rate);
    }
    if matches!(role, Role::Publish | Role::Run) {
        if let Some(bytes) = setting.limit {
            option("limit", &bytes);
        }
        if let Some(depth) = setting.deepest() {
            option("depth", &depth);
        }
    }
    if let Role::Call(index) = role {
        option("index", index);
    }
    if let Role::Subscribe(index) = role {
        option("index", index);
        if let Some(us) = setting.slow_us.filter(|_| *index == 0) {
            option("work-us", &us);
        }
        if let Some(depth) = setting.depth_of(*index) {
            option("depth", &depth);
        }
        if setting.mode == Mode::Spin {
            command.arg("--spin");
        }
    }
    command
}
