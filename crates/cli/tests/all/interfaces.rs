//! Showing and listing types.

use crate::support::{Done, Host, finish};
use ropewalk::{BusConfig, Flavour, Node, Registry};

#[test]
fn types_are_shown_of_both_ros() {
    let host = Host::new();
    let show = |args: &[&str]| host.run(&[&["interface", "show"], args].concat());
    let header = show(&["std_msgs/msg/Header"]).stdout;
    assert_eq!(
        header,
        "builtin_interfaces/Time stamp\n\tint32 sec\n\tuint32 nanosec\nstring frame_id\n"
    );
    assert_eq!(
        show(&["std_msgs/Header", "--ros1", "--no-comments"]).stdout,
        "uint32 seq\ntime stamp\nstring frame_id\n"
    );
    assert_eq!(
        show(&["std_srvs/srv/SetBool"]).stdout,
        "bool data\n---\nbool success\nstring message\n"
    );
    assert_eq!(
        show(&["std_srvs/SetBool", "--ros1", "--no-comments"]).stdout,
        "bool data\n---\nbool success\nstring message\n"
    );
    let proto = host.run(&["interface", "proto", "std_srvs/srv/SetBool"]);
    assert_eq!(proto.stdout, "data: false\n");
    let proto = host.run(&["interface", "proto", "geometry_msgs/Vector3"]);
    assert_eq!(proto.stdout, "x: 0.0\ny: 0.0\nz: 0.0\n");
    let unknown = show(&["a_msgs/msg/Missing"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("a_msgs/Missing"),
        "{unknown:?}"
    );
    let package = host.run(&["interface", "package", "std_srvs"]).stdout;
    assert_eq!(
        package,
        "std_srvs/srv/Empty\nstd_srvs/srv/SetBool\nstd_srvs/srv/Trigger\n"
    );
    let packages = host.run(&["interface", "packages", "-s"]).stdout;
    assert!(
        packages.contains("std_srvs\n") && !packages.contains("sensor_msgs"),
        "{packages}"
    );
    let list = host.run(&["interface", "list", "-m", "--json"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert!(
        list["messages"]
            .as_array()
            .is_some_and(|all| all.contains(&"std_msgs/msg/String".into())),
        "{list}"
    );
    assert_eq!(list["services"], serde_json::Value::Null);
    let ros1 = host.run(&["interface", "list", "--ros1"]).stdout;
    assert!(
        ros1.contains("    tf/tfMessage\n") && ros1.contains("Services:\n"),
        "{ros1}"
    );
}

#[test]
fn types_of_folders_are_shown_actions_too() {
    let host = Host::new();
    let package = host.path("prefix/share/a_msgs");
    for folder in ["msg", "srv", "action"] {
        std::fs::create_dir_all(package.join(folder)).expect("a folder");
    }
    let write = |name: &str, text: &str| std::fs::write(package.join(name), text).expect("writes");
    write("msg/Point.msg", "# A point.\nfloat64 x 1.5  # in metres\n");
    write(
        "action/Go.action",
        "a_msgs/Point to\n---\nbool done\n---\nfloat32 left\n",
    );
    let run = |args: &[&str]| -> Done {
        let mut command = host.command(&[&["interface"], args].concat());
        command.env("AMENT_PREFIX_PATH", host.path("prefix"));
        finish(command)
    };
    assert_eq!(
        run(&["show", "a_msgs/Point"]).stdout,
        "# A point.\nfloat64 x 1.5  # in metres\n"
    );
    assert_eq!(
        run(&["show", "a_msgs/Point", "--no-comments"]).stdout,
        "float64 x 1.5\n"
    );
    let go = "a_msgs/Point to\n\tfloat64 x 1.5\n---\nbool done\n---\nfloat32 left\n";
    for name in ["a_msgs/action/Go", "a_msgs/Go"] {
        let shown = run(&["show", name]);
        assert_eq!(shown.stdout, go, "{shown:?}");
    }
    assert_eq!(run(&["proto", "a_msgs/action/Go"]).stdout, "to:\n  x: 1.5\n");
    assert_eq!(
        run(&["package", "a_msgs"]).stdout,
        "a_msgs/msg/Point\na_msgs/action/Go\n"
    );
    assert_eq!(run(&["packages", "-a"]).stdout, "a_msgs\n");
    let src = host.path("prefix/share").display().to_string();
    let by_path = host.run(&["interface", "show", "a_msgs/action/Go", "--path", &src]);
    assert_eq!(by_path.stdout, go, "{by_path:?}");
    write("action/Go.action", "float32 a\n---\n");
    let bad = run(&["show", "a_msgs/action/Go"]);
    assert!(bad.code == 2 && bad.stderr.contains("Go.action"), "{bad:?}");
}

#[test]
fn a_type_that_is_not_installed_is_shown_while_it_is_used() {
    let host = Host::new();
    let node = Node::with_config("tester", BusConfig::new(host.path("bus"))).expect("a node");
    let mut registry = Registry::new(Flavour::Ros2);
    registry
        .add_message("own_msgs/Level", "# How full.\nfloat32 percent\n")
        .expect("a definition");
    let level = registry.schema("own_msgs/Level").expect("a type");
    let subscriber = node.dynamic_subscriber("/level", &level).expect("subscribes");
    assert_eq!(
        host.run(&["interface", "show", "own_msgs/msg/Level"]).stdout,
        "# How full.\nfloat32 percent\n"
    );
    assert_eq!(
        host.run(&["interface", "package", "own_msgs"]).stdout,
        "own_msgs/msg/Level\n"
    );
    // It can also be published, though this machine has no definition of it.
    let published = host.run(&[
        "topic",
        "pub",
        "/level",
        "own_msgs/msg/Level",
        "percent: 50",
        "--once",
        "--wait",
        "60",
    ]);
    assert_eq!(published.code, 0, "{published:?}");
    let message = subscriber
        .take_timeout(std::time::Duration::from_secs(60))
        .expect("takes")
        .expect("a message");
    let percent = message
        .value()
        .expect("a message")
        .get("percent")
        .ok()
        .and_then(|p| p.as_f64());
    assert_eq!(percent, Some(50.0));
    drop(subscriber);
    assert_eq!(host.run(&["interface", "show", "own_msgs/msg/Level"]).code, 2);
}
