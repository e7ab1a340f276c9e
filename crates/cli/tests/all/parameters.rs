//! Parameters of a node that serves them as ROS 2 nodes do.

use crate::support::Host;
use ropewalk::{BusConfig, Callback, Flavour, Node, Registry};
use schema::Show;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const SERVICES: [(&str, &str, &str); 4] = [
    (
        "list_parameters",
        "rcl_interfaces/srv/ListParameters",
        "uint64 DEPTH_RECURSIVE=0\nstring[] prefixes\nuint64 depth\n---\nrcl_interfaces/ListParametersResult result\n",
    ),
    (
        "get_parameters",
        "rcl_interfaces/srv/GetParameters",
        "string[] names\n---\nrcl_interfaces/ParameterValue[] values\n",
    ),
    (
        "set_parameters",
        "rcl_interfaces/srv/SetParameters",
        "rcl_interfaces/Parameter[] parameters\n---\nrcl_interfaces/SetParametersResult[] results\n",
    ),
    (
        "describe_parameters",
        "rcl_interfaces/srv/DescribeParameters",
        "string[] names\n---\nrcl_interfaces/ParameterDescriptor[] descriptors\n",
    ),
];

type Parameters = Arc<Mutex<BTreeMap<String, Value>>>;

/// Answers as rclpy does; `fixed` is read-only.
fn answer(service: &str, parameters: &Parameters, request: &Value) -> Value {
    let mut all = parameters.lock().expect("no panic");
    let names = || {
        request["names"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    };
    match service {
        "list_parameters" => json!({ "result": { "names": all.keys().collect::<Vec<_>>() } }),
        "get_parameters" => {
            let value = |name| all.get(name).cloned().unwrap_or_else(|| json!({}));
            json!({ "values": names().map(value).collect::<Vec<_>>() })
        }
        "describe_parameters" => {
            let one = |name: &str| {
                let ty = all.get(name).map_or(json!(0), |value| value["type"].clone());
                json!({ "name": name, "type": ty, "read_only": name == "fixed", "description": "of the test" })
            };
            json!({ "descriptors": names().map(one).collect::<Vec<_>>() })
        }
        _ => {
            let mut results = Vec::new();
            for parameter in request["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap_or_default().to_owned();
                let (value, ty) = (&parameter["value"], &parameter["value"]["type"]);
                let before = all.get(&name).map(|v| v["type"].clone());
                let is_known =
                    name != "fixed" && (before.as_ref() == Some(ty) || ty == 0 && before.is_some());
                let reason = if is_known { "" } else { "not allowed" };
                results.push(json!({ "successful": is_known, "reason": reason }));
                match (is_known, ty == 0) {
                    (true, true) => drop(all.remove(&name)),
                    (true, false) => drop(all.insert(name, value.clone())),
                    _ => {}
                }
            }
            json!({ "results": results })
        }
    }
}

fn serve(node: &Node, name: &str, parameters: &Parameters) -> Vec<Callback> {
    let mut registry = Registry::new(Flavour::Ros2);
    let serve = |(service, ty, text): (&'static str, &str, &str)| {
        registry.add_service(ty, text).expect("a definition");
        let schema = registry.service(ty).expect("a type");
        let (response, parameters) = (schema.response().clone(), parameters.clone());
        let served = node.dynamic_service(&format!("{name}/{service}"), &schema, move |request| {
            let request = request.value().map_err(|e| e.to_string())?.to_json(Show::ALL);
            let answer = answer(service, &parameters, &request);
            response.value_from_json(&answer).map_err(|e| e.to_string())
        });
        served.expect("serves")
    };
    SERVICES.map(serve).into()
}

#[test]
fn parameters_are_listed_read_changed_dumped_and_loaded() {
    let host = Host::new();
    let node = Node::with_config("camera", BusConfig::new(host.path("bus"))).expect("a node");
    let string = Registry::new(Flavour::Ros2)
        .schema("std_msgs/String")
        .expect("a type");
    let publisher = node.dynamic_publisher("/chatter", &string).expect("publishes");
    let parameters: Parameters = Arc::new(Mutex::new(BTreeMap::from([
        ("exposure".into(), json!({ "type": 3, "double_value": 0.5 })),
        ("fixed".into(), json!({ "type": 2, "integer_value": 7 })),
        ("name".into(), json!({ "type": 4, "string_value": "left: \"1\"" })),
        ("on".into(), json!({ "type": 1, "bool_value": true })),
        (
            "roi.size".into(),
            json!({ "type": 7, "integer_array_value": [640, 480] }),
        ),
        (
            "scratch".into(),
            json!({ "type": 9, "string_array_value": ["a", "b"] }),
        ),
    ])));
    let served = serve(&node, "/camera", &parameters);
    let param = |args: &[&str]| {
        let timeout: &[&str] = &["--timeout", "60"];
        host.run(&[&["param"], args, timeout].concat())
    };
    let list = param(&["list", "/camera", "--param-type"]);
    assert_eq!(
        list.stdout,
        "  exposure (type: double)\n  fixed (type: integer)\n  name (type: string)\n  on (type: boolean)\n  roi.size (type: integer array)\n  \
         scratch (type: string array)\n",
        "{list:?}"
    );
    let all = param(&["list"]);
    assert!(all.stdout.starts_with("/camera:\n  exposure\n"), "{all:?}");
    let get = |name: &str| param(&["get", "camera", name, "--hide-type"]).stdout;
    let get_exposure = param(&["get", "/camera", "exposure"]);
    assert_eq!(get_exposure.stdout, "Double value is: 0.5\n", "{get_exposure:?}");
    let get_json = param(&["get", "/camera", "roi.size", "--json"]);
    let parsed: Value = serde_json::from_str(&get_json.stdout).expect("JSON");
    assert_eq!(parsed["value"], json!([640, 480]));
    let described = param(&["describe", "/camera", "fixed"]).stdout;
    assert_eq!(
        described,
        "Parameter name: fixed\n  Type: integer\n  Description: of the test\n  Constraints:\n    Read only: true\n"
    );
    let dump = param(&["dump", "/camera"]).stdout;
    let file = "/camera:\n  ros__parameters:\n    exposure: 0.5\n    fixed: 7\n    name: \"left: \\\"1\\\"\"\n    \"on\": true\n    roi:\n      \
                size: [640, 480]\n    scratch: [\"a\", \"b\"]\n";
    assert_eq!(dump, file);
    std::fs::write(host.path("camera.yaml"), &dump).expect("writes");

    let set = param(&["set", "/camera", "exposure", "-2", "name", "5", "on", "False"]);
    assert_eq!(set.code, 0, "{set:?}");
    assert_eq!(
        (get("exposure"), get("name"), get("on")),
        ("-2.0\n".into(), "\"5\"\n".into(), "false\n".into())
    );
    let refused = param(&["set", "/camera", "fixed", "8"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("not allowed"),
        "{refused:?}"
    );
    let load = param(&["load", "/camera", "camera.yaml"]);
    assert_eq!(load.code, 0, "{load:?}");
    assert!(load.stdout.contains("Parameter fixed is read-only"), "{load:?}");
    assert_eq!(param(&["dump", "/camera"]).stdout, file);
    let other = param(&["load", "/lidar", "camera.yaml"]);
    assert!(other.code == 2 && other.stderr.contains("/camera"), "{other:?}");
    let delete = param(&["delete", "/camera", "scratch"]);
    assert_eq!(
        (delete.code, delete.stdout.contains("scratch")),
        (0, true),
        "{delete:?}"
    );
    let gone = param(&["get", "/camera", "scratch"]);
    assert!(
        gone.code == 2 && gone.stderr.contains("no value for the parameter scratch"),
        "{gone:?}"
    );
    drop(served);
    let nobody = host.run(&["param", "list", "/camera", "--timeout", "0.2"]);
    assert!(
        nobody.code == 2 && nobody.stderr.contains("`ropewalk node list`"),
        "{nobody:?}"
    );
    drop(publisher);
}
