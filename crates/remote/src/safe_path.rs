//! Opens files below a folder, and none outside it, whatever names the other end sends.

use crate::v6::confined;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Splits a path into parts, none of which leaves the folder, as [`confined`] does.
///
/// # Errors
/// `InvalidInput`: the path could leave its folder; with the reason.
pub(crate) fn parts(path: &str) -> io::Result<Vec<String>> {
    let path = confined(path).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
    Ok(path.split('/').map(str::to_owned).collect())
}

/// Returns whether a part begins with a dot: programs read such files unasked, as a shell does its `.bashrc`.
pub(crate) fn is_hidden(parts: &[String]) -> bool {
    parts.iter().any(|part| part.starts_with('.'))
}

/// Opens a regular file below `root` for reading. The kernel ensures that symbolic links do not leave `root`; where the
/// kernel cannot do so, links are not followed at all.
///
/// # Errors
/// As [`parts`]; the file does not exist, is not a regular file, or may not be read.
pub(crate) fn open(root: &Path, path: &str) -> io::Result<File> {
    let parts = parts(path)?;
    let root = open_folder(root)?;
    // Without NONBLOCK, opening a pipe blocks until it has a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let fd = match rustix::fs::openat2(&root, parts.join("/"), flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
            let (folder, name) = walk(root, &parts, false)?;
            rustix::fs::openat(&folder, name.as_str(), flags | OFlags::NOFOLLOW, Mode::empty())?
        }
        Err(Errno::XDEV) => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path leads outside its folder",
            ));
        }
        other => other?,
    };
    regular(File::from(fd))
}

/// Opens a regular file below `root` for reading, without following any symbolic link.
///
/// # Errors
/// The file does not exist, is not a regular file, or may not be read.
pub(crate) fn open_without_links(root: &Path, parts: &[String]) -> io::Result<File> {
    let (folder, name) = walk(open_folder(root)?, parts, false)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    regular(File::from(rustix::fs::openat(
        &folder,
        name.as_str(),
        flags,
        Mode::empty(),
    )?))
}

/// Opens a regular file that the user named.
///
/// # Errors
/// The file does not exist, is not a regular file, or may not be read.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    regular(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Opens the folder that contains the file which the parts name. Returns it with the file's name in it; symbolic links
/// are not followed. With `create`, missing folders are created.
///
/// # Errors
/// A folder does not exist, is a symbolic link, or may not be opened or created.
pub(crate) fn walk(root: OwnedFd, parts: &[String], create: bool) -> io::Result<(OwnedFd, String)> {
    let Some((name, folders)) = parts.split_last() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path names no file",
        ));
    };
    let mut folder = root;
    for part in folders {
        if create {
            match rustix::fs::mkdirat(&folder, part.as_str(), Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = rustix::fs::openat(&folder, part.as_str(), flags, Mode::empty())?;
    }
    Ok((folder, name.clone()))
}

/// Opens a file for writing and creates it if it does not exist; a symbolic link is not followed.
///
/// # Errors
/// It is not a regular file, or may not be written.
pub(crate) fn create(folder: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    regular(File::from(rustix::fs::openat(
        folder,
        name,
        flags,
        Mode::from_raw_mode(0o644),
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn text(root: &Path, path: &str) -> Option<String> {
        let mut text = String::new();
        open(root, path).ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    }

    #[test]
    fn nothing_outside_is_reached() {
        let outside = tempfile::tempdir().expect("a folder");
        let root = outside.path().join("root");
        std::fs::create_dir_all(root.join("sub")).expect("made");
        std::fs::write(root.join("sub/a"), "inside").expect("written");
        std::fs::write(outside.path().join("secret"), "outside").expect("written");
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).expect("linked");
        link("../secret", "out");
        link("/etc/passwd", "absolute");
        link("..", "up");
        link("sub/a", "within");
        assert_eq!(text(&root, "sub/a").as_deref(), Some("inside"));
        assert_eq!(text(&root, "./sub/a").as_deref(), Some("inside"));
        assert_eq!(text(&root, "within").as_deref(), Some("inside"));
        for path in [
            "../secret",
            "sub/../../secret",
            "/etc/passwd",
            "out",
            "absolute",
            "up/secret",
            "",
            "sub",
            "sub//a",
            "a\0b",
        ] {
            assert_eq!(text(&root, path), None, "{path:?}");
        }
        // Nothing is created outside either.
        let walk = |path: &str| {
            walk(
                open_folder(&root).expect("opened"),
                &parts(path).expect("confined"),
                true,
            )
        };
        assert!(walk("up/x").is_err(), "a link is not a folder");
        let (folder, name) = walk("new/deep/x").expect("made");
        drop(create(&folder, &name).expect("made"));
        assert!(root.join("new/deep/x").is_file());
        assert!(
            create(open_folder(&root).expect("opened"), "out").is_err(),
            "a link is not a file"
        );
        assert_eq!(
            std::fs::read_to_string(outside.path().join("secret")).expect("there"),
            "outside"
        );
    }
}
