//! Runs programs on the bus under valgrind, if it is installed.
#![allow(missing_docs)]

use ropewalk::{BusConfig, Flavour, Node, Registry};
use std::process::Command;
use std::time::Duration;

const INSIDE: &str = "ROPEWALK_TEST_INSIDE_VALGRIND";

#[test]
fn a_program_on_the_bus_runs_under_valgrind() {
    if std::env::var_os(INSIDE).is_none() {
        let own = std::env::current_exe().expect("this test's program");
        let ran = Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=99"])
            .arg(own)
            .env(INSIDE, "1")
            .output();
        let Ok(ran) = ran else {
            eprintln!("skipped: no valgrind");
            return;
        };
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{}: {said}", ran.status);
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::with_config("tester", BusConfig::new(folder.path())).expect("a node");
    let byte = Registry::new(Flavour::Ros1)
        .schema("std_msgs/UInt8")
        .expect("a type");
    let publisher = node.dynamic_publisher("/number", &byte).expect("a publisher");
    let subscriber = node.dynamic_subscriber("/number", &byte).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, Duration::from_secs(60)));
    publisher.publish_ros1(&[7]).expect("publishes");
    let message = subscriber.take_timeout(Duration::from_secs(60)).expect("takes");
    assert_eq!(message.expect("a message").ros1().expect("bytes"), [7]);
}
