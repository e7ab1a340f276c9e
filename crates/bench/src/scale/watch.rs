//! Load of a machine during a run, and usage of the run's processes.

use super::counters::{Snapshot, memory_kib};
use super::measured::{Busiest, InSockets, Lost, Measured, Wire};
use super::sockets;
use super::stage::wire_between;
use crate::kit::usage::Host;
use lab::Status;
use serde::{Deserialize, Serialize};
use stats::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between `go` and the first message.
pub(super) const BEFORE: Duration = Duration::from_millis(200);

/// The processes of a run by part: sender, echo, link.
pub(super) type Parts = BTreeMap<&'static str, Vec<u32>>;

/// Readings of a machine: the first when the senders start, the second before they are done, the last at the end.
#[derive(Default)]
pub(super) struct Watch(Vec<Look>);

/// Values read from `/proc` and the lab at one instant.
struct Look {
    host: Host,
    parts: BTreeMap<&'static str, Snapshot>,
    wire: Option<Status>,
    sockets: Option<InSockets>,
    lost: Lost,
    at: Time,
}

/// Usage of one machine, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    /// Between the first two readings.
    pub(super) busiest: Option<Busiest>,
    pub(super) host_busy: f64,
    pub(super) host_steal: f64,
    /// Between the first and the last, by part.
    pub(super) cpu_s: BTreeMap<String, f64>,
    pub(super) switches: u64,
    /// At the end.
    pub(super) memory_kib: u64,
    /// At the second reading.
    #[serde(default)]
    pub(super) sockets: Option<InSockets>,
    /// Between the first two readings.
    #[serde(default)]
    pub(super) lost: Lost,
    #[serde(skip)]
    pub(super) wire: Option<Wire>,
}

impl Watch {
    pub(super) fn look(&mut self, parts: &Parts, wire: Option<Status>) {
        let snapshot = |pids: &Vec<u32>| {
            let mut all = Snapshot::default();
            pids.iter().for_each(|pid| all.add(Snapshot::of(*pid)));
            all
        };
        let sending = self.0.len() == 1;
        self.0.push(Look {
            host: Host::now(),
            sockets: sending.then(|| sockets::fullest(parts)).flatten(),
            lost: sockets::lost(parts),
            parts: parts.iter().map(|(part, pids)| (*part, snapshot(pids))).collect(),
            wire,
            at: clock::monotonic(),
        });
    }

    /// Returns the difference between the readings, and the current memory of the processes.
    pub(super) fn load(&self, parts: &Parts) -> Load {
        let [before, during, .., after] = &self.0[..] else {
            return Load::default();
        };
        let mut load = during.since(before);
        for (part, snapshot) in &after.parts {
            let used = before.parts.get(part).map(|earlier| snapshot.since(earlier));
            let used = used.unwrap_or_default();
            load.cpu_s.insert((*part).to_owned(), used.cpu_s);
            load.switches += used.switches;
        }
        load.lost.parts = after.lost.parts;
        load.memory_kib = parts.values().flatten().map(|pid| memory_kib(*pid)).sum();
        load
    }
}

impl Look {
    /// Returns the load since an earlier reading.
    fn since(&self, earlier: &Look) -> Load {
        let span = self.at.since(earlier.at);
        // The time before the first message has no work.
        let time = span.saturating_sub(BEFORE).as_secs_f64().max(1e-3);
        let host = self.host.since(&earlier.host);
        let used = self
            .parts
            .iter()
            .filter_map(|(part, s)| Some((part, s.since(earlier.parts.get(part)?))));
        let used: Vec<_> = used.collect();
        let own_s: f64 = used.iter().map(|(_, u)| u.cpu_s).sum();
        let busiest = used.into_iter().filter_map(|(part, used)| {
            let thread = used.busiest?;
            Some(Busiest {
                part: (*part).to_owned(),
                share: thread.cpu_s / time,
                waiting_share: thread.waited_s / time,
                thread: thread.name,
            })
        });
        let wire = self.wire.as_ref().zip(earlier.wire.as_ref());
        Load {
            busiest: busiest.max_by(|a, b| a.wanted().total_cmp(&b.wanted())),
            // A lab keeps all processors awake.
            host_busy: if wire.is_some() {
                own_s / time / processors()
            } else {
                (host.busy * span.as_secs_f64() / time).min(1.0)
            },
            host_steal: host.steal,
            sockets: self.sockets.clone(),
            lost: self.lost.since(&earlier.lost),
            wire: wire.map(|(after, before)| wire_between(before, after, BEFORE)),
            ..Load::default()
        }
    }
}

impl Load {
    /// Adds the usage of another machine: processor times are summed, and load is that of the busier one.
    pub(super) fn add(&mut self, other: Load) {
        let wanted = |busiest: &Option<Busiest>| busiest.as_ref().map_or(0.0, Busiest::wanted);
        if wanted(&other.busiest) > wanted(&self.busiest) {
            self.busiest = other.busiest;
        }
        let waits = |sockets: &Option<InSockets>| sockets.as_ref().map_or(0, InSockets::most);
        if waits(&other.sockets) > waits(&self.sockets) {
            self.sockets = other.sockets;
        }
        self.lost.add(&other.lost);
        self.host_busy = self.host_busy.max(other.host_busy);
        self.host_steal = self.host_steal.max(other.host_steal);
        for (part, cpu_s) in other.cpu_s {
            *self.cpu_s.entry(part).or_insert(0.0) += cpu_s;
        }
        self.switches = self.switches.saturating_add(other.switches);
        self.memory_kib = self.memory_kib.saturating_add(other.memory_kib);
        self.wire = self.wire.take().or(other.wire);
    }

    pub(super) fn into_measured(self) -> Measured {
        Measured {
            busiest: self.busiest,
            host_busy: self.host_busy,
            host_steal: self.host_steal,
            cpu_s: self.cpu_s,
            switches: self.switches,
            memory_kib: self.memory_kib,
            wire: self.wire,
            sockets: self.sockets,
            lost: self.lost,
            ..Measured::default()
        }
    }
}

fn processors() -> f64 {
    std::thread::available_parallelism().map_or(1, |n| n.get()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_machines_are_sums_and_the_busier_one() {
        let of = |share: f64, busy: f64| Load {
            busiest: Some(Busiest {
                part: format!("echo on {share}"),
                thread: "t".into(),
                share,
                waiting_share: 0.0,
            }),
            host_busy: busy,
            cpu_s: [("echo".to_owned(), 2.0)].into(),
            switches: 3,
            memory_kib: 5,
            ..Load::default()
        };
        let mut all = of(0.5, 0.9);
        all.add(of(0.7, 0.2));
        assert_eq!((all.host_busy, all.cpu_s["echo"], all.switches), (0.9, 4.0, 6));
        let busiest = all.into_measured().busiest.expect("a thread");
        assert_eq!(busiest.part, "echo on 0.7");
    }

    #[test]
    fn looks_see_this_process_work() {
        let parts = Parts::from([("echo", vec![std::process::id()])]);
        let mut watch = Watch::default();
        assert_eq!(watch.load(&parts), Load::default());
        watch.look(&parts, None);
        watch.look(&parts, None);
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_millis(50) {}
        watch.look(&parts, None);
        let load = watch.load(&parts);
        assert!(load.cpu_s["echo"] > 0.0 && load.memory_kib > 0, "{load:?}");
    }
}
