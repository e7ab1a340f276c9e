//! The option `--json`, the same in every command that measures or predicts.

use clap::Args;
use std::path::{Path, PathBuf};

/// Whether to print the result as JSON, or to write it to a file.
#[derive(Args, Clone, Debug, Default)]
pub struct Json {
    /// Print the result as JSON instead of text; with FILE, print text, and write the JSON to FILE.
    #[arg(long, value_name = "FILE", require_equals = true)]
    json: Option<Option<PathBuf>>,
}

impl Json {
    /// Whether JSON is printed instead of text.
    pub fn is_printed(&self) -> bool {
        matches!(self.json, Some(None))
    }

    /// The file that gets the JSON.
    pub fn file(&self) -> Option<&Path> {
        self.json.as_ref()?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        inputs: Vec<PathBuf>,
        #[command(flatten)]
        json: Json,
    }

    #[test]
    fn only_what_follows_an_equals_sign_is_a_file() {
        let parse = |words: &[&str]| Command::parse_from([&["program"], words].concat());
        let none = parse(&["a"]);
        assert!(!none.json.is_printed() && none.json.file().is_none());
        let printed = parse(&["--json", "a"]);
        assert!(printed.json.is_printed() && printed.json.file().is_none());
        assert_eq!(printed.inputs, [Path::new("a")]);
        let written = parse(&["a", "--json=b.json"]);
        assert!(!written.json.is_printed());
        assert_eq!(written.json.file(), Some(Path::new("b.json")));
    }
}
