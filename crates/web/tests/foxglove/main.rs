//! The Foxglove protocol, spoken by a client in Python that shares no code with the server.

mod drive;
mod record;
mod sizes;

use ropewalk::{BusConfig, Flavour, Node, Publisher, PublisherOptions, Registry, Schema};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use web::foxglove::{Foxglove, FoxgloveOptions};
use web::{Access, Role, Server, ServerOptions, Token};

const WATCHDOG: Duration = Duration::from_secs(60);
const V1: &str = "foxglove.websocket.v1";
const SDK: &str = "foxglove.sdk.v1";

/// A bus with a server on it.
struct Host {
    node: Node,
    server: Server,
    _site: Arc<Foxglove>,
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        Self::with(|_| (), |access| access)
    }

    fn with(change: impl FnOnce(&mut FoxgloveOptions), access: impl FnOnce(Access) -> Access) -> Self {
        let folder = tempfile::Builder::new().prefix("rw").tempdir().unwrap();
        let config = BusConfig::new(folder.path().join("bus"));
        let mut options = FoxgloveOptions::default();
        options.assets = vec![folder.path().join("share")];
        change(&mut options);
        let of_server = Node::with_config("foxglove", config.clone()).unwrap();
        let site = Arc::new(Foxglove::start(of_server, options).unwrap());
        let access = access(Access::new(&[]).unwrap());
        let options = ServerOptions::new("127.0.0.1:0".parse().unwrap(), access);
        Host {
            node: Node::with_config("test", config).unwrap(),
            server: Server::start(options, site.clone()).unwrap(),
            _site: site,
            folder,
        }
    }

    fn latched(&self, topic: &str, schema: &Schema, yaml: &str) -> Publisher {
        let options = PublisherOptions::default().with_history(1);
        let publisher = self.node.dynamic_publisher_with(topic, schema, options).unwrap();
        publisher
            .publish_value(&schema.value_from_yaml(yaml).unwrap())
            .unwrap();
        publisher
    }

    fn client(&self, query: &str, protocols: &[&str], headers: Json, steps: &[Json]) -> Client {
        let url = format!("ws://{}/{query}", self.server.address());
        client(&url, protocols, headers, steps)
    }
}

fn client(url: &str, protocols: &[&str], headers: Json, steps: &[Json]) -> Client {
    let options = json!({ "protocols": protocols, "headers": headers });
    let mut command = Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foxglove/client.py"));
    command
        .args([url, &options.to_string()])
        .args(steps.iter().map(Json::to_string));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Client { child, lines }
}

struct Client {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Client {
    /// The result of the next step. The client has a watchdog of its own.
    fn next(&mut self) -> Json {
        let line = self.lines.next().expect("a result").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }

    fn skip(&mut self, n: usize) -> Json {
        (1..n).for_each(|_| drop(self.next()));
        self.next()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hex(bytes: &[u8]) -> Json {
    bytes
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect::<String>()
        .into()
}

fn type_of(flavour: Flavour, name: &str) -> Schema {
    Registry::new(flavour).schema(name).unwrap()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < WATCHDOG, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const SCAN: &str = "{header: {frame_id: laser}, ranges: [1, 2, 3], angle_max: 1.5}";

#[test]
fn topics_are_announced_watched_only_on_request_and_gone_with_their_publisher() {
    let host = Host::new();
    let scan = type_of(Flavour::Ros1, "sensor_msgs/LaserScan");
    let publisher = host.latched("/scan", &scan, SCAN);
    let steps = [
        json!(["op", "serverInfo"]),
        json!(["channel", "/scan"]),
        json!(["wait"]),
        json!(["subscribe", "/scan"]),
        json!(["data", "/scan"]),
        json!(["unsubscribe", "/scan"]),
        json!(["gone", "/scan"]),
    ];
    let mut client = host.client("", &[V1, SDK], json!({}), &steps);
    assert_eq!(client.next(), json!(["HTTP/1.1 101 Switching Protocols", SDK]));
    let info = client.next();
    assert_eq!(info["name"], "ropewalk");
    assert!(!info["capabilities"].as_array().unwrap().contains(&json!("time")));
    let channel = client.next();
    assert_eq!(channel["encoding"], "cdr");
    std::thread::sleep(Duration::from_secs(1));
    assert!(
        !publisher.wait_for_subscribers(1, Duration::ZERO),
        "nobody watches"
    );
    use std::io::Write;
    writeln!(client.child.stdin.as_mut().unwrap()).unwrap();
    client.skip(2);
    let ros2 = scan.in_flavour(Flavour::Ros2).unwrap();
    let value = ros2.value_from_yaml(SCAN).unwrap();
    assert_eq!(client.next(), hex(&ros2.encode_cdr(&value).unwrap()));
    client.next();
    wait_until("the subscription ends", || {
        !publisher.wait_for_subscribers(1, Duration::ZERO)
    });
    drop(publisher);
    assert_eq!(client.next(), json!(true));
}

#[test]
fn each_kind_of_client_gets_the_bytes_and_definitions_that_it_reads() {
    let host = Host::new();
    let image = type_of(Flavour::Ros1, "sensor_msgs/Image");
    let text = format!(
        "{{header: {{frame_id: c}}, height: 1, data: [{}]}}",
        vec!["7"; 5000].join(",")
    );
    let _image = host.latched("/image", &image, &text);
    let info = type_of(Flavour::Ros2, "sensor_msgs/CameraInfo");
    let _info = host.latched("/info", &info, "{header: {frame_id: c}, d: [1, 2]}");
    for (protocols, flavour, names) in [
        (
            [V1].as_slice(),
            Flavour::Ros1,
            ["ros1", "ros1msg", "sensor_msgs/Image", "sensor_msgs/CameraInfo"],
        ),
        (
            &[SDK],
            Flavour::Ros2,
            [
                "cdr",
                "ros2msg",
                "sensor_msgs/msg/Image",
                "sensor_msgs/msg/CameraInfo",
            ],
        ),
    ] {
        let steps = ["/image", "/info"].map(|topic| {
            [
                json!(["channel", topic]),
                json!(["subscribe", topic]),
                json!(["data", topic]),
            ]
        });
        let mut client = host.client("", protocols, json!({}), &steps.concat());
        assert_eq!(client.next()[1], protocols[0]);
        for (of, yaml, name) in [
            (&image, text.as_str(), names[2]),
            (&info, "{header: {frame_id: c}, d: [1, 2]}", names[3]),
        ] {
            let channel = client.next();
            assert_eq!(channel["encoding"], names[0]);
            assert_eq!(channel["schemaEncoding"], names[1]);
            assert_eq!(channel["schemaName"], name);
            // The definition alone must be enough to read the bytes.
            let mut registry = Registry::new(flavour);
            let definition = channel["schema"].as_str().unwrap();
            registry.add_embedded(name, definition).unwrap();
            let read = registry.schema(name).unwrap();
            assert_eq!(read.md5(), of.in_flavour(flavour).unwrap().md5());
            let value = of.value_from_yaml(yaml).unwrap().to_json(schema::Show::ALL);
            let mut value = value.clone();
            if flavour == Flavour::Ros1 && value["d"].is_array() {
                // ROS 1 writes these names in upper case.
                value = json!({ "header": { "frame_id": "c" }, "D": [1, 2] });
            } else if flavour == Flavour::Ros2 && value["header"]["seq"].is_number() {
                value["header"].as_object_mut().unwrap().remove("seq");
                value["header"]["stamp"] = json!({ "sec": 0, "nanosec": 0 });
            }
            let value = read.value_from_json(&value).unwrap();
            let bytes = match flavour {
                Flavour::Ros1 => read.encode_ros1(&value).unwrap(),
                Flavour::Ros2 => read.encode_cdr(&value).unwrap(),
            };
            client.next();
            assert_eq!(client.next(), hex(&bytes), "{name}");
        }
    }
}

#[test]
fn clients_publish_what_is_allowed_in_each_encoding() {
    let host = Host::with(
        |options| options.allow_publish = vec!["/cmd/*".into()],
        |access| access,
    );
    let twist = type_of(Flavour::Ros1, "geometry_msgs/Twist");
    let subscriber = host.node.dynamic_subscriber("/cmd/vel", &twist).unwrap();
    let value = twist.value_from_yaml("{linear: {x: 0.5}}").unwrap();
    let (ros1, cdr) = (
        twist.encode_ros1(&value).unwrap(),
        twist.encode_cdr(&value).unwrap(),
    );
    let json_text = br#"{"linear": {"x": 0.5, "y": 0, "z": 0}, "angular": {"x": 0, "y": 0, "z": 0}}"#;
    for (encoding, payload) in [("json", &json_text[..]), ("ros1", &ros1), ("cdr", &cdr)] {
        let advertise = |topic: &str| {
            json!(["send", { "op": "advertise", "channels":
                [{ "id": 3, "topic": topic, "encoding": encoding, "schemaName": "geometry_msgs/Twist" }] }])
        };
        let publish = hex(&[&[1, 3, 0, 0, 0], payload].concat());
        let steps = [
            advertise("/never/published"),
            advertise("/other"),
            json!(["bytes", publish]),
            json!(["op", "status"]),
            advertise("/cmd/vel"),
            json!(["wait"]),
            json!(["bytes", publish]),
            json!(["bytes", "0109000000"]),
            json!(["op", "status"]),
            json!(["wait"]),
        ];
        let mut client = host.client("", &[V1], json!({}), &steps);
        let refused = client.skip(5);
        assert!(
            refused["message"]
                .as_str()
                .unwrap()
                .contains("--allow-publish /other"),
            "{refused}"
        );
        client.next();
        assert!(subscriber.wait_for_publishers(1, WATCHDOG), "{encoding}");
        use std::io::Write;
        writeln!(client.child.stdin.as_mut().unwrap()).unwrap();
        let message = subscriber.take_timeout(WATCHDOG).unwrap().expect(encoding);
        assert_eq!(message.ros1().unwrap(), ros1, "{encoding}");
        let refused = client.skip(4);
        assert!(
            refused["message"].as_str().unwrap().contains("not advertised"),
            "{refused}"
        );
        drop(client);
        wait_until("its publisher ends", || subscriber.stats().publishers.is_empty());
    }
}

#[test]
fn a_client_advertises_a_bounded_number_of_topics() {
    let host = Host::with(
        |options| options.allow_publish = vec!["/a".into()],
        |access| access,
    );
    let channels: Vec<_> = (0..65)
        .map(|id| json!({ "id": id, "topic": format!("/{}", "b".repeat(1000)), "encoding": "json", "schemaName": "std_msgs/Empty" }))
        .collect();
    let steps = [
        json!(["send", { "op": "advertise", "channels": channels }]),
        json!(["op", "status"]),
        json!(["bytes", hex(&[1, 7, 0, 0, 0])]),
        json!(["op", "status"]),
    ];
    let mut client = host.client("", &[V1], json!({}), &steps);
    let refused = client.skip(3);
    assert!(
        refused["message"].as_str().unwrap().contains("at most 64"),
        "{refused}"
    );
    let refused = client.skip(2);
    assert_eq!(refused["message"].as_str().unwrap().len(), 512, "{refused}");
}

#[test]
fn services_parameters_graph_and_assets_are_served() {
    let host = Host::new();
    let package = host.folder.path().join("share/arm");
    std::fs::create_dir_all(&package).unwrap();
    std::fs::write(package.join("a.urdf"), "<robot/>").unwrap();
    let trigger = Registry::new(Flavour::Ros1).service("std_srvs/SetBool").unwrap();
    let answers = trigger.response().clone();
    let _service = host
        .node
        .dynamic_service("/lamp", &trigger, move |request| {
            let on = request.ros1().map_err(|e| e.to_string())? == [1];
            let text = format!("{{success: {on}, message: lit}}");
            answers.value_from_yaml(&text).map_err(|e| e.to_string())
        })
        .unwrap();
    let mut registry = Registry::new(Flavour::Ros1);
    registry
        .add_service("ropewalk_link/State", "---\nstring json")
        .unwrap();
    registry
        .add_service(
            "ropewalk_link/SetTopic",
            "string topic\nstring peer\nstring[] changes\n---\nstring[] now",
        )
        .unwrap();
    let (state, set) = (
        registry.service("ropewalk_link/State").unwrap(),
        registry.service("ropewalk_link/SetTopic").unwrap(),
    );
    let priority = Arc::new(std::sync::atomic::AtomicU64::new(5));
    let (answers, of_state) = (state.response().clone(), priority.clone());
    let _state = host.node.dynamic_service("/link/base/state", &state, move |_| {
        let now = of_state.load(std::sync::atomic::Ordering::Relaxed);
        let text = json!({ "sent": [{ "name": "/scan", "source": "robot", "priority": now }] }).to_string();
        answers
            .value_from_json(&json!({ "json": text }))
            .map_err(|e| e.to_string())
    });
    let (answers, of_set) = (set.response().clone(), priority.clone());
    let _set = host.node.dynamic_service("/link/base/set", &set, move |request| {
        let request = request
            .value()
            .map_err(|e| e.to_string())?
            .to_json(schema::Show::ALL);
        if request["topic"] != "/scan" || request["changes"] != json!(["priority=9"]) {
            return Err(format!("not this: {request}"));
        }
        of_set.store(9, std::sync::atomic::Ordering::Relaxed);
        answers
            .value_from_json(&json!({ "now": [] }))
            .map_err(|e| e.to_string())
    });
    let name = "/link/base/topics/scan/priority";
    let parameters = |value: i32| json!(["send", { "op": "setParameters", "id": "2", "parameters": [{ "name": name, "value": value }] }]);
    let steps = [
        json!(["call", "/lamp", "ros1", "01"]),
        json!(["binary"]),
        json!(["call", "/lamp", "json", hex(br#"{"data": true}"#)]),
        json!(["binary"]),
        json!(["call", "/lamp", "ros1", "0102"]),
        json!(["op", "serviceCallFailure"]),
        json!(["send", { "op": "getParameters", "parameterNames": [name], "id": "1" }]),
        json!(["op", "parameterValues"]),
        json!(["send", { "op": "subscribeParameterUpdates", "parameterNames": [name] }]),
        parameters(9),
        json!(["op", "parameterValues"]),
        json!(["op", "parameterValues"]),
        parameters(200),
        json!(["op", "status"]),
        json!(["send", { "op": "subscribeConnectionGraph" }]),
        json!(["op", "connectionGraphUpdate"]),
        json!(["send", { "op": "fetchAsset", "uri": "package://arm/a.urdf", "requestId": 5 }]),
        json!(["binary"]),
        json!(["send", { "op": "fetchAsset", "uri": "package://arm/../../bus", "requestId": 6 }]),
        json!(["binary"]),
    ];
    // `call` waits for the service; the link's must be there, too.
    wait_until("all are on the bus", || host.node.services().unwrap().len() == 3);
    std::thread::sleep(Duration::from_secs(1));
    let mut client = host.client("", &[V1], json!({}), &steps);
    let lit = client.skip(3);
    let lit = lit.as_str().unwrap();
    assert!(
        lit.starts_with("03") && lit.ends_with("726f733101030000006c6974"),
        "{lit}"
    );
    let lit = client.skip(2);
    let text = hex(br#"{"message":"lit","success":true}"#);
    assert!(lit.as_str().unwrap().ends_with(text.as_str().unwrap()), "{lit}");
    assert_eq!(client.skip(2)["callId"], 7);
    assert_eq!(
        client.skip(2)["parameters"],
        json!([{ "name": name, "value": 5 }])
    );
    assert_eq!(client.skip(3)["id"], "2");
    assert_eq!(client.next()["parameters"], json!([{ "name": name, "value": 9 }]));
    assert!(client.skip(2)["message"].as_str().unwrap().contains("not this"));
    let graph = client.skip(2);
    assert!(
        graph["advertisedServices"].to_string().contains("/lamp"),
        "{graph}"
    );
    assert_eq!(client.skip(2), hex(b"\x04\x05\0\0\0\0\0\0\0\0<robot/>"));
    assert!(client.skip(2).as_str().unwrap().starts_with("040600000001"));
}

#[test]
fn roles_limit_what_a_client_may_do() {
    let (view, drive) = ("v".repeat(16), "d".repeat(16));
    let access = |access: Access| {
        access
            .with_token(Token::new(Role::View, &view).unwrap())
            .with_token(Token::new(Role::Drive, &drive).unwrap())
    };
    let host = Host::with(|options| options.allow_publish = vec!["/*".into()], access);
    let channels =
        json!([{ "id": 3, "topic": "/cmd_vel", "encoding": "json", "schemaName": "geometry_msgs/Twist" }]);
    let steps = [
        json!(["op", "serverInfo"]),
        json!(["send", { "op": "advertise", "channels": channels }]),
        json!(["op", "status"]),
        json!(["send", { "op": "setParameters", "parameters": [{ "name": "/link/a/topics/b/priority", "value": 1 }] }]),
        json!(["op", "status"]),
        json!(["bytes", "02010000000700000004000000726f7331"]),
        json!(["op", "serviceCallFailure"]),
    ];
    let mut client = host.client(&format!("?token={view}"), &[V1], json!({}), &steps);
    let info = client.skip(2);
    let capable = |info: &Json, what: &str| info["capabilities"].as_array().unwrap().contains(&json!(what));
    assert!(
        !capable(&info, "clientPublish") && !capable(&info, "services"),
        "{info}"
    );
    for (step, role) in [(2, "drive"), (2, "operate"), (2, "drive")] {
        let refused = client.skip(step);
        assert!(refused["message"].as_str().unwrap().contains(role), "{refused}");
    }
    let query = format!("?token={drive}");
    let mut client = host.client(&query, &[V1], json!({}), &[json!(["op", "serverInfo"])]);
    assert!(capable(&client.skip(2), "clientPublish"));
    for (query, headers) in [
        ("", json!({})),
        ("?token=wrong", json!({})),
        (query.as_str(), json!({ "Origin": "https://evil.example" })),
        (query.as_str(), json!({ "Host": "evil.example" })),
    ] {
        let mut client = host.client(query, &[V1], headers.clone(), &[]);
        assert_eq!(client.next()[0], "HTTP/1.1 403 Forbidden", "{query} {headers}");
    }
    let mut client = host.client(&query, &["nonsense"], json!({}), &[]);
    assert_eq!(client.next()[0], "HTTP/1.1 400 Bad Request");
}

#[test]
fn malformed_messages_get_a_line_and_the_connection_goes_on() {
    let host = Host::new();
    let deep = format!("{{\"op\": {}1{}}}", "[".repeat(1000), "]".repeat(1000));
    let mut steps = vec![
        json!(["send", { "op": "nonsense" }]),
        json!(["op", "status"]),
        json!(["send", { "op": "subscribe", "subscriptions": [{ "id": 1, "channelId": 999 }] }]),
        json!(["op", "status"]),
        json!(["bytes", "ff"]),
        json!(["op", "status"]),
        json!([
            "send",
            serde_json::from_str::<Json>(&deep).unwrap_or(json!({ "op": "subscribe" }))
        ]),
        json!(["op", "status"]),
    ];
    let many: Vec<Json> = (0..300).map(|n| json!({ "id": n, "channelId": 1 })).collect();
    steps.push(json!(["send", { "op": "subscribe", "subscriptions": many }]));
    steps.push(json!(["op", "status"]));
    let mut client = host.client("", &[V1], json!({}), &steps);
    client.next();
    for _ in 0..5 {
        let line = client.skip(2);
        assert_eq!(line["message"].as_str().unwrap().lines().count(), 1, "{line}");
    }
}
