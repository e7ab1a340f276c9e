//! Definition files in folders: the only code of this crate that accesses a file system.

use crate::definition::Flavour;
use crate::limits::MAX_TEXT;
use crate::{DefinitionError, TypeName};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Levels below a folder in which packages are searched, and the most folders that one search visits.
const LEVELS: usize = 4;
const MAX_VISITED: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Service,
    Action,
}

/// Folders to search, first entry first.
#[derive(Debug, Clone, Default)]
pub(super) struct SearchPath {
    roots: Vec<Root>,
}

#[derive(Debug, Clone)]
struct Root {
    folder: PathBuf,
    /// Whether to search the package in subfolders too (a workspace), not only `folder/package/msg`.
    deep: bool,
}

impl SearchPath {
    pub(super) fn from_env(flavour: Flavour) -> Self {
        let mut roots = Vec::new();
        let variable = match flavour {
            Flavour::Ros1 => "ROS_PACKAGE_PATH",
            Flavour::Ros2 => "AMENT_PREFIX_PATH",
        };
        let value = std::env::var_os(variable).unwrap_or_default();
        for entry in std::env::split_paths(&value).filter(|p| !p.as_os_str().is_empty()) {
            match flavour {
                Flavour::Ros1 => roots.push(Root {
                    folder: entry,
                    deep: true,
                }),
                Flavour::Ros2 => roots.push(Root {
                    folder: entry.join("share"),
                    deep: false,
                }),
            }
        }
        if flavour == Flavour::Ros1 {
            roots.push(Root {
                folder: "/usr/share".into(),
                deep: false,
            });
        }
        Self { roots }
    }

    pub(super) fn add(&mut self, folder: PathBuf) {
        self.roots.insert(0, Root { folder, deep: true });
    }

    pub(super) fn describe(&self) -> String {
        let names: Vec<_> = self
            .roots
            .iter()
            .map(|r| r.folder.display().to_string())
            .collect();
        names.join(", ")
    }

    /// The text of `name` and the path of its file.
    pub(super) fn find(
        &self,
        name: &TypeName,
        kind: Kind,
    ) -> Result<Option<(String, PathBuf)>, DefinitionError> {
        for root in &self.roots {
            for file in candidates(&root.folder, name, kind) {
                if let Some(text) = read(&file)? {
                    return Ok(Some((text, file)));
                }
            }
            if root.deep
                && let Some(file) = descend(&root.folder, name, kind)
                && let Some(text) = read(&file)?
            {
                return Ok(Some((text, file)));
            }
        }
        Ok(None)
    }
}

/// The files that may contain `name`, if the package is directly in `folder` or is `folder`.
fn candidates(folder: &Path, name: &TypeName, kind: Kind) -> Vec<PathBuf> {
    let (sub, file) = match kind {
        Kind::Message => ("msg", format!("{}.msg", name.name())),
        Kind::Service => ("srv", format!("{}.srv", name.name())),
        Kind::Action => ("action", format!("{}.action", name.name())),
    };
    let package = folder.join(name.package());
    let mut out = vec![package.join(sub).join(&file), package.join(&file)];
    if folder.file_name().is_some_and(|n| n == name.package()) {
        out.insert(0, folder.join(sub).join(&file));
        out.push(folder.join(&file));
    }
    out
}

/// Searches the package in subfolders, sorted by name, nearest level first.
fn descend(root: &Path, name: &TypeName, kind: Kind) -> Option<PathBuf> {
    let mut level = vec![root.to_path_buf()];
    let mut visited = 0;
    for _ in 0..LEVELS {
        let mut next = Vec::new();
        for folder in &level {
            visited += 1;
            if visited > MAX_VISITED {
                return None;
            }
            next.extend(subfolders(folder));
        }
        next.sort();
        for folder in &next {
            let named = folder.file_name().is_some_and(|n| n == name.package());
            let found = candidates(folder, name, kind)
                .into_iter()
                .find(|f| named && f.is_file());
            if found.is_some() {
                return found;
            }
        }
        level = next;
    }
    None
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir() || t.is_symlink()))
        .filter(|e| !e.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect()
}

/// The text of a file, `None` if it does not exist; at most one byte beyond the limit, which the parser then refuses.
fn read(path: &Path) -> Result<Option<String>, DefinitionError> {
    let unreadable = |e: io::Error| DefinitionError::Unreadable {
        path: path.into(),
        reason: e.to_string(),
    };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(unreadable(e)),
    };
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(MAX_TEXT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        // Old packages have Latin-1 in comments; a definition itself is ASCII.
        Err(e) => Ok(Some(String::from_utf8_lossy(e.as_bytes()).into_owned())),
    }
}
