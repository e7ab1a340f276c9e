//! `ropewalk keys`: the members of a team.

use crate::failure::{OrFail, Outcome};
use clap::{Args, Subcommand};
use link::keys::{Bundle, Team};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Create and revoke the keys of a team's hosts
///
/// Run it on the team owner's machine, which needs no network:
///
///   ropewalk keys team rovers     # once: creates the folder rovers/
///   ropewalk keys host robot      # creates rovers/hosts/robot/; copy it there
///   ropewalk keys host base
///   ropewalk keys revoke robot    # if a robot is lost: then copy
///                                 # rovers/revoked.pem to every host
///
/// Commands other than `team` use the team in --team, else the only team in the
/// current folder or its subfolders.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a team: the folder NAME with the key that signs its hosts' certificates. Keep it safe.
    Team {
        name: String,
        /// Where to create the folder (default: NAME).
        #[arg(long)]
        folder: Option<PathBuf>,
    },
    /// Create a host's keys: a folder to copy to the host, and to set as `keys:` in its link's configuration.
    Host {
        name: String,
        /// Days until its certificate expires.
        #[arg(long, default_value_t = 730, value_parser = clap::value_parser!(u32).range(1..=14_600))]
        days: u32,
        #[command(flatten)]
        team: TeamFolder,
    },
    /// Revoke a host's certificates. Links close its connections within a second of getting the new list.
    Revoke {
        host: String,
        #[command(flatten)]
        team: TeamFolder,
    },
    /// List all certificates of the team.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        team: TeamFolder,
    },
    /// Check a host's keys: whose they are, and whether they are valid.
    Show {
        /// The host's folder.
        folder: PathBuf,
        /// The host's name (default: the folder's).
        #[arg(long)]
        host: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
struct TeamFolder {
    /// The team's folder.
    #[arg(long, value_name = "FOLDER")]
    team: Option<PathBuf>,
}

impl TeamFolder {
    fn open(&self) -> Result<Team, crate::failure::Failure> {
        if let Some(folder) = &self.team {
            return Team::open(folder).or_input();
        }
        let is_team = |folder: &PathBuf| folder.join(link::keys::TEAM_KEY).is_file();
        let here = PathBuf::from(".");
        let below = std::fs::read_dir(&here)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path());
        let mut found: Vec<PathBuf> = std::iter::once(here.clone())
            .chain(below)
            .filter(is_team)
            .collect();
        match (found.pop(), found.len()) {
            (Some(folder), 0) => Team::open(&folder).or_input(),
            (None, _) => {
                Err("no team here: create one with `ropewalk keys team NAME`, or name its folder with --team")
                    .or_input()
            }
            _ => Err("several teams here: choose the folder of one with --team").or_input(),
        }
    }
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut out = crate::screen::stdout();
    match &options.command {
        Command::Team { name, folder } => {
            let folder = folder.clone().unwrap_or_else(|| name.into());
            Team::create(&folder, name).or_input()?;
            writeln!(
                out,
                "created the team {name} in {}; its team.key signs new hosts: keep it safe",
                folder.display()
            )
        }
        Command::Host { name, days, team } => {
            let life = Duration::from_secs(u64::from(*days) * 86_400);
            let folder = team.open()?.add_host(name, life).or_input()?;
            writeln!(
                out,
                "created {}; copy it to {name} (scp -rp), and set `keys: FOLDER` in its link's configuration",
                folder.display()
            )
        }
        Command::Revoke { host, team } => {
            let list = team.open()?.revoke(host).or_input()?;
            writeln!(
                out,
                "revoked {host}; copy {} into the keys folder of every host; running links notice it",
                list.display()
            )
        }
        Command::List { json, team } => {
            let ledger = team.open()?.ledger().or_input()?;
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_secs());
            let mut text = String::new();
            let mut rows = Vec::new();
            for e in &ledger.entries {
                let state = match (e.revoked, e.expires <= now) {
                    (Some(_), _) => "revoked",
                    (None, true) => "expired",
                    (None, false) => "valid",
                };
                let days = e.expires.saturating_sub(now) / 86_400;
                text += &format!(
                    "{:<24} {state:<8} {days:>6} days left  {}\n",
                    e.host,
                    e.serial_text()
                );
                rows.push(json!({"host": e.host, "state": state, "serial": e.serial_text(),
                    "expires_unix_s": e.expires, "revoked_unix_s": e.revoked}));
            }
            if *json {
                writeln!(out, "{}", json!(rows))
            } else {
                write!(out, "{text}")
            }
        }
        Command::Show { folder, host, json } => {
            let name = folder.canonicalize().ok();
            let name = name
                .as_deref()
                .and_then(|f| f.file_name())
                .and_then(|n| n.to_str());
            let host = host.as_deref().or(name).unwrap_or_default();
            let about = Bundle::load(folder, host).or_input()?.about();
            if *json {
                writeln!(
                    out,
                    "{}",
                    json!({"host": host, "team": about.team, "expires_unix_s": about.expires,
                        "serial": about.serial, "valid": true})
                )
            } else {
                writeln!(
                    out,
                    "{host} of team {}: valid, serial {}, until {} UTC",
                    about.team,
                    about.serial,
                    crate::numbers::date(about.expires)
                )
            }
        }
    }
    .or_job("writing")
}
