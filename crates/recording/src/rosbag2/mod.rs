//! Folders of rosbag2: `metadata.yaml`, and the files that it names, MCAP or SQLite, compressed or not.

pub(crate) mod metadata;
pub(crate) mod write;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use self::metadata::Metadata;
use crate::error::{OpenError, ReadError};
use crate::reader::Recording;

/// The file that lists the contents of a folder.
pub(crate) const METADATA: &str = "metadata.yaml";
/// Most files that are read from a folder.
pub const MAX_FILES: usize = 4096;

/// Contents of a folder.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    pub(crate) recordings: Vec<Recording>,
    /// Errors of the other files.
    pub(crate) damage: Vec<ReadError>,
    /// Number of messages according to the folder's metadata.
    pub(crate) stated: u64,
}

impl Folder {
    /// Opens the folder's files. A file that cannot be opened does not affect the others.
    ///
    /// # Errors
    /// If no file can be opened: the error of the first.
    pub(crate) fn open(folder: &Path) -> Result<Self, OpenError> {
        let mut opened = Folder::default();
        let path = folder.join(METADATA);
        let metadata = match metadata::read(&path) {
            Ok(metadata) => metadata,
            Err(detail) => {
                opened.damage.push(ReadError::Metadata { path, detail });
                Metadata {
                    files: list(folder)?,
                    ..Metadata::default()
                }
            }
        };
        opened.stated = metadata.messages;
        let mut first = None;
        for (name, messages) in &metadata.files {
            let file = inside(folder, name).and_then(Recording::open);
            match file {
                Ok(mut recording) => {
                    recording.complete(&metadata.qos);
                    opened.recordings.push(recording);
                }
                Err(error) => {
                    first.get_or_insert_with(|| error.clone());
                    opened.damage.push(ReadError::Unopened {
                        source: Box::new(error),
                        messages: *messages,
                    });
                }
            }
        }
        match first {
            Some(error) if opened.recordings.is_empty() => Err(error),
            None if opened.recordings.is_empty() => Err(OpenError::Directory {
                path: folder.to_owned(),
            }),
            _ => Ok(opened),
        }
    }
}

/// The path of a file in a folder, unless it leads out of the folder, also through a link.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, OpenError> {
    let outside = || OpenError::Outside {
        folder: folder.to_owned(),
        name: name.chars().take(256).collect(),
    };
    let is_within = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if name.is_empty() || !Path::new(name).components().all(is_within) {
        return Err(outside());
    }
    let path = folder.join(name);
    let real = |path: &Path| {
        path.canonicalize().map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source: Arc::new(source),
        })
    };
    if !real(&path)?.starts_with(real(folder)?) {
        return Err(outside());
    }
    Ok(path)
}

/// The files of a folder that look like parts of a recording, sorted by name, with numbers in numeric order.
fn list(folder: &Path) -> Result<Vec<(String, u64)>, OpenError> {
    let failed = |source| OpenError::Io {
        path: folder.to_owned(),
        source: Arc::new(source),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let Ok(name) = entry.map_err(failed)?.file_name().into_string() else {
            continue;
        };
        let plain = name.strip_suffix(".zstd").unwrap_or(&name);
        if names.len() < MAX_FILES && [".mcap", ".db3"].iter().any(|end| plain.ends_with(end)) {
            names.push(name);
        }
    }
    names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    Ok(names.into_iter().map(|name| (name, 0)).collect())
}
