//! Walks a folder of raw data.

use super::layout::{Layout, Senders};
use super::pattern::Fields;
use super::rows::Rows;
use super::{Error, Run};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Larger files are no sender's rows.
const MOST_FILE: u64 = 1 << 30;
/// More files than any experiment has.
const MOST_FILES: usize = 1_000_000;

/// All runs of all cells.
#[derive(Debug, Default)]
pub struct Gathered {
    /// By what paths say of a cell, and by run.
    pub cells: BTreeMap<Fields, BTreeMap<String, Run>>,
    /// Files that were read.
    pub files: usize,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// Reads every file that the layout's pattern matches.
pub(super) fn gather(dir: &Path, layout: &Layout, stopped: &dyn Fn() -> bool) -> Result<Gathered, Error> {
    let mut found = Found::default();
    walk(dir, &mut Vec::new(), layout, &mut found)?;
    if found.files.is_empty() {
        let hint = found.other.first();
        return Err(Error::Nothing {
            dir: dir.to_owned(),
            hint: hint.map_or(String::new(), |f| format!("; it has {}", f.display())),
        });
    }
    let mut gathered = Gathered {
        files: found.files.len(),
        ..Gathered::default()
    };
    for (path, mut fields) in found.files {
        if stopped() {
            return Err(Error::Stopped);
        }
        let file_error = |source| Error::File {
            path: path.clone(),
            source,
        };
        if fs::metadata(&path).map_err(file_error)?.len() > MOST_FILE {
            return Err(Error::TooMuch {
                path,
                problem: "more than 1 GiB: no sender writes so many rows".into(),
            });
        }
        let bytes = fs::read(&path).map_err(file_error)?;
        let rows = Rows::parse(&bytes, layout).map_err(|source| Error::Row {
            path: path.clone(),
            source,
        })?;
        fields.remove("sender");
        let run = fields.remove("run").unwrap_or_default();
        let runs = gathered.cells.entry(fields).or_default();
        runs.entry(run).or_default().add(&rows, layout);
    }
    silent_senders(&mut gathered, layout);
    if let Some(first) = found.other.first() {
        let count = found.other.len();
        gathered.notes.push(format!(
            "{count} files are not where `files` of the layout says, the first: {}",
            first.display()
        ));
    }
    let repeated: u64 = (gathered.cells.values())
        .flat_map(|runs| runs.values().map(|r| r.repeated))
        .sum();
    if repeated > 0 {
        let note = format!("{repeated} rows were left out: their message had one already");
        gathered.notes.push(note);
    }
    Ok(gathered)
}

/// Senders that should have files but have none lost all their messages.
fn silent_senders(gathered: &mut Gathered, layout: &Layout) {
    let mut silent = 0;
    for (fields, runs) in &mut gathered.cells {
        let nodes = fields.get("nodes").and_then(|n| n.parse::<u32>().ok());
        let senders = match (layout.senders, nodes) {
            (Senders::Half, Some(nodes)) => nodes / 2,
            (Senders::All, Some(nodes)) => nodes,
            _ => 0,
        };
        for run in runs.values_mut() {
            // No experiment has more nodes than that; a path may say anything.
            for _ in run.senders..senders.min(100_000) {
                run.add_silent(layout);
                silent += 1;
            }
        }
    }
    if silent > 0 {
        gathered.notes.push(format!(
            "{silent} senders left no file: their messages count as not received"
        ));
    }
}

#[derive(Default)]
struct Found {
    files: Vec<(PathBuf, Fields)>,
    other: Vec<PathBuf>,
}

fn walk(dir: &Path, names: &mut Vec<String>, layout: &Layout, found: &mut Found) -> Result<(), Error> {
    let error = |source| Error::File {
        path: dir.to_owned(),
        source,
    };
    let entries: Result<Vec<_>, _> = fs::read_dir(dir).map_err(error)?.collect();
    let mut entries = entries.map_err(error)?;
    entries.sort_by_key(|e| e.file_name());
    for entry in entries {
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            found.other.push(path);
            continue;
        };
        names.push(name);
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let fields = layout.files.matches(&all);
        // Links to folders are not followed, so that the walk ends.
        let is_folder = entry.file_type().is_ok_and(|t| t.is_dir());
        match fields {
            Some(_) if is_folder && names.len() < layout.files.depth() => walk(&path, names, layout, found)?,
            Some(fields) if !is_folder && names.len() == layout.files.depth() => {
                found.files.push((path, fields));
            }
            _ if !is_folder && names.len() > 1 => found.other.push(path),
            _ => {}
        }
        names.pop();
        if found.files.len() > MOST_FILES {
            return Err(Error::TooMuch {
                path: dir.to_owned(),
                problem: format!("more than {MOST_FILES} files: analyze one part of them after the other"),
            });
        }
    }
    Ok(())
}
