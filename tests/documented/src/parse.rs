//! Parses all commands of `ropewalk` with the program's own definition.

use crate::{Line, Page, commands};
use clap::error::ErrorKind;
use std::path::Path;

/// Parses every command of `ropewalk` on these pages: an unknown command, option or value and a missing argument is a fault, as `FILE:LINE:
/// COMMAND: ERROR`. Commands within sentences may leave out arguments. Decisions, which also name commands of the past, are left out.
pub fn faults(pages: &[Page], parse: impl Fn(&[String]) -> Result<(), clap::Error>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |file: &Path, line: &Line, whole: bool| {
        for words in commands(&line.text) {
            // Anything but words stands for what a user fills in.
            if words[0] != "ropewalk" || words.iter().any(|word| word == "…") {
                continue;
            }
            if let Err(error) = parse(&words)
                && !accepted(error.kind(), whole)
            {
                let file = file.display();
                faults.push(format!("{file}:{}: {}: {error}", line.number, words.join(" ")));
            }
        }
    };
    for page in pages
        .iter()
        .filter(|page| !page.file.starts_with("docs/decisions"))
    {
        for block in &page.blocks {
            block.lines.iter().for_each(|line| check(&page.file, line, true));
        }
        page.inline.iter().for_each(|line| check(&page.file, line, false));
    }
    faults
}

fn accepted(kind: ErrorKind, whole: bool) -> bool {
    use ErrorKind::*;
    match kind {
        DisplayHelp | DisplayVersion => true,
        DisplayHelpOnMissingArgumentOrSubcommand
        | MissingRequiredArgument
        | MissingSubcommand
        | TooFewValues
        | WrongNumberOfValues => !whole,
        _ => false,
    }
}
