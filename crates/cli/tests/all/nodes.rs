//! Lists nodes and their endpoints.

use crate::support::{Host, eventually};
use bridge::nodes::{self, Endpoint, Kind, Participant, Qos, Record};
use ropewalk::{BusConfig, Flavour, Node, Registry};

fn node(host: &Host, name: &str) -> Node {
    Node::with_config(name, BusConfig::new(host.path("bus"))).expect("a node")
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_node_is_listed_with_what_its_process_has() {
    let host = Host::new();
    let camera = node(&host, "camera");
    let registry = Registry::new(Flavour::Ros2);
    let image = registry.schema("sensor_msgs/Image").expect("a type");
    let set_bool = registry.service("std_srvs/SetBool").expect("a type");
    let none = host.run(&["node", "list"]);
    assert_eq!((none.code, &*none.stdout), (0, ""), "{none:?}");
    assert!(none.stderr.contains("no nodes"), "{none:?}");
    let subscriber = camera
        .dynamic_subscriber("/exposure", &image)
        .expect("subscribes");
    let all = host.run(&["node", "list", "-a"]).stdout;
    let pid = std::process::id().to_string();
    assert!(all.contains(&pid), "a process that states no node: {all}");
    let publisher = camera.dynamic_publisher("/image", &image).expect("publishes");
    let server = camera
        .dynamic_server("/camera/enable", &set_bool)
        .expect("serves");

    assert_eq!(host.run(&["node", "list"]).stdout, "/camera\n");
    assert_eq!(host.run(&["node", "list", "-c"]).stdout, "1\n");
    let listed = json(&host.run(&["node", "list", "--json"]).stdout);
    assert_eq!(listed["nodes"][0]["node"], "/camera");
    assert_eq!(listed["nodes"][0]["pid"], std::process::id());
    for name in ["/camera", "camera"] {
        let info = host.run(&["node", "info", name]);
        let wanted = "  Subscribers:\n    /exposure: sensor_msgs/msg/Image\n\n  Publishers:\n    /image: sensor_msgs/msg/Image\n\n  \
                      Service Servers:\n    /camera/enable: std_srvs/srv/SetBool\n\n  Service Clients:\n\n  Action Servers:\n\n  \
                      Action Clients:\n";
        assert!(info.stdout.starts_with("/camera\n  Process: "), "{info:?}");
        assert!(info.stdout.ends_with(wanted), "{info:?}");
    }
    let info = json(&host.run(&["node", "info", "/camera", "--json"]).stdout);
    assert_eq!(info["nodes"][0]["publishers"][0]["type"], "sensor_msgs/msg/Image");
    let missing = host.run(&["node", "info", "/lidar"]);
    assert!(
        missing.code == 2 && missing.stderr.contains("no node /lidar"),
        "{missing:?}"
    );

    assert_eq!(
        host.run(&["topic", "list", "-t"]).stdout,
        "/exposure [sensor_msgs/msg/Image]\n/image [sensor_msgs/msg/Image]\n"
    );
    assert_eq!(host.run(&["topic", "list", "-c"]).stdout, "2\n");
    assert_eq!(
        host.run(&["topic", "type", "/image"]).stdout,
        "sensor_msgs/msg/Image\n"
    );
    assert_eq!(
        host.run(&["topic", "find", "sensor_msgs/msg/Image"]).stdout,
        "/exposure\n/image\n"
    );
    let find = host.run(&["topic", "find", "std_msgs/String"]);
    assert!(
        find.code == 0 && find.stdout.is_empty() && find.stderr.contains("no topic"),
        "{find:?}"
    );
    assert_eq!(
        host.run(&["service", "list", "-t"]).stdout,
        "/camera/enable [std_srvs/srv/SetBool]\n"
    );
    assert_eq!(
        host.run(&["service", "type", "camera/enable"]).stdout,
        "std_srvs/srv/SetBool\n"
    );
    assert_eq!(
        host.run(&["service", "find", "std_srvs/SetBool"]).stdout,
        "/camera/enable\n"
    );
    let verbose = host.run(&["topic", "info", "-v", "/image"]).stdout;
    assert!(
        verbose.contains("Node name: camera\nNode namespace: /\nTopic type: sensor_msgs/msg/Image\n"),
        "{verbose}"
    );
    drop((subscriber, publisher, server));
}

/// Publishes a record as `rmw_ropewalk` and links do.
fn publish(node: &Node, record: &Record) -> bus::Publisher {
    let topic = bus::TopicType {
        topic: nodes::TOPIC.into(),
        type_name: nodes::TYPE.into(),
        type_hash: nodes::HASH,
        flavour: bus::Flavour::default(),
        definition: nodes::DEFINITION.into(),
    };
    let options = bus::PublisherOptions::default().with_history(1);
    let publisher = node.bus().publisher(topic, options).expect("publishes");
    let bytes = record.encode();
    let mut loan = publisher.loan(bytes.len(), &[]).expect("a loan");
    loan.control_mut().copy_from_slice(&bytes);
    publisher.publish(loan, bus::Stamp::default()).expect("publishes");
    publisher
}

#[test]
fn nodes_of_other_hosts_and_their_actions_come_from_records() {
    let host = Host::new();
    let end = |kind, name: &str, ty: &str| Endpoint {
        kind,
        name: name.into(),
        type_name: ty.into(),
        type_hash: (1, [0; 32]),
        id: 7,
        qos: Qos {
            history: 1,
            reliability: 2,
            durability: 2,
            liveliness: 1,
            depth: 5,
            ..Qos::default()
        },
    };
    let arm = nodes::Node {
        name: "arm".into(),
        namespace: "/robot".into(),
        endpoints: vec![
            end(Kind::Publisher, "/robot/joints", "sensor_msgs/msg/JointState"),
            end(
                Kind::Service,
                "/robot/grasp/_action/send_goal",
                "a_msgs/action/Grasp_SendGoal",
            ),
        ],
    };
    let hidden = nodes::Node {
        name: "_daemon".into(),
        namespace: "/".into(),
        endpoints: Vec::new(),
    };
    let far = Participant {
        enclave: "/".into(),
        hosts: vec![0x1234],
        nodes: vec![arm, hidden],
    };
    let record = Record {
        participants: vec![far],
    };
    let published = publish(&node(&host, "link"), &record);
    eventually("the node is known", || {
        (host.run(&["node", "list"]).stdout == "/robot/arm\n").then_some(())
    });
    assert_eq!(
        host.run(&["node", "list", "-a"])
            .stdout
            .lines()
            .filter(|l| l.starts_with('/'))
            .count(),
        2
    );
    let info = host.run(&["node", "info", "/robot/arm"]).stdout;
    for line in [
        "Host: 0000000000001234",
        "Service Servers:\n\n",
        "Action Servers:\n    /robot/grasp: a_msgs/action/Grasp\n",
    ] {
        assert!(info.contains(line), "{line}: {info}");
    }
    let all = host.run(&["node", "info", "/robot/arm", "-a"]).stdout;
    assert!(
        all.contains("/robot/grasp/_action/send_goal: a_msgs/action/Grasp_SendGoal"),
        "{all}"
    );
    assert_eq!(
        host.run(&["action", "list", "-t"]).stdout,
        "/robot/grasp [a_msgs/action/Grasp]\n"
    );
    assert_eq!(
        host.run(&["action", "type", "robot/grasp"]).stdout,
        "a_msgs/action/Grasp\n"
    );
    assert_eq!(
        host.run(&["action", "find", "a_msgs/action/Grasp"]).stdout,
        "/robot/grasp\n"
    );
    let action = host.run(&["action", "info", "/robot/grasp", "-t"]).stdout;
    assert_eq!(
        action,
        "Action: /robot/grasp\nAction clients: 0\nAction servers: 1\n    /robot/arm [a_msgs/action/Grasp]\n"
    );
    assert_eq!(
        host.run(&["topic", "type", "/robot/joints"]).stdout,
        "sensor_msgs/msg/JointState\n"
    );
    let verbose = host.run(&["topic", "info", "-v", "/robot/joints"]).stdout;
    for line in [
        "Node namespace: /robot",
        "Reliability: BEST_EFFORT",
        "History (Depth): KEEP_LAST (5)",
        "Deadline: Infinite",
    ] {
        assert!(verbose.contains(line), "{line}: {verbose}");
    }
    // Records are hidden from the list of topics.
    assert_eq!(host.run(&["topic", "list"]).stdout, "");
    assert!(host.run(&["topic", "list", "-a"]).stdout.contains(nodes::TOPIC));
    drop(published);
}
