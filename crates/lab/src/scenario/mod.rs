//! Scenarios: hosts, media, and their changes over time.

mod apply;
mod channels;
mod check;
mod settings;
mod shipped;
mod yaml;

pub(crate) use channels::{Channels, Counts, Packet};
pub use settings::Settings;
pub(crate) use settings::{Change, Target};
pub use shipped::{Shipped, shipped};

use crate::tap::plan::Plan;
use medium::{Hearing, Standard, Topology};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most hosts of a lab: the last byte of their addresses.
pub const MAX_HOSTS: usize = 250;
/// Most media of a lab.
pub const MAX_MEDIA: usize = 64;
/// Most changes over time of a lab.
pub const MAX_EVENTS: usize = 10_000;
/// Congestion control of TCP on hosts whose scenario does not choose one: the one that the literature's figures are
/// for, whatever this machine's default is.
pub(crate) const CONGESTION_CONTROL: &str = "cubic";
/// Size limit of a scenario file.
const MAX_FILE: u64 = 1 << 20;

/// The definition of a lab, in YAML; the guide (`docs/guide/lab.md`) explains each key.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    place: String,
    text: String,
    description: String,
    seed: u64,
    /// Congestion control of TCP on the hosts, if not [`CONGESTION_CONTROL`].
    pub(crate) congestion_control: Option<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) media: Vec<Medium>,
    changes: Vec<(Duration, Change)>,
}

/// One medium of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Medium {
    pub(crate) name: String,
    /// Its hosts by their index in the scenario; a host's index in this list is its station.
    pub(crate) hosts: Vec<usize>,
    pub(crate) kind: Kind,
    /// Frames that a host's device queue holds, if not the default.
    pub(crate) queue_frames: Option<usize>,
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
    /// `None` takes no time at all.
    pub(crate) rate_bits: Option<u64>,
    /// For a long haul: bytes in front of each end. Otherwise it is an Ethernet.
    pub(crate) queue_bytes: Option<usize>,
}

/// Why a scenario was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Neither shipped nor a file.
    #[error(
        "there is no scenario '{name}': give a file, or a name that `ropewalk lab list` prints{nearest}",
        nearest = nearest.as_ref().map(|n| format!(" (perhaps {n})")).unwrap_or_default()
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The shipped scenario with the nearest name.
        nearest: Option<String>,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The text is not a valid scenario.
    #[error("{place}: {problem}")]
    Bad {
        /// File or shipped name, and line and column if known.
        place: String,
        /// What is wrong, and how to fix it.
        problem: String,
    },
}

impl Scenario {
    /// Loads a shipped scenario by its name, or a file by its path.
    ///
    /// # Errors
    /// [`ScenarioError`], with file, line and column if known.
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

    /// Parses YAML text; `place` is the file (traces are looked up next to it) or the name to use in errors.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, place: &str) -> Result<Scenario, ScenarioError> {
        check::scenario(yaml::parse(text, place)?, text, place)
    }

    /// The shipped name, or the file's name without its extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One-line description of what it models.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The YAML that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The congestion control of TCP on its hosts, such as `cubic`.
    pub fn congestion_control(&self) -> &str {
        self.congestion_control.as_deref().unwrap_or(CONGESTION_CONTROL)
    }

    /// Sets the congestion control of TCP on its hosts, such as `bbr`.
    ///
    /// # Errors
    /// [`ScenarioError::Bad`] if `name` cannot be an algorithm's name. Whether the kernel has it shows when the lab
    /// starts.
    pub fn set_congestion_control(&mut self, name: &str) -> Result<(), ScenarioError> {
        check::congestion_control(name).map_err(|problem| ScenarioError::Bad {
            place: self.place.clone(),
            problem,
        })?;
        self.congestion_control = Some(name.to_owned());
        Ok(())
    }

    /// Names of its hosts, in order.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The place it was loaded from, independent of the working directory.
    pub(crate) fn absolute_place(&self) -> String {
        std::fs::canonicalize(&self.place)
            .map_or_else(|_| self.place.clone(), |p| p.to_string_lossy().into_owned())
    }

    /// Changes, with their times from the start of the lab, in order of time.
    pub(crate) fn changes(&self) -> &[(Duration, Change)] {
        &self.changes
    }

    /// The media, idle, with all initial settings.
    pub(crate) fn channels<P: Clone>(&self) -> Result<Channels<P>, String> {
        Channels::new(self)
    }

    pub(crate) fn plan(&self) -> Result<Plan, ScenarioError> {
        Plan::new(self).map_err(|crate::tap::plan::Unreachable(from, to)| ScenarioError::Bad {
            place: self.place.clone(),
            problem: format!(
                "host '{}' has no route to '{}': give them a medium in common, or a relay between them",
                self.hosts[from], self.hosts[to]
            ),
        })
    }

    /// A change of this lab, from a user's input.
    pub(crate) fn change(&self, target: &str, set: Settings) -> Result<Change, String> {
        let target = Target::parse(target, self)?;
        Ok(Change {
            target,
            effect: set.resolve(Path::new(&self.place).parent())?,
        })
    }
}

impl Medium {
    /// Stations that `station` reaches without another host's kernel.
    pub(crate) fn neighbours(&self, station: usize) -> impl Iterator<Item = usize> + '_ {
        // The access point forwards without any host's kernel.
        let forwards =
            matches!(&self.kind, Kind::Wifi(w) if matches!(w.topology, Topology::AccessPoint { .. }));
        let reached = move |other: &usize| *other != station && (forwards || self.linked(station, *other));
        (0..self.hosts.len()).filter(reached)
    }

    /// Whether frames go from one station to the other over the air or wire itself.
    pub(crate) fn linked(&self, a: usize, b: usize) -> bool {
        let Kind::Wifi(wifi) = &self.kind else {
            return a != b;
        };
        match &wifi.topology {
            Topology::Chain => a.abs_diff(b) == 1,
            Topology::Mesh => a != b,
            Topology::AccessPoint { ap } => a != b && (a == *ap || b == *ap),
            Topology::Links(pairs) => pairs.contains(&(a, b)) || pairs.contains(&(b, a)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
description: A field test.
seed: 7
congestion_control: bbr
hosts: [robot, relay, base]
media:
  - name: wifi
    wifi: {standard: 802.11g, rate: 6Mbit/s, topology: chain}
    queue: 100
    set: {loss: 1%}
  - name: cable
    hosts: [relay, base]
    wifi: {rate: 54Mbit/s}
links:
  - {target: robot-relay, set: {loss: {gilbert: {to_bad: 1%, to_good: 30%}}, delay: {normal: [20ms, 5ms]}}}
events:
  - {at: 5s, target: wifi, set: {rate: 2Mbit/s}}
  - {at: 2s, target: robot>relay, set: {down: true}}
  - {at: 3s, target: relay, set: {down: false, packet_loss: 0.1, duplicate: 1%}}
";

    #[test]
    fn reads_what_the_guide_shows() {
        let s = Scenario::parse(GOOD, "/tmp/field.yaml").expect("is good");
        assert_eq!(
            (s.name(), s.description(), s.hosts().len()),
            ("field", "A field test.", 3)
        );
        let at: Vec<u64> = s.changes().iter().map(|(at, _)| at.as_secs()).collect();
        assert_eq!(at, [0, 0, 2, 3, 5], "in order of time");
        assert_eq!(
            s.changes()[2].1.target,
            Target::Link {
                from: 0,
                to: 1,
                both: false
            }
        );
        let plan = s.plan().expect("all are reached");
        assert_eq!(plan.relays, [false, true, false]);
        assert!(
            plan.ip_batch(0)
                .contains("route add 10.77.0.3/32 via 10.77.0.2 dev wifi congctl bbr\n")
        );
        assert!(
            plan.ip_batch(0)
                .contains("route add 10.77.1.3/32 via 10.77.0.2 dev wifi congctl bbr\n")
        );
        assert!(
            plan.ip_batch(2)
                .contains("neigh add 10.77.1.2 lladdr 02:52:57:00:01:02 nud permanent dev cable\n")
        );
        assert!(
            plan.ip_batch(2)
                .contains("route replace 10.77.1.0/24 dev cable scope link src 10.77.1.3 congctl bbr\n")
        );
        assert_eq!(
            plan.etc_hosts(),
            "127.0.0.1 localhost\n10.77.0.1 robot\n10.77.0.2 relay\n10.77.0.3 base\n"
        );
    }

    #[test]
    fn every_refusal_is_one_line_with_the_place_and_the_fix() {
        let many = format!(
            "hosts: [{}]",
            (0..251).map(|i| format!("h{i}")).collect::<Vec<_>>().join(", ")
        );
        let mut wrong: Vec<String> = Vec::new();
        for (from, to, expected) in [
            (
                "queue: 100",
                "queu: 100",
                "f.yaml:8:5: unknown field `queu` (did you mean queue?), expected one of name, hosts, wifi, wire, queue, set",
            ),
            (
                "congestion_control: bbr",
                "congestion_control: ../bbr",
                "f.yaml:3:21: '../bbr' cannot be a TCP congestion control: name one of `sysctl net.ipv4.tcp_available_congestion_control`",
            ),
            (
                "hosts: [robot, relay, base]",
                "hosts: [robot, relay, robot]",
                "f.yaml:4:23: the host 'robot' is named twice: give each its own name",
            ),
            (
                "hosts: [robot, relay, base]",
                "hosts: [robot]",
                "f.yaml:4:8: the lab has 1 hosts: give 2 to 250",
            ),
            (
                "hosts: [robot, relay, base]",
                &many,
                "f.yaml:4:8: the lab has 251 hosts: give 2 to 250",
            ),
            (
                "hosts: [robot, relay, base]",
                "hosts: [Robot, relay, base]",
                "f.yaml:4:9: 'Robot' cannot be a host's name: use a letter, then a-z, 0-9 and '-', at most 63 characters",
            ),
            (
                "hosts: [robot, relay, base]",
                "hosts: [localhost, relay, base]",
                "f.yaml:4:9: 'localhost' is every host's own name: give another",
            ),
            (
                "hosts: [relay, base]",
                "hosts: [relay, bas]",
                "f.yaml:11:20: there is no host 'bas': add it to `hosts`, or correct the name",
            ),
            (
                "hosts: [relay, base]",
                "hosts: [relay, relay]",
                "f.yaml:11:20: the host 'relay' is listed twice: leave one out",
            ),
            (
                "hosts: [relay, base]",
                "hosts: [relay]",
                "f.yaml:10:11: the medium 'cable' has fewer than two hosts: name two or more",
            ),
            (
                "    queue: 100\n",
                "    hosts: [robot, relay]\n    queue: 0\n",
                "f.yaml:9:12: the queue has 0 frames: give 1 to 100000",
            ),
            (
                "name: cable",
                "name: wifi",
                "f.yaml:10:11: the name 'wifi' is taken by another medium or a host: give another",
            ),
            (
                "name: cable",
                "name: base",
                "f.yaml:10:11: the name 'base' is taken by another medium or a host: give another",
            ),
            (
                "name: cable",
                "name: lo",
                "f.yaml:10:11: 'lo' cannot be a medium's name, which also names its devices: use 1 to 15 characters of a-z and 0-9, not 'lo'",
            ),
            (
                "    wifi: {rate: 54Mbit/s}\n",
                "",
                "f.yaml:10:11: the medium 'cable' needs either `wifi: {rate: 6Mbit/s}` or `wire: {rate: 100Mbit/s}`",
            ),
            (
                "rate: 6Mbit/s",
                "rate: 6MB/s",
                "f.yaml:7:37: '6MB/s' is not a bit rate above zero: write for example 6Mbit/s or 500kbit/s",
            ),
            (
                "topology: chain",
                "topology: access_point",
                "f.yaml:6:11: `topology: access_point` needs `access_point: HOST`: name the host",
            ),
            (
                "topology: chain",
                "access_point: base",
                "f.yaml:7:60: `access_point` goes with `topology: access_point`: add that, or leave it out",
            ),
            (
                "topology: chain",
                "topology: links, links: [robot-bas]",
                "f.yaml:7:71: 'robot-bas' is not a pair of hosts of the medium 'wifi': write HOST-HOST",
            ),
            (
                "target: robot-relay",
                "target: robot-base",
                "f.yaml:14:14: no medium joins robot and base directly: name two neighbours",
            ),
            (
                "target: wifi",
                "target: wify",
                "f.yaml:16:22: 'wify' is neither a link (HOST-HOST both ways, HOST>HOST one way), a medium (wifi, cable) nor a host (robot, relay, base)",
            ),
            (
                "set: {rate: 2Mbit/s}",
                "set: {}",
                "f.yaml:16:33: nothing is set: write for example {loss: 20%, delay: 10ms} or {down: true}",
            ),
            (
                "hosts: [robot, relay, base]",
                "hosts: robot",
                "f.yaml:4:8: a list is expected here, such as [robot, base]",
            ),
            (
                "topology: chain",
                "retries: 300",
                "f.yaml:7:55: a whole number from 0 to 255 is expected here",
            ),
            (
                "target: relay, set: {down: false,",
                "target: robot-relay, set: {down: false,",
                "",
            ),
            (
                "target: robot>relay, set: {down: true}",
                "target: robot, set: {down: true}}\n  - {at: 2500ms, target: robot-relay, set: {down: false}",
                "f.yaml: the event at 2.5s: the link cannot come up while its end 'robot' is switched off: set 'robot' up first",
            ),
            (
                "at: 5s",
                "at: 5",
                "f.yaml:16:10: '5' is not a duration: write for example 250ms or 2s",
            ),
            (
                "loss: 1%",
                "loss: 101%",
                "f.yaml:9:17: a loss is a share such as 20%, {gilbert: {to_bad: 1%, to_good: 30%, good: 0%, bad: 100%}} or {trace: FILE}",
            ),
            (
                "loss: 1%",
                "loss: {trace: gone.txt}",
                "f.yaml:9:10: the trace gone.txt: No such file or directory (os error 2)",
            ),
            (
                "rate: 2Mbit/s",
                "delay: soon",
                "f.yaml:16:41: a delay is a duration such as 100ms, {uniform: [MIN, MAX]}, {normal: [MEAN, STD]} or {pareto: [MIN, MEAN, MAX]}",
            ),
            (
                "hosts: [robot, relay, base]\nmedia",
                "hosts: [robot, relay, base, far]\nmedia",
                "",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let text = GOOD.replacen(from, to, 1);
            let error = match Scenario::parse(&text, "f.yaml") {
                Err(error) => error.to_string(),
                // The wifi without `hosts` takes everybody.
                Ok(_) if expected.is_empty() => continue,
                Ok(_) => panic!("taken: {to}"),
            };
            if error != expected {
                wrong.push(format!("{to}:\n  got  {error}\n  want {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn hosts_without_a_way_are_refused() {
        let text = "hosts: [a, b, c, d]\nmedia:\n  - {name: x, hosts: [a, b], wifi: {rate: 6Mbit/s}}\n";
        let error = |text: &str| Scenario::parse(text, "f.yaml").expect_err("refused").to_string();
        assert_eq!(
            error(text),
            "f.yaml:1:15: the host 'c' is not on any medium: add it to the `hosts` of one"
        );
        let parts = format!("{text}  - {{name: y, hosts: [c, d], wifi: {{rate: 6Mbit/s}}}}\n");
        assert_eq!(
            error(&parts),
            "f.yaml: host 'a' has no route to 'c': give them a medium in common, or a relay between them"
        );
    }

    #[test]
    fn words_of_the_command_line_mean_what_yaml_means() {
        let set = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            Settings::from_words(&words)
        };
        let some = set(&["loss=20%", "delay=100ms", "rate=2Mbit/s", "down"]).expect("is good");
        let effect = some.resolve(None).expect("means something");
        assert_eq!(effect.rate_bits, Some(2_000_000));
        assert_eq!(effect.loss, Some(medium::Loss::Uniform(0.2)));
        assert_eq!(
            effect.delay,
            Some(medium::Delay::Fixed(Duration::from_millis(100)))
        );
        assert_eq!(effect.down, Some(true));
        assert!(set(&["delay={normal: [1s, 50ms]}"]).is_ok());
        for (words, expected) in [
            (&["lost=1%"][..], "unknown field `lost`"),
            (&["sideways"], "'sideways' sets nothing"),
            (&[], "nothing to set"),
            (&["rate=6"], "6Mbit/s"),
            (&["loss=1%", "loss=2%"], "duplicate"),
            (&["loss=1%\nrate=2Mbit/s"], "sets nothing"),
        ] {
            let error = set(words).expect_err("refused");
            assert!(
                error.contains(expected) && error.lines().count() == 1,
                "{words:?}: {error}"
            );
        }
    }
}
