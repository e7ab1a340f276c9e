//! The examples run, and print what they should.

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
fn an_extension_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = end(start(folder.path(), env!("CARGO_BIN_EXE_remote_extension")));
    assert_eq!(
        told,
        "spray 2 l: executed\nspray 2.5 l: executed\nspray 1 l: rejected: only 0.5 l are left\nleft: 3 l\nleft: 0.5 l\n"
    );
}
