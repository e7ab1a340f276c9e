//! What users of ROS's own commands type out of habit, and what to type here.
//!
//! The parser knows only its own options, so its tips for these words mislead: for `topic echo --filter` it suggests
//! `--field`. Words with a direct equivalent are aliases in the commands themselves.

use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use terminal::help;

/// A command, as the words before the unknown one, with its unknown words and the advice. The command `*` is any.
type Habit = (&'static str, &'static [&'static str], &'static str);

const HABITS: &[Habit] = &[
    ("", &["echo"], "use `ropewalk topic echo TOPIC`"),
    ("", &["pub"], "use `ropewalk topic pub TOPIC TYPE YAML`"),
    ("", &["hz"], "use `ropewalk topic hz TOPIC`"),
    ("", &["bw"], "use `ropewalk topic bw TOPIC`"),
    ("", &["delay"], "use `ropewalk topic delay TOPIC`"),
    (
        "",
        &["list", "ls"],
        "use `ropewalk topic list`, or list services, actions, nodes or interfaces",
    ),
    ("", &["call"], "use `ropewalk service call SERVICE YAML`"),
    (
        "",
        &["send_goal"],
        "use `ropewalk action send_goal ACTION TYPE YAML`",
    ),
    (
        "",
        &["status"],
        "use `ropewalk link status`, or `ropewalk top` for a live view",
    ),
    (
        "",
        &["set"],
        "use `ropewalk link set`, `ropewalk lab set` or `ropewalk param set`",
    ),
    ("", &["version"], "use `ropewalk --version`"),
    (
        "",
        &["run", "launch", "rosrun", "roslaunch"],
        "start programs as before, ROS 2 nodes with RMW_IMPLEMENTATION=rmw_ropewalk in the environment",
    ),
    (
        "",
        &["daemon", "core", "roscore"],
        "a single host needs no daemon; `ropewalk doctor` checks the bus",
    ),
    (
        "",
        &["rosparam"],
        "ROS 1 keeps parameters in its master: use its own rosparam",
    ),
    ("", &["rossrv"], "use `ropewalk interface show TYPE --ros1`"),
    (
        "",
        &["lifecycle"],
        "call the node's service: `ropewalk service call /NODE/change_state YAML`",
    ),
    (
        "",
        &["graph", "rqt_graph"],
        "use `ropewalk node list` and `ropewalk node info NODE`",
    ),
    ("topic", &["show", "cat"], "use `ropewalk topic echo TOPIC`"),
    (
        "topic echo",
        &["--filter"],
        "filter lines of JSON: ropewalk topic echo TOPIC --json | jq 'select(.data > 1)'",
    ),
    (
        "topic echo",
        &["--raw"],
        "`ropewalk record FILE TOPIC` stores the bytes of messages",
    ),
    ("topic echo", &["-p"], "use --csv"),
    (
        "topic echo",
        &["-b", "--bag"],
        "play the recording at the same time: `ropewalk play FILE`",
    ),
    (
        "topic echo",
        &["-c", "--clear"],
        "use `watch ropewalk topic echo TOPIC --once`",
    ),
    (
        "topic pub",
        &["-l", "--latch"],
        "use --qos-durability transient_local and --keep-alive SECONDS",
    ),
    (
        "topic pub",
        &["-p", "--print", "-v"],
        "use `ropewalk topic echo TOPIC` to see the messages",
    ),
    ("topic hz", &["-w"], "use --window SECONDS"),
    ("topic bw", &["-w"], "use --window SECONDS"),
    ("topic delay", &["-w"], "use --window SECONDS"),
    (
        "topic hz",
        &["-n", "--count", "--once", "-1"],
        "use --duration SECONDS",
    ),
    (
        "topic bw",
        &["-n", "--count", "--once", "-1"],
        "use --duration SECONDS",
    ),
    (
        "topic delay",
        &["-n", "--count", "--once", "-1"],
        "use --duration SECONDS",
    ),
    (
        "topic hz",
        &["--filter"],
        "use `ropewalk topic echo TOPIC --json`, which tools such as jq can filter",
    ),
    (
        "topic list",
        &["-v", "--verbose"],
        "use `ropewalk topic info TOPIC -v`",
    ),
    ("service", &["args"], "use `ropewalk interface show TYPE`"),
    (
        "service",
        &["echo"],
        "`ropewalk service info SERVICE` shows servers and clients; calls cannot be printed",
    ),
    (
        "node",
        &["ping"],
        "use `ropewalk node info NODE`; `ropewalk node list` names processes that do not answer",
    ),
    (
        "node",
        &["kill", "cleanup"],
        "end the process; `ropewalk node info NODE` prints its number",
    ),
    (
        "msg",
        &["package", "packages"],
        "use `ropewalk interface packages --ros1`, or `interface package`",
    ),
    ("interface", &["md5"], "use `ropewalk msg md5 TYPE`"),
    (
        "play",
        &["-i", "--immediate"],
        "use --speed, for example --speed 1000",
    ),
    ("play", &["--info"], "use `ropewalk info FILE`"),
    (
        "play",
        &["-d", "--delay"],
        "use --wait SECONDS, which waits for subscribers",
    ),
    (
        "play",
        &["--read-ahead-queue-size", "-q", "--quiet", "-k", "--keep-alive"],
        "leave it out",
    ),
    (
        "record",
        &["-e", "--regex", "-x", "--exclude", "--exclude-regex"],
        "name the topics after the file: ropewalk record FILE TOPIC...",
    ),
    ("record", &["-b"], "use --buffer MIB"),
    (
        "record",
        &[
            "--compression-mode",
            "--compression-format",
            "-j",
            "--bz2",
            "--lz4",
        ],
        "use --compression",
    ),
    (
        "record",
        &["-s", "--storage"],
        "recordings are MCAP: FILE, or a folder with --rosbag2 FOLDER",
    ),
    (
        "bag",
        &["reindex", "check", "fix"],
        "`ropewalk play` and `ropewalk info` read recordings without an index",
    ),
    (
        "bag",
        &["convert", "filter", "decompress", "compress"],
        "play the recording, and record what it plays: `ropewalk play FILE`, `ropewalk record FILE`",
    ),
    (
        "*",
        &["-o", "--output", "--format"],
        "commands that print lists and numbers have --json",
    ),
    (
        "*",
        &["--no-daemon", "--spin-time", "--use-sim-time"],
        "leave it out: there is no daemon to wait for",
    ),
    (
        "*",
        &["-v", "--verbose", "--debug"],
        "set RUST_LOG=info (or debug) for more log messages",
    ),
];

/// The error with advice that fits the habit, if the unknown word is one.
pub(crate) fn advise(mut error: clap::Error, command: &Command, words: &[String]) -> clap::Error {
    let context = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return error,
    };
    let Some(ContextValue::String(unknown)) = error.get(context) else {
        return error;
    };
    let unknown = unknown.split(['=', ' ']).next().unwrap_or(unknown).to_owned();
    let path = path(command, words);
    let of = |at: &str| {
        HABITS
            .iter()
            .find(|h| h.0 == at && h.1.contains(&unknown.as_str()))
    };
    if let Some((_, _, advice)) = of(&path).or_else(|| of("*")) {
        // Suggestions by spelling, and the usage made of them.
        for kind in [
            ContextKind::SuggestedArg,
            ContextKind::SuggestedSubcommand,
            ContextKind::Usage,
        ] {
            error.remove(kind);
        }
        let tips = vec![StyledStr::from(*advice)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    } else if unknown.starts_with('-') {
        // "to pass '-n' as a value, use '-- -n'" is never what was meant.
        error.remove(ContextKind::Suggested);
    }
    help::without_far_suggestions(error)
}

/// The words that name the subcommand.
fn path(command: &Command, words: &[String]) -> String {
    let (mut command, mut path) = (command, Vec::new());
    for word in words {
        match command.find_subcommand(word) {
            Some(found) => {
                path.push(found.get_name());
                command = found;
            }
            None => break,
        }
    }
    path.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;

    fn says(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let all = std::iter::once("ropewalk".to_owned()).chain(words.clone());
        let error = Cli::command()
            .try_get_matches_from(all)
            .expect_err("not accepted");
        advise(error, &Cli::command(), &words).to_string()
    }

    #[test]
    fn every_habit_gets_its_advice() {
        for (path, unknown, advice) in HABITS {
            let path = if *path == "*" { "topic info" } else { path };
            for word in *unknown {
                // `topic info` has its own -v.
                if path == "topic info" && matches!(*word, "-v" | "--verbose") {
                    continue;
                }
                let words: Vec<_> = path.split_whitespace().chain([*word]).collect();
                let said = says(&words);
                let plain: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(plain.contains(&format!("tip: {advice}")), "{words:?}: {said}");
                assert!(!plain.contains("similar"), "{words:?}: {said}");
            }
        }
    }

    #[test]
    fn advice_that_names_a_command_names_one_that_exists() {
        let quoted = HABITS.iter().flat_map(|h| h.2.split('`').skip(1).step_by(2));
        for line in quoted.filter_map(|quote| quote.split_once("ropewalk ").map(|(_, line)| line)) {
            if line.starts_with('-') {
                continue;
            }
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let depth = words
                .iter()
                .take_while(|w| w.chars().all(|c| c.is_lowercase() || c == '_' || c == '5'));
            let named = depth.cloned().collect::<Vec<_>>();
            assert_eq!(path(&Cli::command(), &named), named.join(" "), "{line}");
        }
    }

    #[test]
    fn misspelt_words_keep_the_parsers_suggestion() {
        assert!(says(&["topic", "lsit"]).contains("'list'"));
        assert!(says(&["topic", "list", "--jsn"]).contains("'--json'"));
        let far = says(&["topic", "hz", "/a", "--seconds", "3"]);
        assert!(far.contains("'--seconds'") && !far.contains("--json"), "{far}");
        let odd = says(&["topic", "list", "-z"]);
        assert!(!odd.contains("as a value") && odd.contains("'-z'"), "{odd}");
    }
}
