//! The examples run, and print what they should.

use ropewalk::msgs::sensor_msgs::LaserScan;
use ropewalk::{BusConfig, Node};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(120);

fn start(bus: &std::path::Path, program: &str) -> Child {
    let mut command = Command::new(program);
    command.env("ROPEWALK_RUNTIME_DIR", bus).stdout(Stdio::piped());
    command.spawn().expect("starts")
}

fn end(mut child: Child) -> String {
    let stdout = child.stdout.take().expect("piped");
    let reader = std::thread::spawn(move || std::io::read_to_string(stdout).expect("UTF-8"));
    let deadline = Instant::now() + WATCHDOG;
    while child.try_wait().expect("waits").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("an example hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(child.wait().expect("ended").success());
    reader.join().expect("reads")
}

#[test]
fn pictures_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let subscriber = start(folder.path(), env!("CARGO_BIN_EXE_camera_subscriber"));
    let publisher = start(folder.path(), env!("CARGO_BIN_EXE_camera_publisher"));
    let (published, seen) = (end(publisher), end(subscriber));
    assert!(published.lines().count() == 90, "{published}");
    assert!(seen.contains(": 2073600 pixels, mean 127"), "{seen}");
}

#[test]
fn speeds_are_heard() {
    let folder = tempfile::tempdir().expect("a folder");
    let subscriber = start(folder.path(), env!("CARGO_BIN_EXE_twist_subscriber"));
    let publisher = start(folder.path(), env!("CARGO_BIN_EXE_twist_publisher"));
    end(publisher);
    let heard = end(subscriber);
    assert!(heard.ends_with("speed 1.9\n"), "{heard}");
}

#[test]
fn sums_are_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = start(folder.path(), env!("CARGO_BIN_EXE_add_two_ints_client"));
    let server = start(folder.path(), env!("CARGO_BIN_EXE_add_two_ints_server"));
    let (asked, answered) = (end(client), end(server));
    assert!(asked.starts_with("1 + 2 = 3\n40 + 2 = 42\n"), "{asked}");
    assert!(asked.ends_with("the sum does not fit into 64 bits\n"), "{asked}");
    assert_eq!(answered, "answered 3\nanswered 42\n");
}

#[test]
fn a_brake_is_set_and_released() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = start(folder.path(), env!("CARGO_BIN_EXE_brake_client"));
    let server = start(folder.path(), env!("CARGO_BIN_EXE_brake_server"));
    let (client, server) = (end(client), end(server));
    assert_eq!(client, "the brake is set\nthe brake is released\n");
    assert_eq!(server, "set\nreleased\n");
}

#[test]
fn an_extension_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let reported = end(start(folder.path(), env!("CARGO_BIN_EXE_remote_extension")));
    assert_eq!(
        reported,
        "spray 2 l: executed\nspray 2.5 l: executed\nspray 1 l: rejected: only 0.5 l are left\nleft: 3 l\nleft: 0.5 l\n"
    );
}

#[test]
fn a_red_light_stops_the_robot() {
    let folder = tempfile::tempdir().expect("a folder");
    let brake = start(folder.path(), env!("CARGO_BIN_EXE_red_light_brake"));
    let robot = start(folder.path(), env!("CARGO_BIN_EXE_red_light_robot"));
    let (stopped, seen) = (end(robot), end(brake));
    assert!(stopped.contains("after the light turned red"), "{stopped}");
    assert!(seen.starts_with("red in picture "), "{seen}");
}

#[test]
fn scans_are_filtered_in_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let filter = start(folder.path(), env!("CARGO_BIN_EXE_lidar_filter"));
    let node = Node::with_config("laser", BusConfig::new(folder.path())).expect("a node");
    let laser = node.publisher::<LaserScan>("/scan").expect("a publisher");
    let near = node.subscriber::<LaserScan>("/scan/near").expect("a subscriber");
    assert!(laser.wait_for_subscribers(1, WATCHDOG) && near.wait_for_publishers(1, WATCHDOG));
    let ranges: Vec<f32> = (1..=100u8).map(f32::from).collect();
    let scan = LaserScan {
        range_max: 100.0,
        ranges: ranges.into(),
        ..LaserScan::default()
    };
    laser.publish(&scan).expect("published");
    let seen = near.take_timeout(WATCHDOG).expect("takes").expect("a scan");
    let seen = seen.read().expect("a scan");
    assert_eq!(seen.ranges[..5], [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(seen.ranges[5..].iter().all(|range| *range == f32::INFINITY));
    assert_eq!(end(filter), "5 of 100 are near\n");
}

#[test]
fn a_robot_obeys_and_stands_when_its_controller_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let robot = start(folder.path(), env!("CARGO_BIN_EXE_robot"));
    let reported = end(start(folder.path(), env!("CARGO_BIN_EXE_controller")));
    for line in [
        "0.5 m/s: executed",
        "2 m/s: rejected: faster than 1 m/s",
        "it is moved by desk",
        "0.25 m/s: executed",
    ] {
        assert!(reported.lines().any(|l| l == line), "{line}: {reported}");
    }
    let robot = end(robot);
    assert!(robot.ends_with("the robot itself says 0 m/s\n"), "{robot}");
}

#[test]
fn every_program_is_explained_and_exists_in_each_language() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = |folder: &std::path::Path| -> Vec<_> {
        let entries = folder.read_dir().expect("a folder");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    let readme = |folder: &std::path::PathBuf| std::fs::read_to_string(folder.join("README.md")).ok();
    let explained: String = entries(&examples).iter().filter_map(readme).collect();
    let languages = [("rust/src/bin", "rs"), ("cpp", "cpp"), ("python", "py")];
    for (folder, extension) in languages {
        let programs = entries(&examples.join(folder)).into_iter();
        for program in programs.filter(|path| path.extension().is_some_and(|e| e == extension)) {
            let name = program
                .file_stem()
                .and_then(|name| name.to_str())
                .expect("a name");
            let link = format!("(../{folder}/{name}.{extension})");
            assert!(explained.contains(&link), "no README of a task links to {link}");
            // Rerun's library for Rust and C++ is not one that the examples build.
            for (folder, extension) in languages.iter().filter(|_| name != "rerun_viewer") {
                let other = examples.join(folder).join(format!("{name}.{extension}"));
                assert!(other.is_file(), "{} is missing", other.display());
            }
        }
    }
}
