use super::*;

const CONFIG: &str = r#"/** TOPIC / SERVICES DEFINITION
*  TOPIC(type, topic, source, dest, priority, period, time_to_live)
*/
TOPIC(sensor_msgs::LaserScan, "scan", 0, "1", 90, 100, 200);
QOSTOPIC(nav_msgs::Path, "/plan", 0, "1", 50, 200, 500, 10); // a queue
TOPIC(geometry_msgs::Twist, "cmd_vel", 1, "0", 100, 50, 0)
TFTOPIC("/tf", 0, "1,2", 60, 100, 500)
SERVICE(std_srvs::SetBool, "/service", 0, 100, 100);
"#;

const NETWORK: &str =
    "use_ip: true\nbase_ip: 10.0.0.1\nroutes:\n - dest: 3\n   next: 5\nrate_mbps: 11.0\ncolour: red\n";

fn texts(notes: &[Note]) -> Vec<String> {
    notes.iter().map(|n| format!("{}: {}", n.line, n.text)).collect()
}

fn host<'a>(imported: &'a Imported, name: &str) -> &'a ImportedHost {
    let found = imported.hosts.iter().find(|h| h.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {:?}", imported.hosts))
}

#[test]
fn pounds_header_becomes_files_for_each_node() {
    let imported = pound(("config.h", CONFIG), Some(("config.yaml", NETWORK))).expect("read");
    let names: Vec<_> = imported.hosts.iter().map(|h| h.name.as_str()).collect();
    assert_eq!(names, ["node-0", "node-1", "node-2"]);
    let zero = host(&imported, "node-0");
    for line in [
        "radio: {bind: '0.0.0.0:7400', rate: 11Mbit/s}",
        "  - {name: node-1, address: '10.0.0.2:7400', allow: {publish: [/cmd_vel], subscribe: [/plan, /scan, /tf], call: [/service]}}",
        "  - {name: node-2, address: '10.0.0.3:7400', allow: {publish: [], subscribe: [/tf], call: [/service]}}",
        "  - {name: /scan, direction: out, priority: 90, deadline: 200ms}",
        "  - {name: /plan, direction: out, priority: 50, deadline: 500ms, depth: 10}",
        "  - {name: /cmd_vel, direction: in, priority: 100}",
        "  - {name: /service, role: serve, priority: 100}",
    ] {
        assert!(zero.link.lines().any(|l| l == line), "{line}\n{}", zero.link);
    }
    for line in [
        "  - {name: /scan, direction: to_bus}",
        "  - {name: /cmd_vel, direction: to_ros}",
        "  - {name: /tf, direction: to_bus, tf: {rate: 10Hz}}",
        "  - {name: /service, direction: to_bus, type: std_srvs/SetBool}",
    ] {
        assert!(zero.bridge.lines().any(|l| l == line), "{line}\n{}", zero.bridge);
    }
    // Who calls a service lets its server reply.
    let more = format!("{CONFIG}TOPIC(std_msgs::String, \"/b\", 1, \"2\", 1, 1, 1)");
    let one = pound(("config.h", &more), None).expect("read");
    let one = host(&one, "node-1");
    let line = "  - {name: node-0, address: '192.168.1.1:7400', allow: {publish: [/plan, /scan, /service, /tf], subscribe: [/cmd_vel], call: []}}";
    assert!(one.link.lines().any(|l| l == line), "{}", one.link);
    let two = host(&imported, "node-2");
    assert!(
        two.link.contains("{name: node-0, address: '10.0.0.1:7400'}"),
        "{}",
        two.link
    );
    assert!(
        two.link
            .contains("{name: /service, role: call, from: node-0, priority: 100}")
    );
    assert!(!two.link.contains("/scan"));
    let notes = texts(&imported.notes);
    assert!(notes.iter().any(|n| n.starts_with("1: use_ip: ")), "{notes:?}");
    assert!(notes.iter().any(|n| n.starts_with("3: routes: ")), "{notes:?}");
    assert!(
        notes
            .iter()
            .any(|n| n.starts_with("7: 'colour' is not understood")),
        "{notes:?}"
    );
    assert!(
        notes.iter().any(|n| n.starts_with("8: /service: a call waits")),
        "{notes:?}"
    );
}

#[test]
fn what_pound_could_not_mean_is_told_with_its_line() {
    let good = "TOPIC(std_msgs::String, \"/a\", 0, \"1\", 1, 1, 1)\n";
    for (line, told) in [
        (
            "TOPIC(std_msgs::String, \"/b\", 0, \"1\", 1, 1)",
            "TOPIC has 6 arguments where 7 belong",
        ),
        (
            "TOPIC(std_msgs::String, \"/b c\", 0, \"1\", 1, 1, 1)",
            "'/b c' is no topic's name",
        ),
        (
            "TOPIC(std_msgs::String, \"/b'}\\n\", 0, \"1\", 1, 1, 1)",
            "is no topic's name",
        ),
        (
            "TOPIC(std_msgs::String, \"/b\", x, \"1\", 1, 1, 1)",
            "the node 'x' is no number",
        ),
        (
            "TOPIC(std_msgs::String, \"/b\", 0, \"1\", 200, 1, 1)",
            "priority 200 is beyond 127",
        ),
        (
            "TOPIC(std_msgs::String, \"/b\", 0, \"0\", 1, 1, 1)",
            "is source and destination",
        ),
        (
            "TOPIC(std_msgs::String, \"/b\", 0, \"900\", 1, 1, 1)",
            "node 900 has no address",
        ),
        (
            "TOPIC(std_msgs::String, \"/a\", 2, \"1\", 1, 1, 1)",
            "give peers a `namespace`",
        ),
        ("DATATYPE(x)", "DATATYPE is none of"),
        ("int x;", "'int' is not understood"),
        ("#ifdef REAL", "is not evaluated"),
        ("TOPIC(std_msgs::String,", "TOPIC( has no end"),
        (
            "SERVICE(SetBool, \"/s\", 0, 1, 1)",
            "'SetBool' is no service's type",
        ),
    ] {
        let imported = pound(("config.h", &format!("{good}{line}")), None).expect(line);
        let notes = texts(&imported.notes);
        assert!(
            notes.iter().any(|n| n.starts_with("2: ") && n.contains(told)),
            "{line}: {notes:?}"
        );
    }
    assert!(matches!(
        pound(("c", "// nothing"), None),
        Err(ImportError::Empty { .. })
    ));
    assert!(matches!(
        pound(("c", &" ".repeat(MAX_FILE + 1)), None),
        Err(ImportError::TooMuch { .. })
    ));
    let many = good.repeat(MAX_ROUTES + 1);
    assert!(matches!(
        pound(("c", &many), None),
        Err(ImportError::TooMuch { .. })
    ));
    assert!(matches!(
        pound(("c", good), Some(("y", "a: ["))),
        Err(ImportError::Syntax { .. })
    ));
}

const LAUNCH: &str = r#"<launch>
  <arg name="target" default="192.168.1.2" />
  <arg name="spare" default="false" />
  <node name="udp_sender" pkg="nimbro_topic_transport" type="udp_sender" output="screen">
    <param name="destination_addr" value="$(arg target)" />
    <param name="destination_port" value="17001" />
    <rosparam command="load" file="$(find my_robot)/launch/topics.yaml" />
  </node>
  <node name="spare" pkg="nimbro_topic_transport" type="tcp_sender" if="$(arg spare)">
    <rosparam>topics: [{name: /never}]</rosparam>
  </node>
  <node name="tcp_sender" pkg="nimbro_topic_transport" type="tcp_sender">
    <param name="destination_addr" value="$(arg target)" />
    <rosparam>
      topics:
       - name: map
         latch: True
         colour: red
    </rosparam>
  </node>
  <node name="client" pkg="nimbro_service_transport" type="tcp_client">
    <param name="server" value="$(arg target)" />
    <param name="timeout" value="2.5" />
    <rosparam>
      services:
        - {name: "/add", type: "rospy_tutorials/AddTwoInts"}
    </rosparam>
  </node>
</launch>
"#;

const TOPICS: &str = "topics:\n - name: \"/scan\"\n   rate: 10\n - name: \"/camera\"\n   compress: true # bz2\n   rate: 1.5\n   resend: True\n";

fn load(_: &str, named: &str) -> Result<(String, String), String> {
    match named.rsplit('/').next() {
        Some("topics.yaml") => Ok(("topics.yaml".into(), TOPICS.into())),
        Some("self.launch") => Ok((
            "self.launch".into(),
            "<launch><include file='self.launch'/><include file='self.launch'/></launch>".into(),
        )),
        _ => Err("it is not there".into()),
    }
}

fn read(file: &str, text: &str) -> Result<Imported, ImportError> {
    nimbro(
        Nimbro {
            there: (file, text),
            back: None,
        },
        &mut load,
    )
}

#[test]
fn nimbros_launch_file_becomes_files_for_both_hosts() {
    let imported = read("robot.launch", LAUNCH).expect("read");
    let robot = host(&imported, "robot");
    for line in [
        "radio: {bind: '0.0.0.0:7400', rate: auto}",
        "  - {name: base, address: '192.168.1.2:7400'}",
        "  - {name: /scan, direction: out, rate_limit: 10Hz}",
        "  - {name: /camera, direction: out, latched: true, rate_limit: 1.5Hz, compress: auto}",
        "  - {name: /map, direction: out, reliability: reliable, latched: true}",
        "  - {name: /add, role: call, from: base, timeout: 2.5s}",
    ] {
        assert!(robot.link.lines().any(|l| l == line), "{line}\n{}", robot.link);
    }
    assert!(
        robot
            .bridge
            .contains("{name: /add, direction: to_ros, type: rospy_tutorials/AddTwoInts}")
    );
    let base = host(&imported, "base");
    assert!(
        base.link
            .contains("address: '192.0.2.1:7400'}   # write its address"),
        "{}",
        base.link
    );
    assert!(
        base.link
            .contains("{name: /map, direction: in, reliability: reliable, latched: true}")
    );
    assert!(
        base.bridge
            .contains("{name: /add, direction: to_bus, type: rospy_tutorials/AddTwoInts}")
    );
    assert!(!base.link.contains("/never"));
    let notes: Vec<String> = imported.notes.iter().map(Note::to_string).collect();
    for told in [
        "robot.launch:6: destination_port: one link",
        "topics.yaml:4: /camera: resend",
        "robot.launch:16: map: colour is not understood",
    ] {
        assert!(notes.iter().any(|n| n.starts_with(told)), "{told}: {notes:#?}");
    }
}

#[test]
fn nimbros_topics_come_back_too() {
    let back = "topics: [{name: /cmd_vel}]\n";
    let files = Nimbro {
        there: ("topics.yaml", TOPICS),
        back: Some(("back.yaml", back)),
    };
    let imported = nimbro(files, &mut load).expect("read");
    let robot = host(&imported, "robot");
    assert!(
        robot.link.contains("{name: /cmd_vel, direction: in}"),
        "{}",
        robot.link
    );
    assert!(robot.bridge.contains("{name: /cmd_vel, direction: to_ros}"));
    // The base's launch file tells where the robot is.
    let back = "<launch><node pkg='nimbro_topic_transport' type='tcp_sender'><param name='destination_addr' value='192.168.1.1'/>\
                <rosparam>topics: [{name: /cmd_vel}]</rosparam></node></launch>";
    let files = Nimbro {
        there: ("robot.launch", LAUNCH),
        back: Some(("base.launch", back)),
    };
    let imported = nimbro(files, &mut load).expect("read");
    assert_eq!(imported.hosts.len(), 2);
    let base = host(&imported, "base");
    assert!(
        base.link.contains("{name: robot, address: '192.168.1.1:7400'}"),
        "{}",
        base.link
    );
    assert!(
        base.link
            .contains("{name: /cmd_vel, direction: out, reliability: reliable}"),
        "{}",
        base.link
    );
}

#[test]
fn what_nimbro_could_not_mean_is_told() {
    let syntax = |file, text: &str| matches!(read(file, text), Err(ImportError::Syntax { .. }));
    assert!(syntax("a.launch", "<launch><node></launch>"));
    assert!(syntax("a.yaml", "topics: {"));
    assert!(syntax("a.yaml", "topics: [{name: /a, rate: often}]"));
    for empty in ["", "<launch/>", "<launch><node pkg='rviz' type='rviz'/></launch>"] {
        assert!(
            matches!(read("a.launch", empty), Err(ImportError::Empty { .. })),
            "{empty}"
        );
    }
    let gone = "<launch><node pkg='nimbro_topic_transport' type='udp_sender'><rosparam file='gone.yaml'/></node></launch>";
    assert!(matches!(
        read("a.launch", gone),
        Err(ImportError::File { line: 1, .. })
    ));
    // A file that includes itself twice ends.
    let circle = "<launch><include file='self.launch'/></launch>";
    assert!(matches!(
        read("a.launch", circle),
        Err(ImportError::TooMuch { .. })
    ));
    let notes = |text: &str| texts(&read("a.yaml", text).expect(text).notes);
    let told = notes("topics:\n- {name: /a}\n- {name: 'x}: y'}\nlabel: robot\nfoo: 1\n");
    for wanted in [
        "3: 'x}: y' is no name",
        "4: label: peers",
        "5: foo: is not understood",
    ] {
        assert!(told.iter().any(|n| n.starts_with(wanted)), "{wanted}: {told:?}");
    }
}
