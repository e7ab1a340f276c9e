//! Collects the files of a folder of raw data.

use super::layout::{Layout, Senders};
use super::pattern::Fields;
use super::rows::Rows;
use super::{Error, Run};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Largest file of a sender.
const MOST_FILE: u64 = 1 << 30;
/// Most files of an experiment, and most folders and files that are visited.
const MOST_FILES: usize = 1_000_000;

/// All runs of all cells.
#[derive(Debug, Default)]
pub struct Gathered {
    /// By the path's fields of a cell, and by run.
    pub cells: BTreeMap<Fields, BTreeMap<String, Run>>,
    /// Number of files read.
    pub files: usize,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Reads every file that matches the layout's pattern.
pub(super) fn gather(dir: &Path, layout: &Layout, stopped: &dyn Fn() -> bool) -> Result<Gathered, Error> {
    let mut found = Found::default();
    let mut walk = Walk {
        layout,
        names: Vec::new(),
        within: Vec::new(),
        entries: 0,
    };
    walk.folder(dir, &mut found)?;
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
    let mut bad_line = None;
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
                problem: "more than 1 GiB: no sender writes this many rows".into(),
            });
        }
        let bytes = fs::read(&path).map_err(file_error)?;
        let rows = Rows::parse(&bytes, layout).map_err(|source| Error::Row {
            path: path.clone(),
            source,
        })?;
        if let Some(error) = &rows.first_left_out {
            bad_line.get_or_insert_with(|| format!("{}: {error}", path.display()));
        }
        fields.remove("sender");
        let run = fields.remove("run").unwrap_or_default();
        let runs = gathered.cells.entry(fields).or_default();
        runs.entry(run).or_default().add(&rows, layout);
    }
    silent_senders(&mut gathered, layout);
    for (paths, why) in [
        (&found.other, "are not where `files` of the layout says"),
        (
            &found.broken,
            "are links that lead nowhere, or to a folder above them",
        ),
    ] {
        if let Some(first) = paths.first() {
            let count = paths.len();
            let note = format!("{count} files {why}, the first: {}", first.display());
            gathered.notes.push(note);
        }
    }
    let runs = || gathered.cells.values().flat_map(|runs| runs.values());
    let repeated: u64 = runs().map(|r| r.repeated).sum();
    let left_out: u64 = runs().map(|r| r.left_out).sum();
    if repeated > 0 {
        let note = format!("{repeated} rows were left out: their message had one already");
        gathered.notes.push(note);
    }
    if let Some(first) = bad_line {
        gathered.notes.push(format!(
            "{left_out} lines were left out because they are not rows, and their messages counted neither as \
             received nor as lost; the first: {first}"
        ));
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
            // Limit for numbers of nodes that a path claims.
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
    broken: Vec<PathBuf>,
}

/// Searches files, also through links.
struct Walk<'a> {
    layout: &'a Layout,
    names: Vec<String>,
    /// Device and inode of the open folders, so that a link to one of them ends the search.
    within: Vec<(u64, u64)>,
    entries: usize,
}

impl Walk<'_> {
    fn folder(&mut self, dir: &Path, found: &mut Found) -> Result<(), Error> {
        let error = |source| Error::File {
            path: dir.to_owned(),
            source,
        };
        let depth = self.layout.files.depth();
        self.within.push(identity(&fs::metadata(dir).map_err(error)?));
        let entries: Result<Vec<_>, _> = fs::read_dir(dir).map_err(error)?.collect();
        let mut entries = entries.map_err(error)?;
        entries.sort_by_key(|e| e.file_name());
        self.entries += entries.len();
        if self.entries > MOST_FILES {
            return Err(Error::TooMuch {
                path: dir.to_owned(),
                problem: format!("more than {MOST_FILES} files: analyze one part of them after the other"),
            });
        }
        for entry in entries {
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else {
                found.other.push(path);
                continue;
            };
            let Ok(meta) = fs::metadata(&path) else {
                found.broken.push(path);
                continue;
            };
            self.names.push(name);
            let all: Vec<&str> = self.names.iter().map(String::as_str).collect();
            let fields = self.layout.files.matches(&all);
            let is_folder = meta.is_dir();
            match fields {
                Some(_) if is_folder && self.within.contains(&identity(&meta)) => found.broken.push(path),
                Some(_) if is_folder && self.names.len() < depth => self.folder(&path, found)?,
                Some(fields) if !is_folder && self.names.len() == depth => found.files.push((path, fields)),
                _ if !is_folder && self.names.len() > 1 => found.other.push(path),
                _ => {}
            }
            self.names.pop();
        }
        self.within.pop();
        Ok(())
    }
}

fn identity(meta: &fs::Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}
