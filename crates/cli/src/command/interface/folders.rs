//! Definition files in folders of packages.

use super::Search;
use super::kind::{Interface, Kind};
use ropewalk::Flavour;
use schema::TypeName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Levels below a folder in which packages are looked up, and the most folders searched.
const LEVELS: usize = 4;
const MAX_VISITED: usize = 20_000;
/// Longest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// All definition files; of several for one type, the first.
pub(super) fn files(search: &Search) -> BTreeMap<Interface, PathBuf> {
    let mut files = BTreeMap::new();
    let mut visited = 0;
    for (root, levels) in roots(search) {
        descend(&root, levels, &mut visited, &mut files);
    }
    files
}

/// Text of an action's file.
pub(super) fn action(search: &Search, name: &TypeName) -> Option<(String, PathBuf)> {
    let wanted = Interface::new(Kind::Action, name.clone());
    let path = files(search).remove(&wanted)?;
    let is_short = std::fs::metadata(&path).is_ok_and(|m| m.len() <= MAX_FILE);
    let text = is_short.then(|| std::fs::read_to_string(&path).ok()).flatten()?;
    Some((text, path))
}

/// Folders of packages in the order in which the registry searches them, with the number of levels below each.
fn roots(search: &Search) -> Vec<(PathBuf, usize)> {
    let mut roots: Vec<_> = search
        .folders
        .iter()
        .rev()
        .map(|folder| (folder.clone(), LEVELS))
        .collect();
    let variable = |name: &str| {
        let value = std::env::var_os(name).unwrap_or_default();
        let paths = std::env::split_paths(&value).filter(|p| !p.as_os_str().is_empty());
        paths.collect::<Vec<_>>()
    };
    match search.flavour() {
        Flavour::Ros2 => roots.extend(
            variable("AMENT_PREFIX_PATH")
                .into_iter()
                .map(|p| (p.join("share"), 1)),
        ),
        Flavour::Ros1 => {
            roots.extend(variable("ROS_PACKAGE_PATH").into_iter().map(|p| (p, LEVELS)));
            roots.push(("/usr/share".into(), 1));
        }
    }
    roots
}

fn descend(folder: &Path, levels: usize, visited: &mut usize, files: &mut BTreeMap<Interface, PathBuf>) {
    *visited += 1;
    if *visited > MAX_VISITED {
        return;
    }
    package(folder, files);
    if levels == 0 {
        return;
    }
    let kinds = Kind::ALL.map(Kind::folder);
    for below in entries(folder) {
        let name = below
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if below.is_dir() && !name.starts_with('.') && !kinds.contains(&name.as_str()) {
            descend(&below, levels - 1, visited, files);
        }
    }
}

/// The definitions of a single package's folder.
fn package(folder: &Path, files: &mut BTreeMap<Interface, PathBuf>) {
    let Some(package) = folder.file_name().and_then(|n| n.to_str()) else {
        return;
    };
    for kind in Kind::ALL {
        for file in entries(&folder.join(kind.folder())) {
            let is_of_kind = file.extension().is_some_and(|e| e == kind.folder());
            let stem = file.file_stem().and_then(|s| s.to_str()).filter(|_| is_of_kind);
            let name = stem.and_then(|stem| TypeName::parse(&format!("{package}/{stem}")).ok());
            if let Some(name) = name {
                files.entry(Interface::new(kind, name)).or_insert(file);
            }
        }
    }
}

/// Contents of a folder, by name; empty if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|e| e.path()).collect();
    paths.sort();
    paths
}
