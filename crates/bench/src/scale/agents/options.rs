//! The options.

use super::super::Options as Scale;
use super::machine::Machine;
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Default command to reach a machine: a user who may log in may measure.
const SSH: &str = "ssh -T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=5 {host}";

/// Run experiments across real machines, with the same commands as on this one
///
/// An agent is started on each HOST through ssh. It starts the nodes there,
/// measures what they use, and ends with all that it started when the
/// connection ends: nothing of Ropewalk listens or stays. Each HOST needs ssh
/// without a password, and this version of `ropewalk` on its PATH. Half of the
/// machines send, the others echo: give one, or an even number. An experiment
/// follows `--`; all of `ropewalk bench scale` run on these machines instead
/// of on their media.
///
/// The machines use their ADDRESSes between each other (default: what HOST
/// resolves to on this machine). Links are encrypted, with keys that are valid
/// only for this session. `here` is this machine, without ssh.
///
/// Examples:
///   ropewalk bench agent robot1,robot2 -- scale --experiment 8 --quick
///   ropewalk bench agent here,pi@robot=192.168.1.7 -- \
///       scale --experiment 8 --systems ropewalk,roscpp --out robots
///   ropewalk bench agent --reach 'ip netns exec {host}' \
///       a=10.0.0.1,b=10.0.0.2 -- scale --experiment 1 --quick
#[derive(Args, Clone, Debug)]
#[command(verbatim_doc_comment)]
pub struct Options {
    /// Machines. Give ADDRESS if the other machines do not reach this one at HOST.
    #[arg(
        value_name = "HOST[=ADDRESS],…",
        value_delimiter = ',',
        required_unless_present = "serve"
    )]
    hosts: Vec<Machine>,
    /// Command that starts a program on a machine; it must contain {host}. The program's words are appended, and the
    /// program uses the command's standard input and output.
    #[arg(long, value_name = "COMMAND", default_value = SSH)]
    reach: String,
    /// Path of ropewalk on the machines, if it is not on their PATH.
    #[arg(long, value_name = "PATH", default_value = "ropewalk")]
    program: String,
    /// Folder of the peers (with --serve; otherwise give it to the experiment, which passes it on).
    #[arg(long, value_name = "FOLDER", conflicts_with = "hosts")]
    peers: Option<PathBuf>,
    /// Run as an agent: the program that is started on each HOST. It communicates through its standard input and
    /// output, and does only what experiments need.
    #[arg(long, conflicts_with_all = ["hosts", "experiment"])]
    pub serve: bool,
    /// An experiment with its options, such as `scale --experiment 8 --quick`.
    #[arg(last = true, value_name = "EXPERIMENT", required_unless_present = "serve")]
    experiment: Vec<OsString>,
}

/// The experiments that can run across machines.
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
    /// Returns the experiment to run on these machines.
    ///
    /// # Errors
    /// There is no such experiment, its options are invalid, or its help was requested.
    pub fn experiment(&self) -> Result<Scale, clap::Error> {
        let name = OsString::from("ropewalk bench agent HOST,… --");
        let words = std::iter::once(name).chain(self.experiment.iter().cloned());
        let words = terminal::json::understood(&Experiment::command(), words);
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

    /// Returns the words that start an agent on a machine, if a command reaches it.
    pub(super) fn words(&self, host: &str, peers: Option<&PathBuf>) -> Vec<String> {
        let reach = self.reach.split_whitespace();
        let mut words: Vec<String> = reach.map(|w| w.replace("{host}", host)).collect();
        words.extend(self.program.split_whitespace().map(str::to_owned));
        words.extend(serve(peers));
        words
    }

    /// Returns whether machines are reached by ssh.
    pub(super) fn by_ssh(&self) -> bool {
        self.reach.split_whitespace().next() == Some("ssh")
    }
}

/// Returns the arguments of a program that runs as an agent.
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
        let experiment = ["scale", "--experiment", "8", "--quick", "-o", "json"];
        let options = parse(&[&["a,me@b=10.0.0.2", "--"], &experiment[..]].concat());
        let options = options.expect("is right");
        let scale = options.experiment().expect("an experiment");
        assert_eq!(
            (scale.machines, &scale.experiment[..], scale.quick),
            (2, &[8][..], true)
        );
        assert!(scale.json.is_printed());
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
