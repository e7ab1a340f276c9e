//! Files below a folder, and none outside of it, whatever names come from the other end.

use crate::v6::confined;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// A path in parts, none of which leads elsewhere: as [`confined`].
///
/// # Errors
/// `InvalidInput`: the path could lead out of its folder; with the reason.
pub(crate) fn parts(path: &str) -> io::Result<Vec<String>> {
    let path = confined(path).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e.to_string()))?;
    Ok(path.split('/').map(str::to_owned).collect())
}

/// Whether a part begins with a dot: what programs read without being asked, as a shell does its `.bashrc`.
pub(crate) fn is_hidden(parts: &[String]) -> bool {
    parts.iter().any(|part| part.starts_with('.'))
}

/// Opens a regular file below `root` for reading. The kernel sees to it that links do not lead out; where it cannot, links are not
/// followed at all.
///
/// # Errors
/// As [`parts`]; there is none, it is no regular file, or it may not be read.
pub(crate) fn open(root: &Path, path: &str) -> io::Result<File> {
    let parts = parts(path)?;
    let root = open_folder(root)?;
    // A pipe would wait for its writer.
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
                "it leads out of its folder",
            ));
        }
        other => other?,
    };
    regular(File::from(fd))
}

/// Opens a regular file below `root` for reading, without following any link.
///
/// # Errors
/// There is none, it is no regular file, or it may not be read.
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
/// There is none, it is no regular file, or it may not be read.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    regular(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ))
    }
}

pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// The folder that holds what the parts name, and its name there; links are not followed. `create`: folders that are not
/// there are made.
///
/// # Errors
/// A folder is not there, is a link, or may not be opened or made.
pub(crate) fn walk(root: OwnedFd, parts: &[String], create: bool) -> io::Result<(OwnedFd, String)> {
    let Some((name, folders)) = parts.split_last() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it names no file"));
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

/// Opens a file to write, which begins to exist if it did not; a link is not followed.
///
/// # Errors
/// It is something else than a regular file, or may not be written.
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
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("root");
        std::fs::create_dir_all(root.join("sub")).expect("made");
        std::fs::write(root.join("sub/a"), "inside").expect("written");
        std::fs::write(place.path().join("secret"), "outside").expect("written");
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
        // Nor is anything made there.
        let walk = |path: &str| {
            walk(
                open_folder(&root).expect("opened"),
                &parts(path).expect("confined"),
                true,
            )
        };
        assert!(walk("up/x").is_err(), "a link is no folder");
        let (folder, name) = walk("new/deep/x").expect("made");
        drop(create(&folder, &name).expect("made"));
        assert!(root.join("new/deep/x").is_file());
        assert!(
            create(open_folder(&root).expect("opened"), "out").is_err(),
            "a link is no file"
        );
        assert_eq!(
            std::fs::read_to_string(place.path().join("secret")).expect("there"),
            "outside"
        );
    }
}
