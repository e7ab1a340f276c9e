//! The option `--json[=FILE]`, the same in every command, and what users of other programs write for it.

use crate::screen;
use clap::{ArgAction, ArgMatches, Args, Command};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the option, and of its value in [`ArgMatches`].
const NAME: &str = "json";
/// The value of an option that is not given; no argument of a process can be that.
const ABSENT: &str = "\0";
/// Names standard output.
const OUTPUT: &str = "-";

/// Whether a command that measures or predicts prints its result as JSON, or writes it to a file beside the text.
///
/// Other commands have a flag `json: bool`, to which [`everywhere`] gives the same shape.
#[derive(Args, Clone, Debug, Default)]
pub struct Json {
    /// Print the result as JSON instead of text; with FILE, print text, and write the JSON to FILE.
    #[arg(long, value_name = "FILE", require_equals = true)]
    json: Option<Option<PathBuf>>,
}

impl Json {
    /// Whether JSON is printed instead of text.
    pub fn is_printed(&self) -> bool {
        self.json.is_some() && self.file().is_none()
    }

    /// The file that gets the JSON.
    pub fn file(&self) -> Option<&Path> {
        let file = self.json.as_ref()?.as_deref();
        file.filter(|f| f.as_os_str() != OUTPUT)
    }
}

/// Lets each flag `--json` of a program take a file, which [`redirect`] opens: `--json[=FILE]`.
pub fn everywhere(command: Command) -> Command {
    let is_flag = command
        .get_arguments()
        .any(|a| a.get_id() == NAME && matches!(a.get_action(), ArgAction::SetTrue));
    let command = command.mut_subcommands(everywhere);
    if !is_flag {
        return command;
    }
    command.mut_arg(NAME, |flag| {
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.trim_end_matches('.').to_owned();
        flag.action(ArgAction::Set)
            .value_name("FILE")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(OUTPUT)
            .default_value(ABSENT)
            .hide_default_value(true)
            .value_parser(is_wanted)
            .help(format!("{help}; with FILE, write to it instead"))
    })
}

fn is_wanted(value: &str) -> Result<bool, String> {
    match value {
        "" => Err("name a file, or - for standard output".into()),
        value => Ok(value != ABSENT),
    }
}

/// Sends what the command prints to the file of its `--json=FILE`, if it has one.
///
/// # Errors
/// The file and the cause, if it cannot be created.
pub fn redirect(matches: &ArgMatches) -> Result<(), (PathBuf, io::Error)> {
    let mut of = matches;
    while let Some((_, below)) = of.subcommand() {
        of = below;
    }
    // Where it is no flag, [`Json`] has it.
    if !matches!(of.try_get_one::<bool>(NAME), Ok(Some(true))) {
        return Ok(());
    }
    let mut values = of.get_raw(NAME).into_iter().flatten();
    let Some(file) = values.next().filter(|f| *f != OUTPUT) else {
        return Ok(());
    };
    let opened = File::create(file).map_err(|e| (PathBuf::from(file), e))?;
    screen::redirect(opened);
    Ok(())
}

/// The arguments of a process, with what users of other programs write in place of `--json`.
///
/// In commands that have `--json`, `-o json` and `--output json` become `--json`, unless `-o` or `--output` are options
/// of their own there; in those without operands, `--json FILE` becomes `--json=FILE`.
pub fn understood(command: &Command, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let mut understood: Vec<OsString> = words.next().into_iter().collect();
    let mut command = command;
    while let Some(word) = words.next() {
        if word == "--" {
            understood.push(word);
            break;
        }
        if let Some(below) = command.find_subcommand(&word) {
            command = below;
            understood.push(word);
            continue;
        }
        if !command.get_arguments().any(|a| a.get_id() == NAME) {
            understood.push(word);
            continue;
        }
        match format_of(command, &word) {
            Some(Some("json")) => understood.push("--json".into()),
            Some(None) if words.peek().is_some_and(|next| next == "json") => {
                words.next();
                understood.push("--json".into());
            }
            _ if word == "--json" && command.get_positionals().next().is_none() => {
                let file = words.next_if(|f| f == OUTPUT || !f.as_encoded_bytes().starts_with(b"-"));
                let mut word = word;
                if let Some(file) = file {
                    word.push("=");
                    word.push(file);
                }
                understood.push(word);
            }
            _ => understood.push(word),
        }
    }
    understood.extend(words);
    understood
}

/// If a word asks for a format, by an option that the command does not have otherwise: the format, unless it is the
/// next word.
fn format_of<'a>(command: &Command, word: &'a OsString) -> Option<Option<&'a str>> {
    let word = word.to_str()?;
    let has = |long: &str, short: char| {
        command.get_arguments().any(|a| {
            a.get_long_and_visible_aliases()
                .is_some_and(|l| l.contains(&long))
                || a.get_short_and_visible_aliases()
                    .is_some_and(|s| s.contains(&short))
        })
    };
    let value = match word.strip_prefix("--output") {
        Some(value) if !has("output", '\0') => value,
        Some(_) => return None,
        None => word.strip_prefix("-o").filter(|_| !has("", 'o'))?,
    };
    Some(Some(value.strip_prefix('=').unwrap_or(value)).filter(|v| !v.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Measure {
        inputs: Vec<PathBuf>,
        #[command(flatten)]
        json: Json,
    }

    #[derive(Debug, Parser, PartialEq)]
    #[command(name = "program")]
    enum Program {
        /// List.
        List {
            topics: Vec<String>,
            #[arg(long)]
            json: bool,
        },
        Plain {
            #[arg(long)]
            json: bool,
        },
        /// Has a file.
        Write {
            #[arg(short, long)]
            output: PathBuf,
            #[arg(long)]
            json: bool,
        },
        Silent {
            #[arg(allow_hyphen_values = true)]
            words: Vec<String>,
        },
    }

    fn words(words: &[&str]) -> Vec<OsString> {
        [&["program"], words]
            .concat()
            .iter()
            .map(OsString::from)
            .collect()
    }

    fn understand(given: &[&str]) -> Vec<String> {
        let command = everywhere(<Program as clap::CommandFactory>::command());
        let all = understood(&command, words(given)).into_iter().skip(1);
        all.map(|w| w.into_string().expect("text")).collect()
    }

    #[test]
    fn only_what_follows_an_equals_sign_is_a_file() {
        let parse = |given: &[&str]| Measure::parse_from(words(given));
        let none = parse(&["a"]);
        assert!(!none.json.is_printed() && none.json.file().is_none());
        for printed in [parse(&["--json", "a"]), parse(&["a", "--json=-"])] {
            assert!(printed.json.is_printed() && printed.json.file().is_none());
            assert_eq!(printed.inputs, [Path::new("a")]);
        }
        let written = parse(&["a", "--json=b.json"]);
        assert!(!written.json.is_printed());
        assert_eq!(written.json.file(), Some(Path::new("b.json")));
    }

    #[test]
    fn flags_have_the_same_shape() {
        let command = everywhere(<Program as clap::CommandFactory>::command());
        command.clone().debug_assert();
        let parse = |given: &[&str]| {
            let matches = command.clone().try_get_matches_from(words(given));
            matches.and_then(|m| <Program as clap::FromArgMatches>::from_arg_matches(&m))
        };
        let list = |topics: &[&str], json| Program::List {
            topics: topics.iter().map(|t| (*t).to_owned()).collect(),
            json,
        };
        assert_eq!(parse(&["list", "a"]).expect("good"), list(&["a"], false));
        assert_eq!(parse(&["list", "--json", "a"]).expect("good"), list(&["a"], true));
        assert_eq!(
            parse(&["list", "--json=b", "a"]).expect("good"),
            list(&["a"], true)
        );
        assert!(parse(&["list", "--json="]).is_err());
        let mut command = command;
        let help = command
            .find_subcommand_mut("list")
            .expect("is there")
            .render_help();
        assert!(help.to_string().contains("--json[=<FILE>]"), "{help}");
    }

    #[test]
    fn other_programs_words_mean_json_where_they_mean_nothing_else() {
        for given in [
            &["list", "-o", "json", "a"][..],
            &["list", "-ojson", "a"],
            &["list", "-o=json", "a"],
            &["list", "--output", "json", "a"],
            &["list", "--output=json", "a"],
        ] {
            assert_eq!(understand(given), ["list", "--json", "a"]);
        }
        for kept in [
            &["write", "-o", "json"][..],
            &["write", "--output=json"],
            &["silent", "-o", "json"],
            &["list", "--", "-o", "json"],
            &["list", "-o", "yaml"],
            &["list", "--json", "a"],
            &["plain", "--json"],
        ] {
            assert_eq!(understand(kept), kept);
        }
        assert_eq!(
            understand(&["plain", "--json", "a.json"]),
            ["plain", "--json=a.json"]
        );
    }
}
