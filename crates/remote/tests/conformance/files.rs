//! Files of a robot.

use super::rough::Treatment;
use super::*;
use remote::Expiry;
use remote::controller::{FileError, FileInfo, Progress, Saving};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let next = |_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..len).map(next).collect()
}

fn write(path: &Path, data: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("below something")).expect("made");
    std::fs::write(path, data).expect("written");
}

pub fn fetched(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let disk = tempfile::tempdir().expect("a folder");
    let root = disk.path().join("model");
    let mesh = content(1_500_000, 1);
    write(&root.join("meshes/arm.stl"), &mesh);
    write(&root.join("robot.urdf"), b"<robot/>");
    write(&root.join("empty"), b"");
    write(&disk.path().join("run.log"), b"all well");
    robot.share("model", &root).expect("there");
    robot.share("log", &disk.path().join("run.log")).expect("there");
    assert!(robot.share("none", &disk.path().join("none")).is_err());
    let controller = controller("c", (fixture.connect)());
    let info = |path: &str, size| FileInfo {
        path: path.into(),
        size,
    };
    let files = controller.files("model").expect("answered");
    assert_eq!(
        files,
        [
            info("empty", 0),
            info("meshes/arm.stl", 1_500_000),
            info("robot.urdf", 8)
        ]
    );
    assert_eq!(controller.files("log").expect("answered"), [info("", 8)]);
    let into = disk.path().join("downloads");
    let mut seen = Vec::new();
    let all = controller.download_all("model", &into, |p: Progress<'_>| {
        seen.push((p.path.to_owned(), p.done, p.size))
    });
    assert_eq!(all.expect("fetched").len(), 3);
    assert_eq!(
        std::fs::read(into.join("model/meshes/arm.stl")).expect("there"),
        mesh
    );
    assert_eq!(std::fs::read(into.join("model/empty")).expect("there"), b"");
    assert!(
        seen.contains(&("meshes/arm.stl".to_owned(), 1_500_000, 1_500_000)) && seen.len() >= 8,
        "{seen:?}"
    );
    let log = controller.download("log", "", &into, |_| {}).expect("fetched");
    assert_eq!(
        (log.as_path(), std::fs::read(&log).expect("there")),
        (into.join("log").as_path(), b"all well".to_vec())
    );
    let left = std::fs::read_dir(&into).expect("there").filter_map(Result::ok);
    assert!(
        left.into_iter()
            .all(|f| !f.file_name().to_string_lossy().ends_with(".part"))
    );
    let definition = controller
        .fetch::<remote::telemetry::FileDefinition>(0)
        .expect("answered")
        .expect("set");
    assert_eq!(definition.is_folder, [false, true]);
}

pub fn refused(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let disk = tempfile::tempdir().expect("a folder");
    write(&disk.path().join("secret"), b"outside");
    write(&disk.path().join("root/a"), b"inside");
    std::os::unix::fs::symlink("../secret", disk.path().join("root/link")).expect("linked");
    robot.share("root", &disk.path().join("root")).expect("there");
    let controller = controller("c", (fixture.connect)());
    let into = disk.path().join("into");
    for (identifier, path) in [
        ("root", "none"),
        ("nothing", "a"),
        ("root", "link"),
        ("root", ""),
        ("nothing", ""),
    ] {
        let result = controller.download(identifier, path, &into, |_| {});
        assert!(result.is_err(), "{identifier} {path}: {result:?}");
    }
    // No path leads outside, at either end: the controller refuses, and so would the robot.
    for path in ["../secret", "/etc/passwd", "a/../../secret", "..", "link/../../x"] {
        let result = controller.download("root", path, &into, |_| {});
        assert!(matches!(result, Err(FileError::Io { .. })), "{path}: {result:?}");
    }
    assert!(!disk.path().join("x").exists() && !into.join("link").exists());
    // Nor does a link at the destination of the file.
    std::fs::create_dir_all(&into).expect("made");
    std::os::unix::fs::symlink("../victim", into.join(".a.part")).expect("linked");
    assert!(controller.download("root", "a", &into, |_| {}).is_err());
    assert!(!disk.path().join("victim").exists());
    std::fs::remove_file(into.join(".a.part")).expect("there");
    assert!(controller.download("root", "a", &into, |_| {}).is_ok());
}

/// Nothing that a robot shares, or how it names it, writes a file that was not requested.
pub fn only_new_files(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let disk = tempfile::tempdir().expect("a folder");
    write(&disk.path().join("root/a"), b"theirs");
    robot.share("root", &disk.path().join("root")).expect("there");
    let controller = controller("c", (fixture.connect)());
    let into = disk.path().join("into");
    write(&into.join("a"), b"mine");
    write(&into.join("root/a"), b"mine");
    let mine = || {
        let read = |name: &str| std::fs::read(into.join(name)).expect("there");
        assert_eq!((read("a"), read("root/a")), (b"mine".to_vec(), b"mine".to_vec()));
    };
    let error = controller
        .download("root", "a", &into, |_| {})
        .expect_err("exists")
        .to_string();
    assert!(error.contains("already exists"), "{error}");
    assert!(controller.download_all("root", &into, |_| {}).is_err());
    mine();
    // With one hidden file, none is fetched.
    std::fs::remove_file(into.join("root/a")).expect("there");
    write(&disk.path().join("root/sub/.bashrc"), b"theirs");
    let error = controller
        .download_all("root", &into, |_| {})
        .expect_err("hidden")
        .to_string();
    assert!(error.contains("dot"), "{error}");
    assert!(!into.join("root/a").exists() && !into.join("root/sub").exists());
    assert!(controller.download("root", "sub/.bashrc", &into, |_| {}).is_err());
    // Unless it is allowed.
    let bold = controller.saving(Saving::default().with_replace(true).with_hidden(true));
    assert!(bold.download("root", "a", &into, |_| {}).is_ok());
    assert_eq!(
        bold.download_all("root", &into, |_| {}).expect("fetched").len(),
        2
    );
    assert_eq!(std::fs::read(into.join("a")).expect("there"), b"theirs");
    assert!(into.join("root/sub/.bashrc").exists());
    // A file that is already the same as the robot's need not be replaced.
    let again = controller.saving(Saving::default().with_hidden(true));
    assert_eq!(
        again.download_all("root", &into, |_| {}).expect("is there").len(),
        2
    );
    assert!(controller.download("root", "a", &into, |_| {}).is_ok());
}

pub fn interrupted(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    let disk = tempfile::tempdir().expect("a folder");
    let first = content(3_000_000, 2);
    write(&disk.path().join("map"), &first);
    robot.share("map", &disk.path().join("map")).expect("there");
    let into = disk.path().join("into");
    let controller = controller("c", (fixture.connect)());
    let ended = controller.download("map", "", &into, |_| ControlFlow::Break(()));
    assert!(matches!(ended, Err(FileError::Stopped)), "{ended:?}");
    assert!(into.join(".map.part").exists() && !into.join("map").exists());
    // As if a download had been interrupted in the middle.
    write(&into.join(".map.part"), &first[..1_234_567]);
    let mut least = u64::MAX;
    let fetched = controller
        .download("map", "", &into, |p| least = least.min(p.done))
        .expect("fetched");
    assert!(std::fs::read(&fetched).expect("there") == first);
    assert!(least > 1_234_567, "it went on where it was: {least}");
    let controller = controller.saving(Saving::default().with_replace(true));
    // A part of different content is detected, and the file is fetched again from the start.
    let second = content(3_000_000, 3);
    write(&disk.path().join("map"), &second);
    write(&into.join(".map.part"), &first[..2_000_000]);
    let fetched = controller.download("map", "", &into, |_| {}).expect("fetched");
    assert!(std::fs::read(&fetched).expect("there") == second);
    // So is a part that is longer than the file.
    write(&disk.path().join("map"), b"short");
    write(&into.join(".map.part"), &first[..2_000_000]);
    let fetched = controller.download("map", "", &into, |_| {}).expect("fetched");
    assert_eq!(std::fs::read(&fetched).expect("there"), b"short");
    // Lost answers are requested again.
    write(&disk.path().join("map"), &second);
    let rough = Rough::new((fixture.connect)());
    let other = conformance_controller(&rough);
    let lossy = rough.clone();
    let mut lost = false;
    let fetched = other.download("map", "", &disk.path().join("other"), move |_| {
        if !std::mem::replace(&mut lost, true) {
            lossy.treat(Treatment::LoseAnswers);
            let lossy = lossy.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                lossy.treat(Treatment::Pass);
            });
        }
    });
    assert!(std::fs::read(fetched.expect("fetched")).expect("there") == second);
}

fn conformance_controller(rough: &Arc<Rough>) -> Controller {
    controller("rough", rough.clone())
}

/// No command waits for the disk: no times are asserted here, but both run at the same time.
pub fn beside_commands(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.on::<Drive>(|_, _| Ok(()));
    let disk = tempfile::tempdir().expect("a folder");
    let data = content(20_000_000, 4);
    write(&disk.path().join("bag"), &data);
    robot.share("bag", &disk.path().join("bag")).expect("there");
    let (fetcher, driver) = (
        controller("fetcher", (fixture.connect)()),
        controller("driver", (fixture.connect)()),
    );
    let ended = Arc::new(AtomicBool::new(false));
    let fetch = std::thread::spawn({
        let (ended, into) = (ended.clone(), disk.path().join("into"));
        move || {
            let fetched = fetcher.download("bag", "", &into, |_| {});
            ended.store(true, Ordering::Release);
            fetched
        }
    });
    let mut driven = 0;
    while !ended.load(Ordering::Acquire) || driven < 10 {
        let outcome = driver
            .send_within::<Drive>(&speed(1.0), Expiry::After(WATCHDOG))
            .wait();
        assert!(outcome.is_executed(), "{outcome}");
        driven += 1;
    }
    let fetched = fetch.join().expect("no panic").expect("fetched");
    assert!(std::fs::read(fetched).expect("there") == data);
}
