//! What every run needs.

use super::{Options, System};
use crate::findings::found;
use crate::ipc::Error;
use crate::lab::site::Ground;
use crate::links::Team;
use crate::machine;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What every run needs.
pub(super) struct Tools<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) team: Team,
    programs: BTreeMap<System, (PathBuf, String)>,
    /// What is left out.
    pub(super) notes: Vec<String>,
}

impl<'a> Tools<'a> {
    /// Finds the systems' programs, built where they are missing. Blocks while it builds.
    pub(super) fn prepare(options: &Options, stopped: &'a dyn Fn() -> bool) -> Result<Tools<'a>, Error> {
        let mut tools = Tools {
            ground: Ground::new("rwb-scale-", stopped)?,
            team: Team::default(),
            programs: BTreeMap::new(),
            notes: Vec::new(),
        };
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
                tools.programs.insert(system, program);
            }
        }
        tools.notes.iter().for_each(|note| eprintln!("{note}"));
        Ok(tools)
    }

    /// Those that can be measured here.
    pub(super) fn systems(&self) -> Vec<System> {
        self.programs.keys().copied().collect()
    }

    /// The first words of a node.
    pub(super) fn program(&self, system: System) -> Vec<String> {
        let program = self
            .programs
            .get(&system)
            .map(|p| p.0.to_string_lossy().into_owned());
        let mut words = vec![program.unwrap_or_default()];
        if system == System::Ropewalk {
            words.extend(["bench".to_owned(), "scale-part".to_owned()]);
        }
        words
    }

    /// Of what is measured.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = machine::versions();
        versions.extend(
            self.programs
                .iter()
                .map(|(s, p)| (s.name().to_owned(), p.1.clone())),
        );
        versions
    }
}
