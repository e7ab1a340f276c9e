//! The nodes of a run, on any machine.

use super::profile::{Profile, Sampler};
use super::said::Said;
use super::stage::Stage;
use super::watch::{Load, Parts, Watch};
use crate::kit::error::RunError;
use crate::kit::processes::Processes;
use stats::Time;
use std::path::Path;
use std::time::Duration;

/// The nodes of a run: its echoes, and then its senders. Dropping it ends them.
pub(super) trait RunNodes {
    /// Processes output until all nodes from `first` on are `so`; returns false if `deadline` passes first.
    ///
    /// # Errors
    /// A node prints an invalid line, or ends too early, or the user stops the run.
    fn listen(&mut self, deadline: Time, first: usize, so: fn(&Said) -> bool) -> Result<bool, RunError>;
    /// Returns the output of a node.
    fn said(&self, node: usize) -> &Said;
    /// Reads usage, and starts the senders.
    fn go(&mut self) -> Result<(), RunError>;
    /// Reads usage.
    fn look(&mut self) -> Result<(), RunError>;
    /// Reads usage a last time, and returns the load.
    fn load(&mut self) -> Result<Load, RunError>;
    /// Stops all nodes; returns false if not all printed a result in time.
    fn stop(&mut self, patience: Duration) -> Result<bool, RunError>;
    /// Returns the name of a node.
    fn name(&self, node: usize) -> String;
    /// Builds an error about a node.
    fn complain(&self, node: usize, what: &str) -> RunError;
}

/// Nodes that this process has started.
pub(super) struct Here<'a, 's> {
    processes: Processes<'s, Said>,
    stage: &'s Stage<'a>,
    watch: Watch,
    parts: Parts,
    /// The folder for samples of processor time.
    samples: Option<&'s Path>,
    sampler: Option<Sampler>,
    profile: Option<Profile>,
}

impl<'a, 's> Here<'a, 's> {
    /// Takes all processes of a run, and its link daemons. Their processor time is sampled into a folder, if one is
    /// given.
    pub(super) fn new(
        processes: Processes<'s, Said>,
        stage: &'s Stage<'a>,
        daemons: &[u32],
        samples: Option<&'s Path>,
    ) -> Here<'a, 's> {
        let pids: Vec<u32> = processes.peers().iter().map(|p| p.pid()).collect();
        let (echoes, senders) = pids.split_at(pids.len() / 2);
        let mut parts = Parts::from([("echo", echoes.to_vec()), ("sender", senders.to_vec())]);
        if !daemons.is_empty() {
            parts.insert("link", daemons.to_vec());
        }
        Here {
            processes,
            stage,
            watch: Watch::default(),
            parts,
            samples,
            sampler: None,
            profile: None,
        }
    }

    /// Returns the samples.
    pub(super) fn profile(&mut self) -> Option<Profile> {
        self.profile.take()
    }

    pub(super) fn processes(&mut self) -> &mut Processes<'s, Said> {
        &mut self.processes
    }
}

impl RunNodes for Here<'_, '_> {
    fn listen(&mut self, deadline: Time, first: usize, so: fn(&Said) -> bool) -> Result<bool, RunError> {
        self.processes
            .listen(deadline, |peers| peers[first..].iter().all(|p| so(&p.said)))
    }

    fn said(&self, node: usize) -> &Said {
        &self.processes.peers()[node].said
    }

    fn go(&mut self) -> Result<(), RunError> {
        if let Some(folder) = self.samples {
            let pids: Vec<u32> = self.parts.values().flatten().copied().collect();
            self.sampler = Some(Sampler::start(&pids, folder)?);
        }
        self.look()?;
        let nodes = self.processes.peers().len();
        (nodes / 2..nodes).for_each(|who| self.processes.tell(who, "go"));
        Ok(())
    }

    fn look(&mut self) -> Result<(), RunError> {
        self.watch.look(&self.parts, self.stage.status()?);
        Ok(())
    }

    fn load(&mut self) -> Result<Load, RunError> {
        self.look()?;
        if let Some(sampler) = self.sampler.take() {
            self.profile = Some(sampler.end()?);
        }
        Ok(self.watch.load(&self.parts))
    }

    fn stop(&mut self, patience: Duration) -> Result<bool, RunError> {
        self.processes
            .stop(patience, |peers| peers.iter().all(|p| p.said.result.is_some()))
    }

    fn name(&self, node: usize) -> String {
        self.processes.peers()[node].name.clone()
    }

    fn complain(&self, node: usize, what: &str) -> RunError {
        self.processes.peers()[node].complain(what)
    }
}
