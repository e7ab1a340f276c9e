//! Bad input: one clear line, exit code 2, nothing left behind.

use crate::support::{Host, address};
use std::os::unix::fs::PermissionsExt;

/// Runs the command, checks that it refuses its input, and returns the error line.
#[track_caller]
fn refused(host: &Host, args: &[&str], says: &[&str]) {
    let done = host.run(args);
    assert_eq!(done.code, 2, "{args:?}: {done:?}");
    let lines: Vec<_> = done
        .stderr
        .lines()
        .filter(|l| l.starts_with("ropewalk: "))
        .collect();
    assert_eq!(
        (lines.len(), done.stderr.lines().count()),
        (1, 1),
        "{args:?}: {done:?}"
    );
    for word in says {
        assert!(
            lines[0].contains(word),
            "{args:?}: '{}' does not say '{word}'",
            lines[0]
        );
    }
    assert_eq!(done.stdout, "", "{args:?}");
    assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new(), "{args:?}");
}

/// The simulated robot's recording, as an MCAP file.
fn recording(host: &Host) -> Vec<u8> {
    let file = host.path("good.mcap");
    recording::simulation::write(&file, 0.5, 1, &recording::write::Options::default()).expect("writes");
    std::fs::read(file).expect("reads")
}

#[test]
fn a_recording_that_is_none() {
    let host = Host::new();
    let write = |name: &str, bytes: &[u8]| std::fs::write(host.path(name), bytes).expect("writes");
    let good = recording(&host);
    write(
        "garbage.bag",
        b"this is not a recording at all, whatever its name says",
    );
    write("empty.bag", b"");
    write("cut.mcap", &good[..good.len() / 2]);
    write("old.bag", b"#ROSBAG V1.1\n");
    let bag = "#ROSBAG V2.0\n".as_bytes();
    write("cut.bag", &[bag, &[0x45, 0, 0, 0, 1]].concat());
    for command in ["play", "demo"] {
        let with = |file| {
            if command == "demo" {
                vec!["demo", "--recording", file]
            } else {
                vec!["play", file]
            }
        };
        refused(&host, &with("missing.bag"), &["missing.bag", "No such file"]);
        refused(
            &host,
            &with("garbage.bag"),
            &["garbage.bag", "neither a ROS 1 bag nor MCAP"],
        );
        refused(&host, &with("empty.bag"), &["empty.bag", "empty"]);
        refused(&host, &with("old.bag"), &["old.bag", "1.1"]);
        refused(&host, &with("cut.bag"), &["cut.bag"]);
        refused(&host, &with("t"), &["directory"]);
    }
    refused(&host, &["demo", "--recording", "cut.mcap"], &["cut.mcap"]);
}

#[test]
fn an_unknown_compression() {
    let host = Host::new();
    recording(&host);
    let good = std::fs::read(host.path("good.mcap")).expect("reads");
    let name = b"zstd";
    let at = good.windows(4).position(|w| w == name).expect("is compressed");
    let mut bad = good;
    bad[at..at + 4].copy_from_slice(b"zap!");
    std::fs::write(host.path("zap.mcap"), bad).expect("writes");
    refused(&host, &["demo", "--recording", "zap.mcap"], &["zap.mcap", "zap!"]);
}

#[test]
fn types_that_are_none() {
    let host = Host::new();
    refused(
        &host,
        &["msg", "show", "no_such_msgs/Thing"],
        &["no_such_msgs/Thing"],
    );
    refused(&host, &["msg", "md5", "LaserScan"], &["LaserScan"]);
    std::fs::create_dir_all(host.path("my_msgs/msg")).expect("makes");
    std::fs::write(host.path("my_msgs/msg/Bad.msg"), "int32 good\nint32 9bad\n").expect("writes");
    refused(
        &host,
        &["msg", "show", "my_msgs/Bad", "--path", "."],
        &["Bad.msg:2:7"],
    );
    refused(
        &host,
        &["topic", "pub", "/x", "no_such_msgs/Thing", "{}"],
        &["no_such_msgs/Thing"],
    );
    refused(
        &host,
        &["topic", "pub", "/x", "std_msgs/Int8", "data: 300", "--wait", "0"],
        &["300"],
    );
    refused(
        &host,
        &["topic", "pub", "/x", "std_msgs/Int8", "dada: 3", "--wait", "0"],
        &["dada"],
    );
    refused(
        &host,
        &["topic", "pub", "/x y", "std_msgs/Int8", "data: 3", "--wait", "0"],
        &["/x y"],
    );
}

#[test]
fn a_topic_without_publishers() {
    let host = Host::new();
    refused(
        &host,
        &["topic", "echo", "/nobody", "--wait", "0.2"],
        &["/nobody", "topic list"],
    );
}

#[test]
fn settings_that_make_no_sense() {
    let host = Host::new();
    // Errors of clap itself take several lines: the error, a hint, the usage.
    for args in [
        ["demo", "--rate", "0Mbit/s"],
        ["demo", "--rate", "7Mbit/s"],
        ["demo", "--rate", "fast"],
        ["demo", "--hops", "0"],
        ["demo", "--seconds", "0"],
        ["demo", "--priority", "/scan=200"],
        ["play", "x.bag", "--start=-1"],
        ["no-such-command", "", ""],
    ] {
        let done = host.run(&args);
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert!(
            done.stderr.starts_with("error: ") && done.stdout.is_empty(),
            "{args:?}: {done:?}"
        );
        assert!(host.left_behind().is_empty());
    }
    recording(&host);
    refused(
        &host,
        &["play", "good.mcap", "--topic", "/nothing"],
        &["/nothing", "/scan"],
    );
    refused(
        &host,
        &["demo", "--recording", "good.mcap", "--priority", "/nothing=3"],
        &["/nothing", "/scan"],
    );
    refused(
        &host,
        &["demo", "--json=no/such/folder/out.json"],
        &["no/such/folder/out.json"],
    );
    refused(
        &host,
        &["topic", "list", "--json=no/such/folder/out.json"],
        &["no/such/folder/out.json"],
    );
}

#[test]
fn a_link_that_cannot_be() {
    let (host, own) = (Host::new(), address());
    let good = format!(
        "host: robot\nradio: {{bind: '{}', rate: 6Mbit/s}}\npeers:\n  - {{name: base, address: '{}'}}\n",
        own,
        address()
    );
    let write = |text: &str| std::fs::write(host.path("link.yaml"), text).expect("writes");
    refused(&host, &["link", "missing.yaml"], &["missing.yaml"]);
    write(&good.replace("6Mbit/s", "0Mbit/s"));
    refused(&host, &["link", "link.yaml"], &["link.yaml:2:", "6Mbit/s"]);
    write(&good.replace("host:", "hots:"));
    refused(
        &host,
        &["link", "link.yaml"],
        &["link.yaml:1:", "hots", "(did you mean host?)"],
    );
    write(&format!(
        "{good}topics:\n  - {{name: /scan, direction: out}}\n  - {{name: /scan, direction: in}}\n"
    ));
    refused(
        &host,
        &["link", "link.yaml"],
        &["link.yaml:7:12: topic /scan", "`direction: both`"],
    );
    write(&format!("{good}keys: none/robot\n"));
    let named = ["link.yaml:5:7: `keys`: ", "none/robot", "ropewalk keys --help"];
    refused(&host, &["link", "link.yaml", "--check"], &named);
    refused(&host, &["link", "link.yaml"], &named);
    write(&good);
    let taken = std::net::UdpSocket::bind(&own).expect("binds");
    // The command opens the bus first; only its empty folder may remain.
    let done = host.run(&["link", "link.yaml"]);
    assert_eq!((done.code, done.stderr.lines().count()), (2, 1), "{done:?}");
    assert!(
        done.stderr.contains("link.yaml:2:") && done.stderr.contains(&own) && done.stderr.contains("in use"),
        "{done:?}"
    );
    assert!(host.left_behind().is_empty());
    drop(taken);
    let checked = host.run(&["link", "link.yaml", "--check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
}

#[test]
fn a_misspelt_key_gets_a_suggestion() {
    let host = Host::new();
    for (command, text, wanted) in [
        (
            "link",
            "host: robot\ntopics:\n  - {name: /a, direction: out, priorty: 5}\n",
            "priority",
        ),
        ("ros1", "topcs:\n  - {name: /a}\n", "topics"),
        ("ros2", "topics:\n  - {name: /a, derection: in}\n", "direction"),
    ] {
        std::fs::write(host.path("file.yaml"), text).expect("writes");
        let meant = format!("(did you mean {wanted}?)");
        refused(&host, &[command, "file.yaml", "--check"], &["file.yaml:", &meant]);
    }
}

#[test]
fn a_runtime_folder_that_is_none() {
    let host = Host::new();
    let with = |folder: &str| {
        let mut command = host.command(&["topic", "list"]);
        command.env("ROPEWALK_RUNTIME_DIR", folder);
        let done = crate::support::finish(command);
        assert_eq!(
            (done.code, done.stderr.lines().count()),
            (2, 1),
            "{folder}: {done:?}"
        );
        done.stderr
    };
    std::fs::write(host.path("file"), "").expect("writes");
    let path = |name| host.path(name).display().to_string();
    assert!(with(&path("file")).contains("file"));
    assert!(with("relative").contains("absolute"));
    assert!(with(&path("no/such/parent")).contains("No such file"));
    std::fs::create_dir(host.path("open")).expect("makes");
    std::fs::set_permissions(host.path("open"), std::fs::Permissions::from_mode(0o777)).expect("sets");
    assert!(with(&path("open")).contains("chmod 700"));
    std::os::unix::fs::symlink(host.path("t"), host.path("symlink")).expect("links");
    assert!(with(&path("symlink")).contains("symbolic link"));
    if !rustix::process::getuid().is_root() {
        std::fs::create_dir(host.path("closed")).expect("makes");
        std::fs::set_permissions(host.path("closed"), std::fs::Permissions::from_mode(0o000)).expect("sets");
        assert!(with(&path("closed")).contains("closed"));
    }
    let mut command = host.command(&["topic", "list"]);
    command.env("ROPEWALK_DOMAIN", "seven");
    assert_eq!(crate::support::finish(command).code, 2);
}

#[test]
fn a_certificate_for_the_page_that_is_none() {
    let host = Host::new();
    std::fs::write(host.path("robot.crt"), "no certificate\n").expect("writes");
    for command in ["web", "foxglove"] {
        let with = |certificate| vec![command, "--certificate", certificate, "--key", "robot.crt"];
        refused(
            &host,
            &with("robot.crt"),
            &["robot.crt: it contains no certificate", "BEGIN CERTIFICATE"],
        );
        refused(&host, &with("missing.crt"), &["missing.crt", "PEM"]);
    }
}
