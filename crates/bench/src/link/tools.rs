//! What every run needs, and the execution of a run.

use super::bridged::{Masters, domains, ends};
use super::network::{Network, Setting, Topic};
use super::options::{Ends, Rate};
use super::ros2::{Carried, Rclpy};
use super::zenoh::{Protocol, Zenoh};
use super::{CarrierKind, Experiment, Options, Row, System};
use crate::flows::play::{self, Leg, Part, Played, flow_arguments};
use crate::kit::cell::Params;
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::findings::found;
use crate::kit::keep::Keep;
use crate::kit::links::Team;
use crate::kit::roscpp::{Peer, Source, Transport};
use crate::kit::sandbox::Sandbox;
use crate::kit::site::{Ground, Site};
use crate::machine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// What every run needs.
pub(super) struct Tools<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) sandbox: Sandbox,
    /// roscpp, Zenoh and rclpy, if a row needs them.
    ros: Option<Peer>,
    zenoh: Option<Zenoh>,
    rclpy: Option<Rclpy>,
    /// Notes on what is skipped.
    pub(super) notes: Vec<String>,
    team: Team,
    keep: Keep,
}

/// How messages get from host to host.
#[derive(Clone, Debug)]
pub(super) enum Means {
    /// Links, with the source that releases the messages, and the publishers and subscribers.
    Link(Setting, Source, Ends),
    /// roscpp.
    Ros(Transport, Source),
    /// Zenoh, with a priority for each leg.
    Zenoh(Protocol, Vec<Topic>),
    /// rclpy over Fast DDS.
    Fastdds,
}

impl<'a> Tools<'a> {
    /// Prepares what `rows` need, and builds missing programs. Blocks while it builds.
    pub(super) fn prepare(
        options: &Options,
        rows: &[Row],
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Tools<'a>, Error> {
        let ground = Ground::new("rwb-link-", stopped)?;
        let peers = options.peers.as_deref();
        let systems = || rows.iter().flat_map(|r| r.beside.iter().chain([&r.system]));
        let uses = |which: &dyn Fn(System) -> bool| systems().any(|s| which(*s));
        let mut notes = Vec::new();
        let (roscpp, zenoh) = (
            |s: System| s.transport().is_some(),
            |s: System| s.protocol().is_some(),
        );
        // A system selected by name is required; others are skipped with a note.
        let robots = rows.iter().any(|r| r.experiment == Experiment::Robots);
        let ticks = options.source == Source::Roscpp || options.ends == Ends::Ros || robots;
        let ros = match uses(&roscpp) || ticks {
            true => found(
                Peer::prepare(peers, &ground),
                ticks || options.names(roscpp),
                &mut notes,
            )?,
            false => None,
        };
        let zenoh = match uses(&zenoh) {
            true => found(Zenoh::prepare(peers, &ground), options.names(zenoh), &mut notes)?,
            false => None,
        };
        let fastdds = |s: System| s == System::RclpyFastdds;
        let ends = matches!(options.ends, Ends::Ros2 | Ends::Dds)
            || robots
            || rows.iter().any(|r| r.experiment == Experiment::Discovery);
        let rclpy = match uses(&fastdds) || ends {
            true => found(
                Rclpy::prepare(peers, &ground),
                ends || options.names(fastdds),
                &mut notes,
            )?,
            false => None,
        };
        Ok(Tools {
            ground,
            sandbox: Sandbox::new()?,
            ros,
            zenoh,
            rclpy,
            team: Team::default(),
            notes,
            keep: Keep::new(options.keep.clone()),
        })
    }

    /// Returns whether a system can be measured here.
    pub(super) fn has(&self, system: System) -> bool {
        let ros = system.transport().is_none() || self.ros.is_some();
        let zenoh = system.protocol().is_none() || self.zenoh.is_some();
        ros && zenoh && (system != System::RclpyFastdds || self.rclpy.is_some())
    }

    /// Returns the versions of the measured systems.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = machine::versions();
        if let Some(ros) = &self.ros {
            versions.insert("roscpp".into(), ros.version.clone());
        }
        if let Some(zenoh) = &self.zenoh {
            versions.insert("zenoh".into(), zenoh.version.clone());
        }
        if let Some(rclpy) = &self.rclpy {
            versions.insert("rclpy".into(), rclpy.version.clone());
        }
        versions
    }

    /// Returns a file of the session.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.ground.folder.path().join(name)
    }

    /// Returns the folder with a host's keys, which are created on first use.
    pub(super) fn keys(&self, host: &str) -> Result<PathBuf, RunError> {
        self.team.keys(&self.ground, host)
    }

    /// Sends `legs` through a running lab.
    pub(super) fn play(
        &self,
        what: &str,
        site: &Site<'_>,
        means: &Means,
        legs: &[Leg],
    ) -> Result<Played, RunError> {
        let (played, links) = self.played(what, site, means, legs)?;
        self.keep(what, &means.shown(), &played, &links)?;
        Ok(played)
    }

    /// Writes the raw result of a run, if a folder was given.
    pub(super) fn keep(
        &self,
        what: &str,
        means: &str,
        played: &Played,
        links: &BTreeMap<String, Value>,
    ) -> Result<(), RunError> {
        self.keep.put(|| {
            json!({
                "what": what, "means": means, "lab": played.lab, "links": links, "received": played.received,
                "values": played.values,
            })
        })
    }

    /// Received messages, and the last state that each link printed.
    fn played(
        &self,
        what: &str,
        site: &Site<'_>,
        means: &Means,
        legs: &[Leg],
    ) -> Result<(Played, BTreeMap<String, Value>), RunError> {
        match means {
            Means::Ros(transport, source) => {
                let played = self.ros()?.play(what, *transport, *source, site, legs)?;
                Ok((played, BTreeMap::new()))
            }
            Means::Zenoh(protocol, topics) => {
                let played = self
                    .zenoh()?
                    .play(self, what, (*protocol, topics), site, legs, &mut [])?;
                Ok((played, BTreeMap::new()))
            }
            Means::Fastdds => {
                let rclpy = self.rclpy()?;
                let command = |part: Part, host: &str, legs: &[&Leg]| {
                    rclpy.part(site, (part, host), Carried::Fastdds, legs)
                };
                let played = play::play(what, site, &self.sandbox, legs, &command)?;
                Ok((played, BTreeMap::new()))
            }
            Means::Link(setting, _, Ends::Ros2) => {
                let network = Network::up(self, site, legs, setting)?;
                let rclpy = self.rclpy()?;
                let command = |part: Part, host: &str, legs: &[&Leg]| {
                    rclpy.part(site, (part, host), Carried::Ropewalk, legs)
                };
                let played = play::play(what, site, &self.sandbox, legs, &command);
                network.end(played, site.stopped())
            }
            Means::Link(setting, _, Ends::Dds) => {
                let network = Network::up(self, site, legs, setting)?;
                let bridges = domains(self, site, (legs, &[]), &ends(legs))?;
                let rclpy = self.rclpy()?;
                let command = |part: Part, host: &str, legs: &[&Leg]| {
                    rclpy.part(site, (part, host), Carried::FastddsLocal, legs)
                };
                let played = play::play(what, site, &self.sandbox, legs, &command);
                let ended = bridges.end(played, site.stopped());
                network.into_daemons().end_too(ended, site.stopped())
            }
            Means::Link(setting, source, Ends::Ros) => {
                let network = Network::up(self, site, legs, setting)?;
                let masters = Masters::up(self, site, legs, &ends(legs))?;
                let command =
                    |part: Part, host: &str, legs: &[&Leg]| masters.part(site, (part, host), *source, legs);
                let played = play::play(what, site, &self.sandbox, legs, &command);
                let ended = masters.end(played, site.stopped());
                network.into_daemons().end_too(ended, site.stopped())
            }
            Means::Link(setting, source, Ends::Bus) => {
                let network = Network::up(self, site, legs, setting)?;
                let ticks = match source {
                    Source::Periodic => None,
                    Source::Roscpp => Some((self.ros()?, self.ros()?.roscore(site, &legs[0].from)?)),
                };
                let command = |part: Part, host: &str, legs: &[&Leg]| {
                    let mut command = self.our_part(site, part, host, legs);
                    if let Some((ros, (master, _))) = ticks.as_ref().filter(|_| part == Part::Publish) {
                        command
                            .arg("--ticks")
                            .arg(&ros.program)
                            .env("ROS_MASTER_URI", master);
                    }
                    command
                };
                let played = play::play(what, site, &self.sandbox, legs, &command);
                network.end(played, site.stopped())
            }
        }
    }

    /// Returns the command of Ropewalk's own process for a part on a host.
    pub(super) fn our_part(&self, site: &Site<'_>, part: Part, host: &str, legs: &[&Leg]) -> Command {
        let flows = flow_arguments(legs);
        let mut words = vec![part.name()];
        words.extend(flows.iter().map(String::as_str));
        self.role(site, host, &words)
    }

    /// Returns the command of Ropewalk's own process that receives one topic and answers on another.
    pub(super) fn answering(
        &self,
        site: &Site<'_>,
        (role, host): (&str, &str),
        [input, output]: [&str; 2],
        more: &[&str],
    ) -> Command {
        let words = [&[role, "--input", input, "--output", output], more].concat();
        self.role(site, host, &words)
    }

    /// Returns the command of Ropewalk's own process on a host, by the words of its role (`link::part::Role`).
    pub(super) fn role(&self, site: &Site<'_>, host: &str, role: &[&str]) -> Command {
        self.role_at(site, host, true, role)
    }

    /// The same without SCHED_FIFO.
    pub(super) fn lowly(&self, site: &Site<'_>, host: &str, role: &[&str]) -> Command {
        self.role_at(site, host, false, role)
    }

    fn role_at(&self, site: &Site<'_>, host: &str, fifo: bool, role: &[&str]) -> Command {
        let ours = self.ground.executable.to_string_lossy();
        site.command(host, fifo, &[&[&*ours, "bench", "link-part"], role].concat())
    }

    pub(super) fn zenoh(&self) -> Result<&Zenoh, RunError> {
        let zenoh = self.zenoh.as_ref();
        zenoh.ok_or_else(|| RunError::Failed("Zenoh was not prepared".into()))
    }

    pub(super) fn rclpy(&self) -> Result<&Rclpy, RunError> {
        let rclpy = self.rclpy.as_ref();
        rclpy.ok_or_else(|| RunError::Failed("rclpy was not prepared".into()))
    }

    pub(super) fn ros(&self) -> Result<&Peer, RunError> {
        let ros = self.ros.as_ref();
        ros.ok_or_else(|| RunError::Failed("roscpp was not prepared".into()))
    }
}

impl Means {
    /// Links between Ropewalk's own processes, which send on a schedule.
    pub(super) fn links(setting: Setting) -> Means {
        Means::Link(setting, Source::Periodic, Ends::Bus)
    }

    /// Describes how it differs from other means of the same system, for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Means::Link(setting, source, ends) => {
                let (carrier, rate) = (setting.carrier.name(), Rate::said(setting.rate));
                let yields = if setting.yields { "" } else { ", yielding off" };
                let ends = match ends {
                    Ends::Bus => "",
                    Ends::Ros => ", between roscores",
                    Ends::Ros2 => ", between nodes of rclpy",
                    Ends::Dds => ", between nodes of rclpy over Fast DDS",
                };
                format!("{carrier}, rate {rate}{yields}{}{ends}", shown(*source))
            }
            Means::Zenoh(..) | Means::Fastdds => String::new(),
            Means::Ros(_, source) => shown(*source).trim_start_matches(", ").to_owned(),
        }
    }

    /// The same by name, for programs.
    pub(super) fn describe(&self, params: &mut Params) {
        let source = match self {
            Means::Link(setting, source, ends) => {
                params.insert("ends".into(), json!(ends.name()));
                params.insert("carrier".into(), json!(setting.carrier.name()));
                params.insert("rate".into(), json!(Rate::said(setting.rate)));
                let yields = if setting.yields { "on" } else { "off" };
                params.insert("yields".into(), json!(yields));
                source
            }
            Means::Ros(_, source) => source,
            Means::Zenoh(protocol, _) => {
                params.insert("carrier".into(), json!(protocol.name()));
                &Source::Periodic
            }
            Means::Fastdds => &Source::Periodic,
        };
        params.insert("source".into(), json!(source.name()));
    }
}

fn shown(source: Source) -> &'static str {
    match source {
        Source::Periodic => "",
        Source::Roscpp => ", roscpp timers",
    }
}

impl System {
    /// Returns how roscpp carries the flows; `None` for others.
    pub(super) fn transport(self) -> Option<Transport> {
        match self {
            System::Tcpros => Some(Transport::Tcpros),
            System::Nodelay => Some(Transport::Nodelay),
            System::Udpros => Some(Transport::Udpros),
            System::Mixed => Some(Transport::Mixed),
            _ => None,
        }
    }

    /// Returns what carries Zenoh's messages; `None` for others.
    pub(super) fn protocol(self) -> Option<Protocol> {
        match self {
            System::ZenohTcp => Some(Protocol::Tcp),
            System::ZenohUdp => Some(Protocol::Udp),
            System::ZenohQuic => Some(Protocol::Quic),
            _ => None,
        }
    }

    /// Returns all means of this system that are selected: for Ropewalk one for each of the experiment's carriers and of `rates`.
    pub(super) fn all_means(
        self,
        options: &Options,
        experiment: Experiment,
        rates: &[&'static str],
        setting: impl Fn(CarrierKind, &'static str) -> Setting,
    ) -> Vec<Means> {
        if matches!(self, System::Tcp | System::DdsZenoh) {
            return Vec::new();
        }
        // Timers of roscpp can release only flows of systems that use them.
        let periodic = options.source == Source::Periodic;
        if self == System::RclpyFastdds {
            // Heavy, and only of interest to users of ROS 2: measured only if selected.
            let asked = options.names(|s| s == self);
            return (periodic && asked)
                .then_some(Means::Fastdds)
                .into_iter()
                .collect();
        }
        if let Some(transport) = self.transport() {
            return vec![Means::Ros(transport, options.source)];
        }
        if let Some(protocol) = self.protocol() {
            let topics = setting(CarrierKind::Quic, "auto").topics;
            return periodic
                .then_some(Means::Zenoh(protocol, topics))
                .into_iter()
                .collect();
        }
        let each = options.carriers_of(experiment);
        let rates: Vec<_> = rates.iter().filter(|r| options.wants_rate(r)).collect();
        let all = each.iter().flat_map(|c| rates.iter().map(|r| (*c, **r)));
        all.map(|(carrier, rate)| Means::Link(setting(carrier, rate), options.source, options.ends))
            .collect()
    }
}
