//! What a lab is made of: hosts, media, and what changes when.

mod channels;
mod check;
mod settings;
mod shipped;
mod yaml;

pub(crate) use channels::{Channels, Counts};
pub use settings::Settings;
pub(crate) use settings::{Change, Place};
pub use shipped::{Shipped, shipped};

use crate::tap::plan::Plan;
use medium::{Hearing, Standard, Topology};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Hosts of a lab at most: the last byte of their addresses.
pub const MAX_HOSTS: usize = 250;
/// Media of a lab at most.
pub const MAX_MEDIA: usize = 64;
/// Changes over time of a lab at most.
pub const MAX_EVENTS: usize = 10_000;
/// The longest scenario that is read.
const MAX_FILE: u64 = 1 << 20;

/// What a lab is made of. Its form is YAML; the guide (`docs/guide/lab.md`) explains each key.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    place: String,
    text: String,
    description: String,
    seed: u64,
    pub(crate) hosts: Vec<String>,
    pub(crate) media: Vec<Medium>,
    changes: Vec<(Duration, Change)>,
}

/// One medium of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    pub(crate) name: String,
    /// Its hosts by their place in the scenario; a host's place in this list is its station.
    pub(crate) hosts: Vec<usize>,
    pub(crate) kind: Kind,
    /// Frames that a host's device queue holds.
    pub(crate) queue_frames: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Wifi(Wifi),
    Wire(Wire),
}

#[derive(Clone, Debug)]
pub(crate) struct Wifi {
    pub(crate) standard: Standard,
    pub(crate) rate_bits: u64,
    pub(crate) topology: Topology,
    pub(crate) hearing: Hearing,
    pub(crate) edca: bool,
    pub(crate) retries: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) rate_bits: u64,
}

/// Why a scenario was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Neither shipped nor a file.
    #[error(
        "no scenario '{name}': give a file, or one of those that `ropewalk lab list` names{nearest}",
        nearest = nearest.as_ref().map(|n| format!(" (perhaps {n})")).unwrap_or_default()
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The shipped scenario with the nearest name.
        nearest: Option<String>,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is no scenario.
    #[error("{place}: {problem}")]
    Bad {
        /// File or shipped name, line and column where there are any.
        place: String,
        /// What is wrong, and its mend.
        problem: String,
    },
}

impl Scenario {
    /// A shipped scenario by its name, or a file by its path.
    ///
    /// # Errors
    /// [`ScenarioError`], with file, line and column where there are any.
    pub fn load(name: &str) -> Result<Scenario, ScenarioError> {
        if let Some(text) = shipped::text(name)? {
            return Self::parse(&text, name);
        }
        let path = Path::new(name);
        let looks_like_file = name.contains(['/', '.']);
        let size = match std::fs::metadata(path) {
            Ok(meta) => meta.len(),
            Err(_) if !looks_like_file => {
                return Err(ScenarioError::Unknown {
                    name: name.into(),
                    nearest: shipped::nearest(name),
                });
            }
            Err(source) => {
                return Err(ScenarioError::Read {
                    path: path.into(),
                    source,
                });
            }
        };
        if size > MAX_FILE {
            return Err(ScenarioError::Bad {
                place: name.into(),
                problem: format!("the file has {size} bytes; a scenario has at most {MAX_FILE}"),
            });
        }
        let text = std::fs::read_to_string(path).map_err(|source| ScenarioError::Read {
            path: path.into(),
            source,
        })?;
        Self::parse(&text, name)
    }

    /// Reads YAML text; `place` is the file (traces are found beside it) or whatever errors should name.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, place: &str) -> Result<Scenario, ScenarioError> {
        check::scenario(yaml::parse(text, place)?, text, place)
    }

    /// The shipped name, or the file's name without its ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line of what it models.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The YAML that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of its hosts, in order.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Where it came from, whatever the working directory is later.
    pub(crate) fn absolute_place(&self) -> String {
        std::fs::canonicalize(&self.place).map_or_else(
            |_| self.place.clone(),
            |p| p.to_string_lossy().into_owned(),
        )
    }

    /// What changes when, from the start of the lab, in order of time.
    pub(crate) fn changes(&self) -> &[(Duration, Change)] {
        &self.changes
    }

    /// The media, idle, with everything that holds from the start.
    pub(crate) fn channels(&self) -> Result<Channels, String> {
        Channels::new(self)
    }

    pub(crate) fn plan(&self) -> Result<Plan, ScenarioError> {
        Plan::new(self).map_err(|crate::tap::plan::Unreachable(from, to)| ScenarioError::Bad {
            place: self.place.clone(),
            problem: format!(
                "host '{}' has no way to '{}': give them a medium in common, or a relay between them",
                self.hosts[from], self.hosts[to]
            ),
        })
    }

    /// A change of this lab, from what a user wrote.
    pub(crate) fn change(&self, target: &str, set: Settings) -> Result<Change, String> {
        let place = Place::parse(target, self)?;
        Ok(Change {
            place,
            effect: set.resolve(Path::new(&self.place).parent())?,
        })
    }
}

impl Medium {
    /// Stations that `station` reaches without another host's kernel.
    pub(crate) fn neighbours(&self, station: usize) -> impl Iterator<Item = usize> + '_ {
        let linked = move |other: &usize| match &self.kind {
            Kind::Wire(_) => true,
            Kind::Wifi(wifi) => match &wifi.topology {
                Topology::Chain => station.abs_diff(*other) == 1,
                // The access point forwards without any host's kernel.
                Topology::Mesh | Topology::AccessPoint { .. } => true,
                Topology::Links(pairs) => {
                    pairs.contains(&(station, *other)) || pairs.contains(&(*other, station))
                }
            },
        };
        (0..self.hosts.len()).filter(move |other| *other != station && linked(other))
    }
}
