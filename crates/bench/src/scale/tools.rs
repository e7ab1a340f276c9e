//! What every run needs.

use super::agents::Agents;
use super::{Options, System, system};
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::findings::found;
use crate::kit::links::Team;
use crate::kit::site::Ground;
use crate::machine;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What every run needs.
pub(super) struct Tools<'a> {
    /// Real machines, if they are measured. They end before the folder is removed.
    agents: Option<Agents<'a>>,
    pub(super) ground: Ground<'a>,
    pub(super) team: Team,
    programs: Programs,
    /// Notes on what is skipped.
    pub(super) notes: Vec<String>,
}

/// The systems' programs, with their versions.
#[derive(Default)]
pub(super) struct Programs(pub(super) BTreeMap<System, (PathBuf, String)>);

impl<'a> Tools<'a> {
    /// Finds the systems' programs, and builds missing ones. Blocks while it builds.
    pub(super) fn prepare(options: &Options, stopped: &'a dyn Fn() -> bool) -> Result<Tools<'a>, Error> {
        let mut tools = Tools::new(stopped)?;
        for system in options.wanted() {
            let found = match system.target() {
                None => Some((
                    tools.ground.executable.clone(),
                    env!("CARGO_PKG_VERSION").to_owned(),
                )),
                Some(target) => {
                    let peer = tools.ground.peer(target, system.name(), options.peers.as_deref());
                    let named = !options.systems.is_empty();
                    found(peer, named, &mut tools.notes)?
                }
            };
            if let Some(program) = found {
                tools.programs.0.insert(system, program);
            }
        }
        tools.notes.iter().for_each(|note| eprintln!("{note}"));
        Ok(tools)
    }

    /// Uses the programs of real machines.
    pub(super) fn there(
        options: &Options,
        agents: Agents<'a>,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Tools<'a>, Error> {
        let mut tools = Tools::new(stopped)?;
        for system in options.wanted() {
            let version = agents.version(system).map_err(Error::Nothing);
            if let Some(version) = found(version, !options.systems.is_empty(), &mut tools.notes)? {
                tools.programs.0.insert(system, (PathBuf::new(), version));
            }
        }
        tools.notes.iter().for_each(|note| eprintln!("{note}"));
        tools.agents = Some(agents);
        Ok(tools)
    }

    fn new(stopped: &'a dyn Fn() -> bool) -> Result<Tools<'a>, Error> {
        Ok(Tools {
            agents: None,
            ground: Ground::new("rwb-scale-", stopped)?,
            team: Team::default(),
            programs: Programs::default(),
            notes: Vec::new(),
        })
    }

    /// Returns the systems that can be measured.
    pub(super) fn systems(&self) -> Vec<System> {
        let has = |system: &System| self.programs.0.contains_key(system);
        system::all().filter(has).collect()
    }

    /// Returns the first words of a node's command.
    pub(super) fn program(&self, system: System) -> Vec<String> {
        self.programs.words(system)
    }

    /// Returns the real machines.
    pub(super) fn agents(&self) -> Result<&Agents<'a>, RunError> {
        let agents = self.agents.as_ref();
        agents.ok_or_else(|| RunError::Failed("no machines were named".into()))
    }

    /// Returns whether one of them is gone.
    pub(super) fn lost(&self) -> bool {
        self.agents.as_ref().is_some_and(|a| a.lost().is_some())
    }

    /// Returns whether there are several machines that cables join.
    pub(super) fn wired(&self) -> bool {
        self.agents.as_ref().is_some_and(Agents::wired)
    }

    /// Describes the machines of a result.
    pub(super) fn machine(&self) -> BTreeMap<String, Value> {
        let mut about = machine::describe();
        if let Some(agents) = &self.agents {
            about.insert("machines".into(), agents.describe());
        }
        about
    }

    /// Returns the versions of the measured systems.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = machine::versions();
        let programs = self.programs.0.iter();
        versions.extend(programs.map(|(s, p)| (s.name().to_owned(), p.1.clone())));
        versions
    }
}

impl Programs {
    /// Returns the first words of a node's command.
    pub(super) fn words(&self, system: System) -> Vec<String> {
        let program = self.0.get(&system).map(|p| p.0.to_string_lossy().into_owned());
        let mut words = vec![program.unwrap_or_default()];
        if system == System::Ropewalk {
            words.extend(["bench".to_owned(), "scale-part".to_owned()]);
        }
        words
    }
}
