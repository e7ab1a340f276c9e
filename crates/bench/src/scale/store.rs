//! Results so far, on disk, so that an experiment can resume where it was stopped (decision 244).

use super::System;
use super::measured::{Measured, NodesKnee};
use super::point::Point;
use super::profile::Profile;
use crate::kit::error::Error;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const FILE: &str = "runs.jsonl";
/// Folders of runs whose raw data are not kept; they remain if the program was killed.
const SCRATCH: [&str; 4] = [".search", ".warm", ".calls", ".profile"];
/// Part of the error message for a full disk.
pub(super) const FULL: &str = "MB are free";
/// Space kept free in addition to what a run writes.
const MARGIN: u64 = 32 << 20;

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) system: System,
    pub(super) point: Point,
    pub(super) what: What,
}

/// Its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    /// A run of a cell.
    Run { number: u32, measured: Measured },
    /// System calls per message, counted separately.
    Calls { per_message: f64 },
    /// Processor time by function.
    Profile { profile: Profile },
    /// A search that began at the point.
    Knee { found: NodesKnee, at: Option<Measured> },
}

/// Purposes of runs whose raw data are not kept.
#[derive(Clone, Copy)]
pub(super) enum Scratch {
    Search,
    Warm,
    Calls,
    Profile,
}

/// A folder of results.
pub(super) struct Store {
    folder: PathBuf,
    file: File,
    entries: Vec<Entry>,
    /// Removed at the end, if no folder was given.
    _temporary: Option<TempDir>,
}

impl Store {
    /// Opens the given folder, with its existing results, or a temporary one.
    pub(super) fn open(folder: Option<&Path>) -> Result<Store, Error> {
        let temporary = match folder {
            Some(_) => None,
            None => {
                let made = tempfile::Builder::new().prefix("rwb-scale-").tempdir();
                Some(made.map_err(|e| at(&std::env::temp_dir(), e))?)
            }
        };
        let folder = match (&temporary, folder) {
            (Some(temporary), _) => temporary.path(),
            (None, folder) => folder.unwrap_or(Path::new(".")),
        };
        fs::create_dir_all(folder).map_err(|e| at(folder, e))?;
        let folder = std::path::absolute(folder).map_err(|e| at(folder, e))?;
        let path = folder.join(FILE);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path);
        let mut file = file.map_err(|e| at(&path, e))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|e| at(&path, e))?;
        let (entries, whole) = parse(&text).map_err(|(line, why)| {
            Error::Input(format!(
                "{}:{line}: {why}: it was written by another version, or changed; give another --out",
                path.display()
            ))
        })?;
        for left in SCRATCH {
            let _ = fs::remove_dir_all(folder.join(left));
        }
        // An incomplete last line is measured again.
        file.set_len(whole as u64).map_err(|e| at(&path, e))?;
        file.seek(SeekFrom::End(0)).map_err(|e| at(&path, e))?;
        Ok(Store {
            folder,
            file,
            entries,
            _temporary: temporary,
        })
    }

    /// Returns the folder of a run whose raw data are not kept.
    pub(super) fn scratch(&self, which: Scratch) -> PathBuf {
        self.folder.join(SCRATCH[which as usize])
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores a result.
    pub(super) fn put(&mut self, entry: &Entry) -> Result<(), Error> {
        let failed = |e: io::Error| at(&self.folder.join(FILE), e);
        let mut line = serde_json::to_string(entry).map_err(|e| failed(e.into()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(failed)?;
        // Stored as it will be read, so that numbers do not differ from one call to the next.
        self.entries
            .push(serde_json::from_str(&line).map_err(|e| failed(e.into()))?);
        Ok(())
    }

    /// Returns the runs of a point, by number.
    pub(super) fn runs(&self, system: System, point: &Point) -> Vec<(u32, &Measured)> {
        let of = |e: &'_ Entry| e.system == system && e.point == *point;
        let runs = self
            .entries
            .iter()
            .filter(|e| of(e))
            .filter_map(|e| match &e.what {
                What::Run { number, measured } => Some((*number, measured)),
                _ => None,
            });
        runs.collect()
    }

    /// Returns the result of a search.
    pub(super) fn knee(&self, system: System, start: &Point) -> Option<(&NodesKnee, Option<&Measured>)> {
        let of = self
            .entries
            .iter()
            .filter(|e| e.system == system && e.point == *start);
        let mut knees = of.filter_map(|e| match &e.what {
            What::Knee { found, at } => Some((found, at.as_ref())),
            _ => None,
        });
        knees.next()
    }

    /// Returns system calls per message, if they were counted.
    pub(super) fn calls(&self, system: System, point: &Point) -> Option<f64> {
        let of = self
            .entries
            .iter()
            .filter(|e| e.system == system && e.point == *point);
        let mut calls = of.filter_map(|e| match e.what {
            What::Calls { per_message } => Some(per_message),
            _ => None,
        });
        calls.next()
    }

    /// Returns the processor time by function, if it was sampled.
    pub(super) fn profile(&self, system: System, point: &Point) -> Option<&Profile> {
        let of = self
            .entries
            .iter()
            .filter(|e| e.system == system && e.point == *point);
        let mut profiles = of.filter_map(|e| match &e.what {
            What::Profile { profile } => Some(profile),
            _ => None,
        });
        profiles.next()
    }

    /// Returns the number of results, existing and new.
    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Fails before a run whose data would not fit.
    pub(super) fn check_room(&self, bytes: u64) -> Result<(), Error> {
        let Ok(space) = rustix::fs::statvfs(&self.folder) else {
            return Ok(());
        };
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        let wanted = bytes.saturating_add(MARGIN);
        if free >= wanted {
            return Ok(());
        }
        let full = format!(
            "only {} {FULL}, and the next run writes {}: free some, then give the same command again",
            free >> 20,
            wanted >> 20
        );
        Err(at(&self.folder, io::Error::new(io::ErrorKind::StorageFull, full)))
    }
}

/// Returns the complete lines, and where they end.
fn parse(text: &str) -> Result<(Vec<Entry>, usize), (usize, String)> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines().enumerate();
    let entries = lines.map(|(i, line)| serde_json::from_str(line).map_err(|e| (i + 1, e.to_string())));
    Ok((entries.collect::<Result<_, _>>()?, whole))
}

fn at(path: &Path, source: io::Error) -> Error {
    Error::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{measured, point};
    use super::*;

    fn run(number: u32) -> Entry {
        Entry {
            system: System::Ropewalk,
            point: point::example(),
            what: What::Run {
                number,
                measured: measured::example(1.5, 2),
            },
        }
    }

    #[test]
    fn stored_results_are_restored_except_for_a_torn_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = Store::open(Some(folder.path())).expect("opens");
        store.put(&run(0)).expect("writes");
        store.put(&run(1)).expect("writes");
        let start = Point {
            hz: 1000.0,
            ..point::example()
        };
        let found = NodesKnee {
            nodes: 8,
            hz: 3000.0,
            messages_per_s: 12_000.0,
            cause: "cpu".into(),
            cpu_us_per_message: Some(12.5),
        };
        store
            .put(&Entry {
                point: start.clone(),
                what: What::Knee {
                    found: found.clone(),
                    at: None,
                },
                ..run(0)
            })
            .expect("writes");
        drop(store);
        let path = folder.path().join(FILE);
        let mut text = fs::read_to_string(&path).expect("reads");
        text.push_str("{\"system\": \"rope");
        fs::write(&path, text).expect("writes");
        let mut store = Store::open(Some(folder.path())).expect("opens");
        let runs = store.runs(System::Ropewalk, &point::example());
        assert_eq!(runs.iter().map(|r| r.0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(runs[0].1, &measured::example(1.5, 2));
        assert!(store.runs(System::Rospy, &point::example()).is_empty());
        assert_eq!(store.knee(System::Ropewalk, &start), Some((&found, None)));
        assert_eq!(store.knee(System::Ropewalk, &point::example()), None);
        store.put(&run(2)).expect("writes");
        drop(store);
        assert_eq!(Store::open(Some(folder.path())).expect("opens").count(), 4);
    }

    #[test]
    fn foreign_files_and_full_disks_are_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(FILE), "hello\n").expect("writes");
        let error = Store::open(Some(folder.path()))
            .err()
            .expect("not ours")
            .to_string();
        assert!(
            error.contains("runs.jsonl:1:") && error.contains("--out"),
            "{error}"
        );
        let store = Store::open(None).expect("opens");
        assert!(store.check_room(0).is_ok());
        let error = store.check_room(u64::MAX).expect_err("too much").to_string();
        assert!(
            error.contains("are free") && error.contains("same command"),
            "{error}"
        );
        let path = store.folder().to_owned();
        drop(store);
        assert!(!path.exists());
    }
}
