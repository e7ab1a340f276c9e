//! What every run needs.

use super::System;
use super::options::Options;
use super::plan::Row;
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::findings::found;
use crate::kit::keep::Keep;
use crate::kit::links::Team;
use crate::kit::roscpp::Peer;
use crate::kit::sandbox::Sandbox;
use crate::kit::site::Ground;
use crate::machine;
use std::collections::BTreeMap;

pub(super) struct Tools<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) sandbox: Sandbox,
    pub(super) team: Team,
    /// roscpp, if a row needs it.
    ros: Option<Peer>,
    /// Notes on what is skipped.
    pub(super) notes: Vec<String>,
    pub(super) keep: Keep,
}

impl<'a> Tools<'a> {
    /// Prepares what `rows` need, and builds missing programs. Blocks while it builds.
    pub(super) fn prepare(
        options: &Options,
        rows: &[Row],
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Tools<'a>, Error> {
        let ground = Ground::new("rwb-remote-", stopped)?;
        let mut notes = Vec::new();
        let ros = match rows.iter().any(|r| r.means.system() == System::Ros1) {
            true => found(
                Peer::called("remote", options.peers.as_deref(), &ground),
                options.names(System::Ros1),
                &mut notes,
            )?,
            false => None,
        };
        Ok(Tools {
            ground,
            sandbox: Sandbox::new()?,
            team: Team::default(),
            ros,
            notes,
            keep: Keep::new(options.keep.clone()),
        })
    }

    /// Returns whether a system can be measured here.
    pub(super) fn has(&self, system: System) -> bool {
        system != System::Ros1 || self.ros.is_some()
    }

    pub(super) fn ros(&self) -> Result<&Peer, RunError> {
        let ros = self.ros.as_ref();
        ros.ok_or_else(|| RunError::Failed("roscpp was not prepared".into()))
    }

    /// Returns the versions of the measured systems.
    pub(super) fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = machine::versions();
        if let Some(ros) = &self.ros {
            versions.insert("roscpp".into(), ros.version.clone());
        }
        versions
    }
}
