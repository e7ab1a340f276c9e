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
        "  - {name: node-1, address: '10.0.0.2:7400', allow: {publish: [/R1/cmd_vel], subscribe: [/R0/plan, /R0/scan, /tf], call: [/R0/service]}}",
        "  - {name: node-2, address: '10.0.0.3:7400', allow: {publish: [], subscribe: [/tf], call: [/R0/service]}}",
        "  - {name: /R0/scan, direction: out, priority: 90, deadline: 200ms, rate_limit: 10Hz}",
        "  - {name: /R0/plan, direction: out, priority: 50, deadline: 500ms, rate_limit: 5Hz}",
        "  - {name: /R1/cmd_vel, direction: in, priority: 100}",
        "  - {name: /R0/service, role: serve, priority: 100}",
    ] {
        assert!(zero.link.lines().any(|l| l == line), "{line}\n{}", zero.link);
    }
    for line in [
        "  - {name: /R0/scan, direction: to_bus, type: sensor_msgs/LaserScan}",
        "  - {name: /plan, bus: /R0/plan, direction: to_bus, type: nav_msgs/Path}",
        "  - {name: /R0/rx/R1/cmd_vel, bus: /R1/cmd_vel, direction: to_ros}",
        "  - {name: /tf, direction: to_bus, tf: {rate: 10Hz}}",
        "  - {name: /service, bus: /R0/service, direction: to_bus, type: std_srvs/SetBool}",
    ] {
        assert!(zero.bridge.lines().any(|l| l == line), "{line}\n{}", zero.bridge);
    }
    // A host that calls a service lets its server reply.
    let more = format!("{CONFIG}TOPIC(std_msgs::String, \"/b\", 1, \"2\", 1, 1, 1)");
    let one = pound(("config.h", &more), None).expect("read");
    let one = host(&one, "node-1");
    let line = "  - {name: node-0, address: '192.168.1.1:7400', allow: {publish: [/R0/plan, /R0/scan, /R0/service, /tf], subscribe: [/R1/cmd_vel], call: []}}";
    assert!(one.link.lines().any(|l| l == line), "{}", one.link);
    for line in [
        "  - {name: /R1/rx/R0/scan, bus: /R0/scan, direction: to_ros}",
        "  - {name: /R1/REM/R0/service, bus: /R0/service, direction: to_ros, type: std_srvs/SetBool}",
    ] {
        assert!(one.bridge.lines().any(|l| l == line), "{line}\n{}", one.bridge);
    }
    let two = host(&imported, "node-2");
    assert!(
        two.link.contains("{name: node-0, address: '10.0.0.1:7400'}"),
        "{}",
        two.link
    );
    assert!(
        two.link
            .contains("{name: /R0/service, role: call, from: node-0, priority: 100}")
    );
    assert!(!two.link.contains("scan"));
    let notes = texts(&imported.notes);
    for expected in [
        "1: use_ip: ",
        "3: routes, with the 2 lines below it: ",
        "7: colour: is not understood",
        "8: /service: a call waits",
        "5: /plan: queue_length 10 is a playout buffer",
    ] {
        assert!(
            notes.iter().any(|n| n.starts_with(expected)),
            "{expected}: {notes:?}"
        );
    }
}

#[test]
fn lines_invalid_for_pound_are_reported_with_their_number() {
    let good = "TOPIC(std_msgs::String, \"/a\", 0, \"1\", 1, 1, 1)\n";
    for (line, expected) in [
        (
            "TOPIC(std_msgs::String, \"/b\", 0, \"1\", 1, 1)",
            "TOPIC has 6 arguments instead of 7",
        ),
        (
            "TOPIC(std_msgs::String, \"/b c\", 0, \"1\", 1, 1, 1)",
            "'/b c' is not a topic name",
        ),
        (
            "TOPIC(std_msgs::String, \"/b'}\\n\", 0, \"1\", 1, 1, 1)",
            "is not a topic name",
        ),
        (
            "TOPIC(std_msgs::String, \"/b\", x, \"1\", 1, 1, 1)",
            "the node 'x' is not a number",
        ),
        (
            "TOPIC(std_msgs::String, \"/b\", 0, \"1\", 200, 1, 1)",
            "priority 200 exceeds 127",
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
            "Pound sends only the last one listed",
        ),
        ("DATATYPE(x)", "DATATYPE is not one of"),
        ("int x;", "'int' is not understood"),
        ("#ifdef REAL", "is not evaluated"),
        ("TOPIC(std_msgs::String,", "TOPIC( has no end"),
        (
            "SERVICE(SetBool, \"/s\", 0, 1, 1)",
            "'SetBool' is not a service type",
        ),
    ] {
        let imported = pound(("config.h", &format!("{good}{line}")), None).expect(line);
        let notes = texts(&imported.notes);
        assert!(
            notes.iter().any(|n| n.starts_with("2: ") && n.contains(expected)),
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
    let many: String = (0..=MAX_ROUTES)
        .map(|i| good.replace("/a", &format!("/a{i}")))
        .collect();
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
  <node name="client" pkg="nimbro_service_transport" type="udp_client">
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
    for expected in [
        "robot.launch:6: destination_port: one link",
        "topics.yaml:7: /camera: resend",
        "robot.launch:18: map: colour is not understood",
        "robot.launch:16: map: is resolved to /tcp_sender/map",
    ] {
        assert!(
            notes.iter().any(|n| n.starts_with(expected)),
            "{expected}: {notes:#?}"
        );
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
    // The base's launch file contains the robot's address.
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
fn files_invalid_for_nimbro_are_refused() {
    let syntax = |file, text: &str| matches!(read(file, text), Err(ImportError::Syntax { .. }));
    assert!(syntax("a.launch", "<launch><node></launch>"));
    assert!(syntax("a.yaml", "topics: {"));
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
    // A file that includes itself twice does not loop forever.
    let circle = "<launch><include file='self.launch'/></launch>";
    assert!(matches!(
        read("a.launch", circle),
        Err(ImportError::TooMuch { .. })
    ));
    let notes = |text: &str| texts(&read("a.yaml", text).expect(text).notes);
    let found = notes("topics:\n- {name: /a}\n- {name: 'x}: y'}\nlabel: robot\nfoo: 1\n");
    for wanted in [
        "3: 'x}: y' is not a name",
        "4: label: peers",
        "5: foo: is not understood",
    ] {
        assert!(found.iter().any(|n| n.starts_with(wanted)), "{wanted}: {found:?}");
    }
}

/// Files of the kinds found in the field: the input of `import`, and its options.
const CASES: [(&str, Option<&str>); 20] = [
    ("chatter.h", None),
    ("absolute.h", None),
    ("queued.h", None),
    ("transforms.h", None),
    ("services.h", None),
    ("fleet.h", None),
    ("defines.h", None),
    ("odd.h", None),
    ("chatter.h", Some("started.yaml")),
    ("chatter.h", Some("network.yaml")),
    ("sender.launch", None),
    ("topics.yaml", None),
    ("two_way_1.launch", Some("two_way_2.launch")),
    ("two_way_2.launch", Some("two_way_1.launch")),
    ("services.launch", Some("servers.launch")),
    ("servers.launch", Some("services.launch")),
    ("groups.launch", None),
    ("prefixed_robot.launch", Some("prefixed_base.launch")),
    ("flow.yaml", Some("back.yaml")),
    ("back.yaml", Some("two_way_2.launch")),
];

fn case(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/import/cases");
    std::fs::read_to_string(path.join(name)).expect(name)
}

fn of_cases(_: &str, named: &str) -> Result<(String, String), String> {
    match named.rsplit('/').next() {
        Some("topics.yaml") => Ok(("topics.yaml".into(), case("topics.yaml"))),
        _ => Err("the package is not there".into()),
    }
}

fn import(file: (&str, &str), other: Option<(&str, &str)>) -> Result<Imported, ImportError> {
    match file.0.ends_with(".h") {
        true => pound(file, other),
        false => nimbro(
            Nimbro {
                there: file,
                back: other,
            },
            &mut of_cases,
        ),
    }
}

/// Whether a line has no meaning of its own.
fn is_blank(line: &str) -> bool {
    let line = line.trim();
    let comments = ["//", "/*", "*", "#", "<!--"];
    let is_comment = comments.iter().any(|c| line.starts_with(c));
    let is_directive = ["#include", "#define", "#if", "#e"]
        .iter()
        .any(|d| line.starts_with(d));
    // Part of a node that is reported as a whole: start it as before.
    let is_foreign = line.contains("\"device\"");
    line.is_empty() || (is_comment && !is_directive) || is_foreign
}

#[test]
fn every_line_of_a_file_is_imported_or_noted() {
    let mut lines = 0;
    for (file, other) in CASES {
        let texts = [Some(file), other].map(|name| name.map(|name| (name, case(name))));
        let [Some(one), two] = &texts else {
            panic!("{file}")
        };
        let whole = |one: &str, two: Option<&str>| {
            let two = two.map(|text| (other.unwrap_or_default(), text));
            import((file, one), two)
        };
        let second = two.as_ref().map(|(_, text)| text.as_str());
        let imported = whole(&one.1, second).expect(file);
        for host in &imported.hosts {
            crate::Config::parse(&host.bridge, "bridge.yaml")
                .unwrap_or_else(|e| panic!("{file}: {e}\n{}", host.bridge));
        }
        for (at, text) in [(0, Some(one.1.as_str())), (1, second)] {
            let all: Vec<&str> = text.unwrap_or_default().lines().collect();
            for (number, line) in all.iter().enumerate().filter(|(_, l)| !is_blank(l)) {
                // Without the line, the output or the notes must differ.
                let mut without = all.clone();
                without[number] = "";
                let without = without.join("\n");
                let changed = match at {
                    0 => whole(&without, second),
                    _ => whole(&one.1, Some(&without)),
                };
                assert_ne!(
                    changed.as_ref(),
                    Ok(&imported),
                    "{file} {other:?}: {line}\n{imported:#?}"
                );
                lines += 1;
            }
        }
    }
    assert!(lines > 250, "{lines}");
}

/// Returns the lines of a host's bridge.
fn bridge(file: &str, other: Option<&str>, name: &str) -> Vec<String> {
    let second = other.map(case);
    let second = other.zip(second.as_deref());
    let imported = import((file, &case(file)), second).expect(file);
    let host = host(&imported, name);
    host.bridge
        .lines()
        .map(|l| l.trim_start_matches("  - ").to_owned())
        .collect()
}

#[test]
fn names_at_both_ends_stay_what_they_were() {
    let two_way = ("two_way_1.launch", Some("two_way_2.launch"));
    for ((file, other), name, lines) in [
        (
            ("absolute.h", None),
            "node-1",
            &[
                "{name: /R1/rx/R0/turtle/pose, bus: /R0/turtle/pose, direction: to_ros}",
                "{name: /turtle/cmd_vel, bus: /R1/turtle/cmd_vel, direction: to_bus, type: geometry_msgs/Twist}",
            ][..],
        ),
        (
            ("transforms.h", None),
            "node-0",
            &[
                "{name: /tf, direction: to_bus, tf: {frames: ['odom', 'base_link'], rate: 10Hz}}",
                "{name: /tf_far, bus: /R1/tf, direction: to_ros}",
            ],
        ),
        (
            ("services.h", None),
            "node-2",
            &[
                "{name: /R2/REM/R0/lights, bus: /R0/lights, direction: to_ros, type: std_srvs/SetBool}",
                "{name: /R2/REM/R1/dock, bus: /R1/dock, direction: to_ros, type: std_srvs/Trigger}",
                "{name: /R2/battery, direction: to_bus, type: std_msgs/Float64}",
            ],
        ),
        (
            ("services.h", None),
            "node-1",
            &["{name: /R1/dock, direction: to_bus, type: std_srvs/Trigger}"],
        ),
        (
            ("fleet.h", None),
            "node-2",
            &[
                "{name: /R2/rx/R0/scan, bus: /R0/scan, direction: to_ros}",
                "{name: /R2/rx/R1/scan, bus: /R1/scan, direction: to_ros}",
            ],
        ),
        (
            ("chatter.h", Some("started.yaml")),
            "node-1",
            &["{name: /R1/tx/laser, bus: /R1/laser, direction: to_bus}"],
        ),
        (
            ("chatter.h", Some("started.yaml")),
            "node-2",
            &["{name: /R2/rx/R1/laser, bus: /R1/laser, direction: to_ros}"],
        ),
        (
            two_way,
            "robot",
            &[
                "{name: /chat, direction: to_bus}",
                "{name: /chat, bus: /recv/chat, direction: to_ros}",
            ],
        ),
        (
            two_way,
            "base",
            &[
                "{name: /recv/chat, bus: /chat, direction: to_ros}",
                "{name: /recv/chat, direction: to_bus}",
            ],
        ),
        (
            ("services.launch", Some("servers.launch")),
            "robot",
            &[
                "{name: /remote/setParam, bus: /cam/setParam, direction: to_ros, type: camera_v4l2/SetCameraParam}",
                "{name: /client/reset, bus: /reset, direction: to_ros, type: std_srvs/Empty}",
            ],
        ),
        (
            ("services.launch", Some("servers.launch")),
            "base",
            &[
                "{name: /front/setParam, bus: /cam/setParam, direction: to_bus, type: camera_v4l2/SetCameraParam}",
            ],
        ),
        (
            ("groups.launch", None),
            "robot",
            &[
                "{name: /camera/image, bus: /front/image, direction: to_bus}",
                "{name: /robot/sender/depth, bus: /depth, direction: to_bus}",
            ],
        ),
        (
            ("prefixed_robot.launch", Some("prefixed_base.launch")),
            "base",
            &["{name: /rover/laser, bus: /scan, direction: to_ros}"],
        ),
        (
            ("prefixed_robot.launch", Some("prefixed_base.launch")),
            "robot",
            &["{name: /far/cmd_vel, bus: /cmd_vel, direction: to_ros}"],
        ),
    ] {
        let made = bridge(file, other, name);
        for line in lines {
            assert!(made.iter().any(|l| l == line), "{file} {name}: {line}\n{made:#?}");
        }
    }
}

#[test]
fn the_return_path_leads_to_the_robot_and_other_recipients_are_reported() {
    let files = Nimbro {
        there: ("two_way_1.launch", &case("two_way_1.launch")),
        back: Some(("two_way_2.launch", &case("two_way_2.launch"))),
    };
    let imported = nimbro(files, &mut of_cases).expect("read");
    let names: Vec<_> = imported.hosts.iter().map(|h| h.name.as_str()).collect();
    assert_eq!(names, ["robot", "base", "base-2"]);
    let base = host(&imported, "base");
    for line in [
        "{name: robot, address: '192.168.1.1:7400'",
        "{name: base-2, address: '192.168.1.9:7400'",
    ] {
        assert!(base.link.contains(line), "{line}\n{}", base.link);
    }
    let notes: Vec<String> = imported.notes.iter().map(Note::to_string).collect();
    let expected = "two_way_2.launch:9: topics come back to 192.168.1.1 and to 192.168.1.9: 192.168.1.1 is assumed to be the robot";
    assert!(notes.iter().any(|n| n.starts_with(expected)), "{notes:#?}");
}

#[test]
fn an_include_that_is_not_there_and_a_rate_that_is_none_cost_themselves_alone() {
    let imported = import(("groups.launch", &case("groups.launch")), None).expect("read");
    let notes = texts(&imported.notes);
    for expected in [
        "3: the argument spare is not used",
        "4: use_sim_time: parameters outside a <node>",
        "6: <machine> is ignored",
        "8: the remap of /never to /ever affects no name",
        "9: $(find their_robot)/launch/drivers.launch is not included (the package is not there)",
        "11: the node driver (my_driver/driver) does not belong to nimbro_network",
        "17: relay_mode: write `relay: true`",
        "21: colours, with the line below it: is not understood",
        "26: depth: unit is not understood",
    ] {
        assert!(
            notes.iter().any(|n| n.starts_with(expected)),
            "{expected}: {notes:#?}"
        );
    }
    let imported = read("a.yaml", "topics: [{name: /a, rate: often}, {name: /b}]").expect("read");
    let notes = texts(&imported.notes);
    assert!(
        notes
            .iter()
            .any(|n| n == "1: /a: rate often is not a valid limit: ignored"),
        "{notes:?}"
    );
    assert!(host(&imported, "robot").bridge.contains("/b"));
}

#[test]
fn colliding_names_are_reported_and_the_result_is_a_valid_configuration() {
    for (text, expected) in [
        (
            "TOPIC(a::B, \"x\", 0, \"1\", 1, 1, 1)\nTOPIC(a::B, \"/R0/x\", 0, \"1\", 1, 1, 1)",
            "/R0/R0/x: /R0/x already crosses as /R0/x",
        ),
        (
            "TFTOPIC(\"tf\", 0, \"2\", 1, 1, 1)\nTF_OUT_TOPIC(\"tf\", \"/far\")\nTFTOPIC(\"tf\", 1, \"2\", 1, 1, 1)\nTF_OUT_TOPIC(\"tf\", \"/far\")",
            "/R1/tf: arrives as /far",
        ),
        (
            "SERVICE(a::B, \"s\", 0, 1, 1)\nSERVICE(a::B, \"/R0/s\", 0, 1, 1)\nTOPIC(a::B, \"x\", 0, \"1\", 1, 1, 1)",
            "/R0/R0/s: /R0/s is another service there",
        ),
    ] {
        let imported = pound(("config.h", text), None).expect(text);
        let notes = texts(&imported.notes);
        assert!(
            notes.iter().any(|n| n.contains(expected)),
            "{expected}: {notes:#?}"
        );
        for host in &imported.hosts {
            crate::Config::parse(&host.bridge, "bridge.yaml").expect(text);
        }
    }
}
