//! What a user can ask for.

use super::super::Options as Scale;
use super::machine::Machine;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// How a machine is reached unless it is told: whoever may log in may measure.
const SSH: &str = "ssh -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=5 {host}";

/// Runs experiments across real machines, with the same commands as on this one.
///
/// On each HOST an agent is started through ssh, which starts the nodes there, counts what they use, and ends with all that it
/// started when the connection ends: nothing of Ropewalk listens or stays. Each HOST needs ssh without a password, and this
/// version of `ropewalk` on its PATH. Half of the machines send, the others echo: give one, or an even number. What follows `--`
/// is an experiment; all of `ropewalk bench scale` take place on these machines instead of their media.
///
/// The machines speak with each other at their ADDRESSes (default: what HOST stands for here); links are encrypted, with keys
/// that count for this session alone. `here` is this machine, without ssh.
///
/// Examples:
///   ropewalk bench agent robot1,robot2 -- scale --experiment 8 --quick
///   ropewalk bench agent here,pi@robot=192.168.1.7 -- scale --experiment 8 --systems ropewalk,roscpp --out robots
///   ropewalk bench agent --reach 'ip netns exec {host}' a=10.0.0.1,b=10.0.0.2 -- scale --experiment 1 --quick
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// The machines, and their addresses if others reach them by another than HOST.
    #[arg(
        value_name = "HOST[=ADDRESS],…",
        value_delimiter = ',',
        required_unless_present = "serve"
    )]
    hosts: Vec<Machine>,
    /// What starts a program on a machine: words, among them {host}. The program's words follow; its input and output are those
    /// of the command.
    #[arg(long, value_name = "COMMAND", default_value = SSH)]
    reach: String,
    /// Ropewalk there, if it is not on the PATH.
    #[arg(long, value_name = "PATH", default_value = "ropewalk")]
    program: String,
    /// The folder of the peers (with --serve; else give it to the experiment, which hands it on).
    #[arg(long, value_name = "FOLDER", conflicts_with = "hosts")]
    peers: Option<PathBuf>,
    /// Be an agent: what is started on each HOST. It is spoken with through its input and output, and does what experiments
    /// need, and nothing else.
    #[arg(long, conflicts_with_all = ["hosts", "experiment"])]
    pub serve: bool,
    /// An experiment with its options, such as `scale --experiment 8 --quick`.
    #[arg(last = true, value_name = "EXPERIMENT", required_unless_present = "serve")]
    experiment: Vec<OsString>,
}

/// What can be run across machines.
#[derive(Parser)]
#[command(disable_version_flag = true)]
struct Experiment {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Scale(Scale),
}

impl Options {
    /// The experiment, which takes place on these machines.
    ///
    /// # Errors
    /// There is none of that name, or not with such options; or its help was asked for.
    pub fn experiment(&self) -> Result<Scale, clap::Error> {
        let name = OsString::from("ropewalk bench agent HOST,… --");
        let words = std::iter::once(&name).chain(&self.experiment);
        let What::Scale(mut scale) = Experiment::try_parse_from(words)?.what;
        scale.machines = u32::try_from(self.hosts.len()).unwrap_or(u32::MAX);
        Ok(scale)
    }

    pub(super) fn machines(&self) -> &[Machine] {
        &self.hosts
    }

    pub(super) fn peers(&self) -> Option<&PathBuf> {
        self.peers.as_ref()
    }

    /// The words that start an agent on a machine, if it is reached by a command.
    pub(super) fn words(&self, host: &str, peers: Option<&PathBuf>) -> Vec<String> {
        let reach = self.reach.split_whitespace();
        let mut words: Vec<String> = reach.map(|w| w.replace("{host}", host)).collect();
        words.extend(self.program.split_whitespace().map(str::to_owned));
        words.extend(serve(peers));
        words
    }

    /// Whether machines are reached by ssh.
    pub(super) fn by_ssh(&self) -> bool {
        self.reach.split_whitespace().next() == Some("ssh")
    }
}

/// What follows a program that is an agent.
pub(super) fn serve(peers: Option<&PathBuf>) -> Vec<String> {
    let mut words: Vec<String> = ["bench", "agent", "--serve"].map(str::to_owned).into();
    if let Some(peers) = peers {
        words.extend(["--peers".to_owned(), peers.to_string_lossy().into_owned()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Parser)]
    struct Whole {
        #[command(flatten)]
        options: Options,
    }

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        Whole::try_parse_from([&["agent"], words].concat()).map(|w| w.options)
    }

    #[test]
    fn machines_and_experiments_are_understood_or_refused() {
        let options = parse(&["a,me@b=10.0.0.2", "--", "scale", "--experiment", "8", "--quick"]);
        let options = options.expect("is right");
        let scale = options.experiment().expect("an experiment");
        assert_eq!(
            (scale.machines, &scale.experiment[..], scale.quick),
            (2, &[8][..], true)
        );
        let words = options.words("me@b", None).join(" ");
        assert!(
            words.starts_with("ssh -T") && words.ends_with(" me@b ropewalk bench agent --serve"),
            "{words}"
        );
        let options = parse(&["--reach", "in {host} do", "--program", "/r", "a", "--", "scale"]);
        let options = options.expect("is right");
        let words = options.words("a", Some(&"p".into())).join(" ");
        assert_eq!(words, "in a do /r bench agent --serve --peers p");
        assert!(options.experiment().is_err() && !options.by_ssh());
        assert!(parse(&["--serve"]).is_ok_and(|o| o.serve));
        for bad in [
            &[][..],
            &["a,b"],
            &["--serve", "a", "--", "scale"],
            &["-oProxyCommand=x", "--", "scale"],
            &["a,,b", "--", "scale"],
            &["--peers", "p", "a", "--", "scale"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        let other = parse(&["a", "--", "ipc", "--quick"]).expect("is right so far");
        assert!(other.experiment().is_err());
    }
}
