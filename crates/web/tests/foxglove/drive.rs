//! Driving: by twists of a Foxglove client, and by pages that share a robot.

use super::{Client, Host, V1, hex, type_of, wait_until};
use ropewalk::{BusConfig, Flavour, Node};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use web::drive::{Done, Driver, Fleet, Holder, Outcome, Right, SpeedLimits, Standing, Wish};
use web::page::{Dashboard, DashboardOptions};
use web::{Access, Role, Server, ServerOptions, Token};

const DRIVE: &str = "ropewalk.drive.v1";

/// A rover that records its twists, and obeys the operator who holds the right.
#[derive(Debug, Default)]
struct Rover(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    operators: Vec<String>,
    holder: Option<u64>,
    /// By whom: forward, turn.
    reported: Vec<(u64, f64, f64)>,
}

#[derive(Debug)]
struct Rovers(Arc<Rover>);

struct Operator(Arc<Rover>, u64);

impl Fleet for Rovers {
    fn robots(&self) -> Vec<String> {
        vec!["rover".into()]
    }

    fn join(&self, robot: &str, operator: &str) -> Result<Box<dyn Driver>, String> {
        assert_eq!(robot, "rover");
        let mut state = self.0.0.lock().unwrap();
        state.operators.push(operator.into());
        // As large as those of real robots.
        let id = u64::MAX - state.operators.len() as u64;
        Ok(Box::new(Operator(self.0.clone(), id)))
    }
}

impl Driver for Operator {
    fn standing(&self) -> Standing {
        Standing {
            found: true,
            round_trip: None,
            id: self.1,
        }
    }

    fn right(&self, wish: Wish) -> Result<Right, String> {
        let mut state = self.0.0.lock().unwrap();
        let mine = state.holder == Some(self.1);
        match wish {
            Wish::Know => {}
            Wish::Request if state.holder.is_some() && !mine => return Err("another holds it".into()),
            Wish::Request | Wish::TakeOver => state.holder = Some(self.1),
            Wish::Release if mine => state.holder = None,
            Wish::HandOver(to) if mine => state.holder = Some(to),
            Wish::Release | Wish::HandOver(_) => return Err("it is not yours".into()),
        }
        let holder = state.holder.map(|id| Holder {
            id,
            name: format!("{id}"),
        });
        Ok(Right {
            mine: state.holder == Some(self.1),
            holder,
        })
    }

    fn drive(&self, forward: f64, turn: f64, done: Done) {
        let mut state = self.0.0.lock().unwrap();
        let may = state.holder.is_none_or(|holder| holder == self.1);
        if may {
            state.reported.push((self.1, forward, turn));
        }
        drop(state);
        match may {
            true => done(Outcome::Executed, String::new()),
            false => done(Outcome::Rejected, "another holds it".into()),
        }
    }
}

impl Rover {
    fn last(&self) -> Option<(f64, f64)> {
        let state = self.0.lock().unwrap();
        state.reported.last().map(|(_, forward, turn)| (*forward, *turn))
    }
}

#[test]
fn twists_of_a_foxglove_client_drive_within_the_limits_and_its_end_stops() {
    let rover = Arc::new(Rover::default());
    let fleet = rover.clone();
    let host = Host::with(
        |options| {
            options.drives = vec![("/cmd_vel".into(), "rover".into())];
            options.limits = SpeedLimits {
                speed: 0.5,
                turn: 0.8,
            };
            options.fleet = Some(Arc::new(Rovers(fleet)));
        },
        |access| access,
    );
    let twist = type_of(Flavour::Ros1, "geometry_msgs/Twist");
    let value = twist
        .value_from_yaml("{linear: {x: 0.25}, angular: {z: -7}}")
        .unwrap();
    let json_text = br#"{"linear": {"x": 0.25, "y": 0, "z": 0}, "angular": {"x": 0, "y": 0, "z": -7}}"#;
    let (ros1, cdr) = (
        twist.encode_ros1(&value).unwrap(),
        twist.encode_cdr(&value).unwrap(),
    );
    for (encoding, payload) in [("json", &json_text[..]), ("ros1", &ros1), ("cdr", &cdr)] {
        let advertise = |kind: &str| {
            json!(["send", { "op": "advertise", "channels":
                [{ "id": 3, "topic": "/cmd_vel", "encoding": encoding, "schemaName": kind }] }])
        };
        let steps = [
            advertise("std_msgs/Bool"),
            json!(["op", "status"]),
            advertise("geometry_msgs/Twist"),
            json!(["bytes", hex(&[&[1, 3, 0, 0, 0], payload].concat())]),
            json!(["wait"]),
        ];
        let mut client = host.client("", &[V1], json!({}), &steps);
        let refused = client.skip(3);
        let text = refused["message"].as_str().unwrap();
        assert!(text.contains("geometry_msgs/Twist"), "{text}");
        wait_until(encoding, || rover.last() == Some((0.25, -0.8)));
        drop(client);
        wait_until("it stands", || rover.last() == Some((0.0, 0.0)));
    }
    assert!(
        host.node
            .topics()
            .unwrap()
            .iter()
            .all(|t| t.topic.topic != "/cmd_vel")
    );
    assert_eq!(rover.0.lock().unwrap().operators.len(), 3);
}

/// Pages that drive the same rover.
struct Pages {
    rover: Arc<Rover>,
    server: Server,
    _site: Arc<Dashboard>,
    _folder: tempfile::TempDir,
}

impl Pages {
    fn new(access: Access) -> Pages {
        let folder = tempfile::Builder::new().prefix("rw").tempdir().unwrap();
        let node = Node::with_config("web", BusConfig::new(folder.path().join("bus"))).unwrap();
        let rover = Arc::new(Rover::default());
        let mut options = DashboardOptions::default();
        options.fleet = Some(Arc::new(Rovers(rover.clone())));
        options.limits = SpeedLimits {
            speed: 2.0,
            turn: 4.0,
        };
        let site = Arc::new(Dashboard::start(node, options).unwrap());
        let options = ServerOptions::new("127.0.0.1:0".parse().unwrap(), access);
        Pages {
            rover,
            server: Server::start(options, site.clone()).unwrap(),
            _site: site,
            _folder: folder,
        }
    }

    fn page(&self, query: &str, steps: &[Json]) -> Client {
        super::client(
            &format!("ws://{}/{query}", self.server.address()),
            &[DRIVE],
            json!({}),
            steps,
        )
    }
}

fn go(client: &mut Client) {
    writeln!(client.child.stdin.as_mut().unwrap()).unwrap();
}

#[test]
fn one_of_two_pages_moves_the_robot_and_both_stop_it() {
    let pages = Pages::new(Access::new(&[]).unwrap());
    let send = |message: Json| json!(["send", message]);
    let drive = |n: u64, forward: f64| json!(["send", { "op": "drive", "n": n, "t": n * 50, "forward": forward, "turn": -0.5 }]);
    let join = || send(json!({ "op": "robot", "robot": "rover" }));
    let mut first = pages.page(
        "",
        &[
            json!(["op", "robots"]),
            join(),
            send(json!({ "op": "request" })),
            json!(["until", "robot", { "right": { "mine": true } }]),
            send(json!({ "op": "drive", "n": 0, "t": 0, "forward": 0, "turn": 0 })),
            drive(1, 0.5),
            json!(["until", "outcome", { "n": 1 }]),
            json!(["op", "halted"]),
            json!(["wait"]),
            json!(["op", "halted"]),
            json!(["op", "asked"]),
            json!(["wait"]),
            send(json!({ "op": "hand_over", "to": (u64::MAX - 2).to_string() })),
            json!(["until", "robot", { "right": { "mine": false } }]),
            json!(["wait"]),
        ],
    );
    assert_eq!(first.skip(2)["robots"], json!(["rover"]));
    first.skip(3);
    let done = first.skip(3);
    assert_eq!((&done["n"], &done["outcome"]), (&json!(1), &json!("executed")));
    let halted = first.next();
    let reason = halted["reason"].as_str().unwrap();
    assert!(reason.contains("no message has arrived"), "{reason}");
    let moved = (u64::MAX - 1, 1.0, -2.0);
    assert!(pages.rover.0.lock().unwrap().reported.contains(&moved));

    let mut second = pages.page(
        "",
        &[
            join(),
            send(json!({ "op": "request" })),
            json!(["op", "error"]),
            json!(["until", "robot", { "right": { "mine": false } }]),
            json!(["wait"]),
            send(json!({ "op": "stop", "n": 1 })),
            json!(["op", "outcome"]),
            send(json!({ "op": "ask" })),
            json!(["until", "robot", { "right": { "mine": true } }]),
            json!(["wait"]),
        ],
    );
    // The first connection's line, the steps, and then what is asked for.
    assert_eq!(second.skip(4)["error"], "another holds it");
    second.next();
    go(&mut first);
    go(&mut second);
    let stopped = second.skip(3);
    assert_eq!(
        stopped["outcome"], "executed",
        "through the operator who holds the right"
    );
    let halted = first.skip(2);
    let reason = halted["reason"].as_str().unwrap();
    assert!(reason.contains("pressed STOP"), "although it stood: {reason}");
    wait_until("it stands", || pages.rover.last() == Some((0.0, 0.0)));
    let mut third = pages.page(
        "",
        &[
            send(json!({ "op": "stop_all" })),
            json!(["op", "stopping"]),
            json!(["op", "stopped"]),
        ],
    );
    assert_eq!(third.skip(3)["robots"], json!(["rover"]));
    let stopped = third.next();
    assert_eq!(
        (&stopped["robot"], &stopped["outcome"]),
        (&json!("rover"), &json!("executed")),
        "by a page that drives no robot"
    );
    drop(third);
    let asked = first.next();
    assert_eq!(asked["by"]["id"], (u64::MAX - 2).to_string());
    go(&mut first);
    first.skip(3);
    second.skip(2);
    assert_eq!(pages.rover.0.lock().unwrap().holder, Some(u64::MAX - 2));
    drop(first);
    drop(second);
    wait_until("the right is free once the page has left", || {
        pages.rover.0.lock().unwrap().holder.is_none()
    });
}

#[test]
fn a_page_that_is_silent_or_not_allowed_to_drive_moves_nothing() {
    let (look, steer) = ("a-token-that-looks", "a-token-that-drives");
    let tokens = [
        Token::new(Role::Operate, look).unwrap(),
        Token::new(Role::Drive, steer).unwrap(),
    ];
    let access = tokens
        .into_iter()
        .fold(Access::new(&[]).unwrap(), Access::with_token);
    let pages = Pages::new(access);
    let mut refused = pages.page(&format!("?token={look}"), &[]);
    assert!(refused.next().to_string().contains("403"));
    let mut page = pages.page(
        &format!("?token={steer}"),
        &[
            json!(["send", { "op": "drive", "n": 1, "t": 0, "forward": 1, "turn": 0 }]),
            json!(["op", "error"]),
            json!(["send", { "op": "robot", "robot": "another" }]),
            json!(["op", "error"]),
            json!(["send", { "op": "robot", "robot": "rover" }]),
            json!(["send", { "op": "drive", "n": 1, "t": 0, "forward": 1, "turn": 0 }]),
            json!(["send", { "op": "drive", "n": 1, "t": 0, "forward": 0, "turn": 0 }]),
            json!(["send", { "op": "drive", "n": 2, "t": 0, "forward": 1, "turn": 0 }]),
            json!(["until", "outcome", { "n": 2 }]),
            json!(["op", "halted"]),
            json!(["wait"]),
        ],
    );
    assert_eq!(page.skip(3)["error"], "choose a robot first");
    let error = page.skip(2)["error"].clone();
    assert!(error.as_str().unwrap().contains("no robot"), "{error}");
    assert_eq!(page.skip(5)["outcome"], "executed");
    let halted = page.next();
    assert!(
        halted["reason"]
            .as_str()
            .unwrap()
            .contains("no message has arrived"),
        "{halted}"
    );
    wait_until("it stands", || pages.rover.last() == Some((0.0, 0.0)));
}
