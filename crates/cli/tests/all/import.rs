//! `ropewalk import`: `link` and `ros1` accept the generated files.

use crate::support::Host;

const POUND: &str = r#"
TOPIC(sensor_msgs::LaserScan, "scan", 0, "1", 90, 100, 200);
TOPIC(geometry_msgs::Twist, "cmd_vel", 1, "0", 100, 50, 100)
QOSTOPIC(nav_msgs::Path, "/plan", 0, "1,2", 50, 200, 500, 10);
TFTOPIC("/tf", 0, "1", 60, 100, 500)
SERVICE(std_srvs::SetBool, "/service", 0, 100, 100);
"#;

const LAUNCH: &str = r#"<launch>
  <node name="sender" pkg="nimbro_topic_transport" type="udp_sender">
    <param name="destination_addr" value="192.168.1.2"/>
    <param name="destination_port" value="17001"/>
    <param name="fec" value="0.5"/>
    <rosparam command="load" file="$(find my_robot)/config/topics.yaml"/>
  </node>
  <node name="client" pkg="nimbro_service_transport" type="tcp_client">
    <param name="server" value="192.168.1.2"/>
    <rosparam>
      services: [{name: /add, type: rospy_tutorials/AddTwoInts}]
    </rosparam>
  </node>
</launch>"#;

const TOPICS: &str = "topics:\n - {name: /scan, rate: 10.0}\n - {name: /map, compress: true, latch: True}\n";

/// Imports, checks each generated file with its command, and returns the printed remarks.
fn import(host: &Host, args: &[&str], hosts: &[&str]) -> String {
    let folder = host.path("team");
    let output = folder.to_str().expect("text");
    let args = [&["import"][..], args, &["--output", output]].concat();
    let done = host.run(&args);
    assert_eq!(done.code, 0, "{done:?}");
    for name in hosts {
        for (file, command) in [("link.yaml", "link"), ("bridge.yaml", "ros1")] {
            let path = folder.join(name).join(file);
            let path = path.to_str().expect("text");
            assert!(done.stdout.lines().any(|l| l == path), "{done:?}");
            if command == "ros1" {
                let checked = host.run(&[command, path, "--check"]);
                assert_eq!(checked.code, 0, "{path}: {checked:?}");
            }
        }
    }
    // Existing files stay.
    let again = host.run(&args);
    assert!(
        again.code == 2 && again.stderr.contains("exists already"),
        "{again:?}"
    );
    done.stderr
}

#[test]
fn pounds_header_becomes_configurations() {
    let host = Host::new();
    let file = |name: &str, text: &str| {
        let path = host.path(name);
        std::fs::write(&path, text).expect("writes");
        path.to_str().expect("text").to_owned()
    };
    let config = file("config.h", POUND);
    let network = file("config.yaml", "base_ip: 10.1.0.1\nrate_mbps: 6.0\nuse_ip: true\n");
    let reported = import(
        &host,
        &["pound", &config, "--network", &network],
        &["node-0", "node-1", "node-2"],
    );
    assert!(reported.contains("config.yaml:3: use_ip: "), "{reported}");
    let bad = host.run(&["import", "pound", "missing.h"]);
    assert!(bad.code == 2 && bad.stderr.contains("missing.h"), "{bad:?}");
    let empty = file("empty.h", "// nothing");
    let bad = host.run(&["import", "pound", &empty]);
    assert!(bad.code == 2 && bad.stderr.contains("TOPIC("), "{bad:?}");
}

#[test]
fn nimbros_launch_file_becomes_configurations() {
    let host = Host::new();
    let package = host.path("my_robot");
    for folder in ["launch", "config"] {
        std::fs::create_dir_all(package.join(folder)).expect("a folder");
    }
    std::fs::write(package.join("launch/robot.launch"), LAUNCH).expect("writes");
    std::fs::write(package.join("config/topics.yaml"), TOPICS).expect("writes");
    let launch = package.join("launch/robot.launch");
    let reported = import(
        &host,
        &["nimbro", launch.to_str().expect("text")],
        &["robot", "base"],
    );
    assert!(
        reported.contains("robot.launch:4: destination_port: "),
        "{reported}"
    );
    let link = std::fs::read_to_string(host.path("team").join("robot/link.yaml")).expect("made");
    assert!(
        link.contains("{name: /scan, direction: out, reliability: redundant, rate_limit: 10Hz}"),
        "{link}"
    );
    std::fs::remove_file(package.join("config/topics.yaml")).expect("removes");
    let bad = host.run(&["import", "nimbro", launch.to_str().expect("text")]);
    assert!(
        bad.code == 2 && bad.stderr.contains("put the file there"),
        "{bad:?}"
    );
}

/// `link` and `ros1` accept what is generated from each of the files that `ros1`'s own tests import.
#[test]
fn all_shapes_of_pounds_and_nimbros_files_become_configurations() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../ros1/src/import/cases");
    let path = |name: &str| format!("{cases}/{name}");
    for (file, option, other, hosts) in [
        (
            "fleet.h",
            "--network",
            "started.yaml",
            &["node-0", "node-1", "node-2"][..],
        ),
        ("transforms.h", "--network", "network.yaml", &["node-0", "node-1"]),
        (
            "services.h",
            "--network",
            "network.yaml",
            &["node-0", "node-1", "node-2"],
        ),
        ("odd.h", "--network", "network.yaml", &["node-0", "node-1"]),
        (
            "two_way_1.launch",
            "--back",
            "two_way_2.launch",
            &["robot", "base", "base-2"],
        ),
        ("services.launch", "--back", "servers.launch", &["robot", "base"]),
        (
            "prefixed_robot.launch",
            "--back",
            "prefixed_base.launch",
            &["robot", "base"],
        ),
        ("flow.yaml", "--back", "back.yaml", &["robot", "base"]),
    ] {
        let host = Host::new();
        let what = if file.ends_with(".h") { "pound" } else { "nimbro" };
        import(&host, &[what, &path(file), option, &path(other)], hosts);
    }
}
