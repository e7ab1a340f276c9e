#![forbid(unsafe_code)]
//! Reads the command lines that README, guides and examples show, so that tests can parse and run them.
//!
//! Each block of commands (`console`, `sh` or `bash`) follows a comment that says how it is tested: see [`Mark`]. This crate runs nothing:
//! `crates/cli/tests/all/documented.rs` does, and the unit tests of both programs parse every line.

mod parse;
mod shell;
mod width;

pub use parse::faults;
pub use shell::commands;
pub use width::too_wide;

use std::path::{Path, PathBuf};

/// How a block of commands is tested: the HTML comment above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `<!-- run -->`: each command runs to its end.
    Run,
    /// `<!-- run for a while -->`: each command ends without a failure, or runs on.
    RunForAWhile,
    /// `<!-- run by PATH -->`: another test, whose path is relative to the repository, does the same.
    RunBy(PathBuf),
    /// `<!-- not run: REASON -->`
    NotRun(String),
    /// No comment, or another one: a fault.
    Missing,
}

/// A command line, with continued lines and here-documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Line in its file, from 1.
    pub number: usize,
    /// What a user types, without the prompt.
    pub text: String,
}

/// A block of commands.
#[derive(Clone, Debug)]
pub struct Block {
    /// Path below the repository.
    pub file: PathBuf,
    /// Line of the fence, from 1.
    pub number: usize,
    /// How it is tested.
    pub mark: Mark,
    /// Its commands; output of commands is left out.
    pub lines: Vec<Line>,
}

/// A page of the documentation.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its blocks of commands.
    pub blocks: Vec<Block>,
    /// Path below the repository.
    pub file: PathBuf,
    /// Commands within sentences (`` `ropewalk …` ``), which may leave out arguments.
    pub inline: Vec<Line>,
}

/// The repository that this crate is part of.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages that users read: README, CONTRIBUTING, SECURITY, and all below `docs` and `examples`, sorted by path.
///
/// # Errors
/// If a file cannot be read.
pub fn pages() -> std::io::Result<Vec<Page>> {
    let root = repository();
    let mut files: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(PathBuf::from)
        .into();
    for folder in ["docs", "examples"] {
        collect(&root, Path::new(folder), &mut files)?;
    }
    files.sort();
    let read = |file: PathBuf| Ok(page(&std::fs::read_to_string(root.join(&file))?, &file));
    files.into_iter().map(read).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    Ok(())
}

/// Finds the commands of a page.
pub fn page(text: &str, file: &Path) -> Page {
    let mut page = Page {
        blocks: Vec::new(),
        file: file.to_owned(),
        inline: Vec::new(),
    };
    let mut mark = Mark::Missing;
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            page.inline.extend(inline(number, line));
            if !line.trim().is_empty() {
                mark = comment(line.trim());
            }
            continue;
        };
        let inside = lines.by_ref().take_while(|(_, line)| line.trim() != "```");
        let prompted = match language.trim() {
            "console" => true,
            "sh" | "bash" => false,
            _ => {
                inside.for_each(drop);
                continue;
            }
        };
        page.blocks.push(Block {
            file: file.to_owned(),
            number,
            mark: std::mem::replace(&mut mark, Mark::Missing),
            lines: typed(inside, prompted),
        });
    }
    page
}

/// Reads the comment above a block.
fn comment(line: &str) -> Mark {
    let inside = line
        .strip_prefix("<!--")
        .and_then(|line| line.strip_suffix("-->"));
    match inside.map(str::trim) {
        Some("run") => Mark::Run,
        Some("run for a while") => Mark::RunForAWhile,
        Some(text) => {
            if let Some(path) = text.strip_prefix("run by ") {
                Mark::RunBy(path.trim().into())
            } else if let Some(reason) = text.strip_prefix("not run: ") {
                Mark::NotRun(reason.to_owned())
            } else {
                Mark::Missing
            }
        }
        None => Mark::Missing,
    }
}

/// The command lines of a block: with `prompted` those after a prompt (`$ ` or `host$ `), else all.
fn typed<'a>(mut block: impl Iterator<Item = (usize, &'a str)>, prompted: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    while let Some((number, line)) = block.next() {
        let mut text = match prompt(line) {
            Some(command) if prompted => command.to_owned(),
            _ if prompted || line.trim().is_empty() => continue,
            _ => line.trim().to_owned(),
        };
        while text.ends_with('\\') {
            let Some((_, more)) = block.next() else { break };
            text = format!("{}\n{more}", text);
        }
        if let Some(end) = text.split_once("<<").map(|(_, end)| end.replace('\'', "")) {
            for (_, more) in block.by_ref() {
                text = format!("{text}\n{more}");
                if more.trim() == end.trim() {
                    break;
                }
            }
        }
        lines.push(Line { number, text });
    }
    lines
}

/// The command after the prompt; `None` for output.
fn prompt(line: &str) -> Option<&str> {
    let (host, command) = line.trim_start().split_once("$ ")?;
    host.chars()
        .all(|c| c.is_ascii_lowercase())
        .then(|| command.trim())
}

/// Commands between backticks.
fn inline(number: usize, line: &str) -> impl Iterator<Item = Line> {
    let spans = line.split('`').skip(1).step_by(2);
    spans
        .filter(|text| text.starts_with("ropewalk "))
        .map(move |text| Line {
            number,
            // In tables a bar is escaped.
            text: text.replace("\\|", "|"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Type `ropewalk top \\| cat` in `ropewalk_msgs`.\n\n<!-- run by tests/x -->\n\n```console\nrobot$ ropewalk a \\\n    b # why\noutput $ of it\n$ cat <<'END'\nropewalk no\nEND\n```\n\n```yaml\n$ ropewalk no\n```\n```sh\nropewalk c\n```\n";

    #[test]
    fn commands_are_distinguished_from_output() {
        let page = page(TEXT, Path::new("p.md"));
        let texts =
            |i: usize| -> Vec<&str> { page.blocks[i].lines.iter().map(|l| l.text.as_str()).collect() };
        assert_eq!(page.blocks.len(), 2);
        assert_eq!(
            texts(0),
            ["ropewalk a \\\n    b # why", "cat <<'END'\nropewalk no\nEND"]
        );
        assert_eq!(page.blocks[0].mark, Mark::RunBy("tests/x".into()));
        assert_eq!((page.blocks[0].number, page.blocks[0].lines[1].number), (5, 9));
        assert_eq!(texts(1), ["ropewalk c"]);
        assert_eq!(
            page.blocks[1].mark,
            Mark::Missing,
            "a mark holds for the next block only"
        );
        assert_eq!(
            page.inline,
            [Line {
                number: 1,
                text: "ropewalk top | cat".into()
            }]
        );
    }
}
