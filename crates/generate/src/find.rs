//! Finds the names of types in files and folders.

use std::path::{Path, PathBuf};

/// Types found in a file or folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Their names, `package/Type`, sorted.
    pub names: Vec<String>,
    /// The packages' folders, for a registry to search.
    pub folders: Vec<PathBuf>,
}

/// Why a file or folder contains no types.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is neither a `.msg` nor a `.srv`.
    #[error("{path} is not a definition: give .msg and .srv files, or folders of packages")]
    NoDefinition {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no definitions.
    #[error("{path} contains no definitions: a package has them in its folders msg and srv")]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}

/// The types of a `.msg` or `.srv` file, of a package's folder, or of the packages in a folder.
///
/// # Errors
/// [`FindError`]
pub fn find(path: &Path) -> Result<Found, FindError> {
    let unreadable = |source| FindError::Unreadable {
        path: path.into(),
        source,
    };
    // Absolute, so that the package has a name even if the path is `.`.
    let whole = path.canonicalize().map_err(unreadable)?;
    let mut found = Found::default();
    if whole.is_file() {
        let (package, name) = of_file(&whole).ok_or_else(|| FindError::NoDefinition { path: path.into() })?;
        found.names.push(name);
        found.folders.push(package);
        return Ok(found);
    }
    add_package(&whole, &mut found).map_err(unreadable)?;
    if found.names.is_empty() {
        for entry in whole.read_dir().map_err(unreadable)? {
            add_package(&entry.map_err(unreadable)?.path(), &mut found).map_err(unreadable)?;
        }
    }
    if found.names.is_empty() {
        return Err(FindError::Empty { path: path.into() });
    }
    found.names.sort();
    found.folders.sort();
    Ok(found)
}

fn add_package(folder: &Path, found: &mut Found) -> std::io::Result<()> {
    let before = found.names.len();
    for sub in ["msg", "srv"] {
        let sub = folder.join(sub);
        if !sub.is_dir() {
            continue;
        }
        for entry in sub.read_dir()? {
            found.names.extend(of_file(&entry?.path()).map(|(_, name)| name));
        }
    }
    if found.names.len() > before {
        found.folders.push(folder.into());
    }
    Ok(())
}

/// The package's folder and the type's name.
fn of_file(file: &Path) -> Option<(PathBuf, String)> {
    let extension = file.extension()?.to_str()?;
    if !matches!(extension, "msg" | "srv") {
        return None;
    }
    let parent = file.parent()?;
    let package = match parent.file_name()?.to_str()? {
        "msg" | "srv" => parent.parent()?,
        _ => parent,
    };
    let (name, stem) = (package.file_name()?.to_str()?, file.file_stem()?.to_str()?);
    Some((package.into(), format!("{name}/{stem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_files_and_workspaces_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("there");
        for file in [
            "a/msg/X.msg",
            "a/srv/Y.srv",
            "b/msg/Z.msg",
            "b/msg/notes.txt",
            "c/readme",
        ] {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().expect("inside")).expect("made");
            std::fs::write(file, "").expect("written");
        }
        let names = |path: &str| find(&root.join(path)).expect(path).names;
        assert_eq!(names("a"), ["a/X", "a/Y"]);
        assert_eq!(names("a/srv/Y.srv"), ["a/Y"]);
        assert_eq!(names("."), ["a/X", "a/Y", "b/Z"]);
        let whole = find(&root).expect("found");
        assert_eq!(whole.folders, [root.join("a"), root.join("b")]);
        let refused = |path: &str| find(&root.join(path)).expect_err(path).to_string();
        assert!(refused("c").contains("no definitions"));
        assert!(refused("b/msg/notes.txt").contains("no definition"));
        assert!(refused("nowhere").contains("No such file"));
    }
}
