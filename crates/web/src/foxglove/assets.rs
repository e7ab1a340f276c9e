//! Files that clients may fetch: robot descriptions and meshes.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Maximum length of a file in bytes; longer files do not fit a client's queue.
const MAX_ASSET: u64 = 6 << 20;

/// Reads `package://PACKAGE/FILE` below `folders`, which hold packages or are one.
///
/// # Errors
/// A line that says why not; it names no path outside the folders.
pub(crate) fn fetch(folders: &[PathBuf], uri: &str) -> Result<Vec<u8>, String> {
    let wanted = uri
        .strip_prefix("package://")
        .ok_or("only package:// is served")?;
    let relative = Path::new(wanted);
    let plain = relative.components().all(|c| matches!(c, Component::Normal(_)));
    if !plain || relative.components().count() < 2 {
        return Err("write package://PACKAGE/FILE, without . and ..".into());
    }
    for folder in folders {
        // A symbolic link is followed if it leads to a file below the same folder.
        let Ok(root) = folder.canonicalize() else { continue };
        let within = relative.components().skip(1).collect::<PathBuf>();
        let is_package = root.file_name() == relative.components().next().map(Component::as_os_str);
        let candidates = [Some(root.join(relative)), is_package.then(|| root.join(within))];
        for candidate in candidates.into_iter().flatten() {
            let Ok(file) = candidate.canonicalize() else {
                continue;
            };
            if file.starts_with(&root) && file.is_file() {
                return read(&file);
            }
        }
    }
    Err("there is no such file below the folders of --assets".into())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |e: std::io::Error| format!("it cannot be read: {}", e.kind());
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let read = file
        .take(MAX_ASSET + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if read as u64 > MAX_ASSET {
        return Err(format!("it is longer than {MAX_ASSET} bytes"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_folders_are_served_and_no_others() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("share");
        std::fs::create_dir_all(folder.join("arm/meshes")).unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        std::fs::write(folder.join("arm/meshes/a.stl"), "mesh").unwrap();
        std::fs::write(folder.join("arm/long"), vec![0; MAX_ASSET as usize + 1]).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("arm/escape")).unwrap();
        let folders = [folder.clone()];
        assert_eq!(fetch(&folders, "package://arm/meshes/a.stl").unwrap(), b"mesh");
        assert_eq!(
            fetch(&[folder.join("arm")], "package://arm/meshes/a.stl").unwrap(),
            b"mesh"
        );
        for (uri, words) in [
            ("package://arm/../../secret", ".."),
            ("package:///etc/passwd", "PACKAGE"),
            ("package://arm", "PACKAGE"),
            ("file:///etc/passwd", "package://"),
            ("package://arm/escape", "no such file"),
            ("package://arm/missing", "no such file"),
            ("package://arm/meshes", "no such file"),
            ("package://arm/long", "longer"),
        ] {
            let error = fetch(&folders, uri).unwrap_err();
            assert!(error.contains(words), "{uri}: {error}");
        }
    }
}
