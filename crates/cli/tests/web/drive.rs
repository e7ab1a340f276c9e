//! Driving a simulated rover from the page, over a link: held keys move the rover, and it stops
//! whatever happens to the page.

use super::browser::{Browser, Page};
use super::map::is_left_alone;
use super::support::{Host, Running, address, eventually};
use super::{DESK, Web};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A rover and its base, joined by links.
pub(crate) struct Rover {
    pub(crate) robot: Host,
    pub(crate) base: Host,
    child: Child,
    reported: Arc<Mutex<Vec<(Instant, Value)>>>,
    links: [Running; 2],
}

fn config(own: (&str, &str), peer: (&str, &str), role: &str) -> String {
    let (allow, from, direction) = match role {
        "serve" => (
            ", allow: {call: ['/rover/remote/*'], subscribe: ['/rover/remote/telemetry/*', /camera/image]}",
            "",
            "out",
        ),
        _ => ("", ", from: robot", "in"),
    };
    let service = |name: &str, priority: u8| {
        format!("  - {{name: /rover/remote/{name}, role: {role}{from}, priority: {priority}}}\n")
    };
    format!(
        "host: {}\nradio: {{bind: '{}', rate: 6Mbit/s}}\npeers:\n  - {{name: {}, address: '{}'{allow}}}\nservices:\n{}{}topics:\n  - {{name: '/rover/remote/telemetry/*', direction: {direction}}}\n  - {{name: /camera/image, direction: {direction}}}\n",
        own.0,
        own.1,
        peer.0,
        peer.1,
        service("command", 110),
        service("request", 60),
    )
}

impl Rover {
    pub(crate) fn start() -> Rover {
        let (robot, base) = (Host::new(), Host::new());
        let (a, b) = (address(), address());
        let write = |host: &Host, text: String| std::fs::write(host.path("link.yaml"), text).expect("writes");
        write(&robot, config(("robot", &a), ("base", &b), "serve"));
        write(&base, config(("base", &b), ("robot", &a), "call"));
        let mut command = robot.command(&["robot", "sim", "--name", "rover", "--json", "--rate", "100"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let reported = Arc::new(Mutex::new(Vec::new()));
        let of_thread = reported.clone();
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("JSON");
                of_thread.lock().expect("no panic").push((Instant::now(), line));
            }
        });
        let links = [
            robot.start(&["link", "link.yaml"]),
            base.start(&["link", "link.yaml"]),
        ];
        Rover {
            robot,
            base,
            child,
            reported,
            links,
        }
    }

    /// Whether it moves, and since when.
    fn moves(&self) -> (bool, Option<Instant>) {
        let reported = self.reported.lock().expect("no panic");
        let mut all = reported.iter().rev();
        let last = all.find_map(|(at, line)| Some((*at, line["moving"].as_bool()?)));
        last.map_or((false, None), |(at, moving)| (moving, Some(at)))
    }

    fn wait(&self, moving: bool, what: &str) -> Instant {
        eventually(what, || match self.moves() {
            (is, at) if is == moving => Some(at.unwrap_or_else(Instant::now)),
            _ => None,
        })
    }

    fn camera(&self) -> Running {
        camera(&self.robot, "/camera/image", 1)
    }
}

/// Publishes pictures of one grey.
fn camera(host: &Host, topic: &str, grey: u8) -> Running {
    let image =
        format!("{{header: {{stamp: now}}, height: 1, width: 1, encoding: mono8, step: 1, data: [{grey}]}}");
    let args = ["topic", "pub", topic, "sensor_msgs/Image", &image, "--rate", "20"];
    let mut command = host.command(&args);
    command.stdin(Stdio::null());
    Running::spawn(command)
}

impl Drop for Rover {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key(page: &mut Page, kind: &str, (key, code): (&str, &str)) {
    page.call(
        "Input.dispatchKeyEvent",
        json!({ "type": kind, "key": key, "code": code }),
    );
}

/// Takes control of the chosen robot, if it is free.
pub(crate) fn request(page: &mut Page) {
    page.wait("!document.getElementById('drive-request').disabled && !document.getElementById('drive-request').hidden");
    page.evaluate("document.getElementById('drive-request').click()");
    page.wait("['ready', 'locked'].includes(document.body.dataset.drive)");
}

/// Holds a key until the rover moves. Where the page shows that it was locked or that it lost control meanwhile, this
/// tries again, as an operator would.
fn drive(page: &mut Page, rover: &Rover, held: (&str, &str)) {
    eventually("it moves", || {
        if page.evaluate("document.body.dataset.drive") == "idle" {
            request(page);
        }
        page.wait("document.body.dataset.drive === 'ready'");
        key(page, "keyDown", held);
        let pressed = Instant::now();
        while pressed.elapsed() < Duration::from_secs(5) {
            if rover.moves().0 {
                return Some(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let state = page.evaluate("document.body.dataset.drive");
        let why = page.evaluate("document.getElementById('drive-why').textContent");
        let reported = why != "" || state == "idle" || state == "locked";
        assert!(
            reported,
            "{state}: the rover stopped, and the page does not say why"
        );
        key(page, "keyUp", held);
        None
    });
}

/// What stops the rover.
type Stop = fn(&mut Page);

const FORWARD: (&str, &str) = ("w", "KeyW");
const LEFT: (&str, &str) = ("a", "KeyA");
const SPACE: (&str, &str) = (" ", "Space");

/// Opens the page, and takes control of the rover. `seen`: the oldest picture with which it may be driven.
fn operator<'a>(browser: &'a mut Browser, web: &Web, seen: &str) -> Page<'a> {
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.body.dataset.drive === 'idle'");
    page.evaluate(&format!(
        "(() => {{ const s = document.getElementById('drive-limit'); s.value = '{seen}'; s.dispatchEvent(new Event('change')); }})()"
    ));
    page.wait("document.getElementById('drive-robot').value === 'rover'");
    request(&mut page);
    page
}

#[test]
fn held_controls_drive_and_everything_else_stops() {
    let rover = Rover::start();
    let web = Web::start(&rover.base, &["--drive"]);
    let Some(mut browser) = Browser::start(&rover.base.path("t")) else {
        return;
    };
    let mut page = operator(&mut browser, &web, "none");
    page.wait(
        r"/rover: robot up · .*telemetry [1-9]\d* messages/.test(document.getElementById('peers-note').textContent)",
    );
    let stops: [(&str, Stop); 4] = [
        ("the key is released", |page| key(page, "keyUp", FORWARD)),
        ("STOP", |page| {
            key(page, "keyDown", SPACE);
            key(page, "keyUp", SPACE);
        }),
        ("the window has no focus", |page| {
            page.evaluate("window.dispatchEvent(new Event('blur'))");
        }),
        ("the page is frozen", |page| {
            page.call("Page.setWebLifecycleState", json!({ "state": "frozen" }));
        }),
    ];
    for (what, stop) in stops {
        drive(&mut page, &rover, FORWARD);
        stop(&mut page);
        rover.wait(false, what);
        if what == "the page is frozen" {
            page.call("Page.setWebLifecycleState", json!({ "state": "active" }));
        }
        // It has to be pressed again.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!rover.moves().0, "after {what}");
        key(&mut page, "keyUp", FORWARD);
    }
    let trips = page.evaluate("window.ropewalkDrive.roundTrips.length");
    assert!(trips.as_u64() > Some(0), "{trips}");
    drop(page);
    let mut problems = browser.problems();
    // A frozen page has no connection.
    problems.retain(|problem| !problem.contains("Back-Forward Cache"));
    assert_eq!(problems, [""; 0]);
}

#[test]
fn robots_are_seen_side_by_side_and_anybody_stops_all() {
    let rover = Rover::start();
    let arm = rover.base.start(&["robot", "sim", "--name", "arm"]);
    let _cameras = [rover.camera(), camera(&rover.base, "/arm/camera", 9)];
    let web = Web::start(&rover.base, &["--drive"]);
    let browsers = (
        Browser::start(&rover.base.path("t")),
        Browser::start(&rover.robot.path("t")),
    );
    let (Some(mut browser), Some(mut other)) = browsers else {
        return;
    };
    let mut onlooker = other.open(&web.url(), DESK);
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.querySelectorAll('#robots-list > li').length === 2");
    page.evaluate("document.getElementById('robots').scrollIntoView()");
    for (name, topic, grey) in [("rover", "/camera/image", 1), ("arm", "/arm/camera", 9)] {
        page.wait(&format!(
            "document.getElementById('robot-{name}-picture').dataset.stamp"
        ));
        let offered = page.evaluate(&format!(
            "[...document.getElementById('robot-{name}-topic').options].map((o) => o.value)"
        ));
        assert_eq!(offered, json!([topic]), "{name}");
        let shown = page.evaluate(&format!(
            "document.getElementById('robot-{name}-picture').getContext('2d').getImageData(0, 0, 1, 1).data[0]"
        ));
        assert_eq!(shown, grey, "{name}");
    }
    let text = |name: &str| format!("document.getElementById('robot-{name}').textContent");
    let telemetry = r"telemetry [1-9]\d* messages\/s$/";
    page.wait(&format!(
        r"/robot up · (round trip [\d.]+ ms · )?{telemetry}.test({})",
        text("rover")
    ));
    page.wait(&format!(
        "/on this host's bus · {telemetry}.test({})",
        text("arm")
    ));

    // One press chooses the robot and its picture.
    page.evaluate(
        "(() => { const s = document.getElementById('drive-limit'); s.value = 'none'; s.dispatchEvent(new Event('change')); })()",
    );
    for (name, topic) in [("arm", "/arm/camera"), ("rover", "/camera/image")] {
        let button = format!("document.querySelector('[aria-label=\"Drive {name}\"]')");
        page.wait(&format!("!{button}.hidden"));
        page.evaluate(&format!("{button}.click()"));
        let chosen =
            page.evaluate("['drive-robot', 'camera-topic'].map((id) => document.getElementById(id).value)");
        assert_eq!(chosen, json!([name, topic]));
    }
    drive(&mut page, &rover, FORWARD);
    onlooker.wait("!document.getElementById('stop-all').hidden && !document.getElementById('stop').hidden");
    onlooker.evaluate("document.getElementById('stop-all').click()");
    rover.wait(false, "STOP for all");
    let reported = "STOP: rover: executed; arm: not driven from this server";
    onlooker.wait(&format!(
        "document.getElementById('stop-status').textContent === '{reported}'"
    ));
    page.wait("document.getElementById('drive-why').textContent.includes('pressed STOP')");
    // It has to be pressed again.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!rover.moves().0, "it does not move while the key is held");
    key(&mut page, "keyUp", FORWARD);
    drop(onlooker);
    other.close_pages();

    // A single robot has the large picture.
    drop(arm);
    page.wait("document.querySelectorAll('#robots-list > li').length === 0");
    page.wait("document.getElementById('robots').hidden && document.getElementById('stop-all').hidden");
    eventually("nobody takes the pictures of the other", || {
        is_left_alone(&rover.base, "/arm/camera")
    });
    drop(page);
    assert_eq!((browser.problems(), other.problems()), (vec![], vec![]));
}

#[test]
fn an_old_picture_locks() {
    let rover = Rover::start();
    let camera = rover.camera();
    let web = Web::start(&rover.base, &["--drive"]);
    let Some(mut browser) = Browser::start(&rover.base.path("t")) else {
        return;
    };
    let mut page = operator(&mut browser, &web, "2000");
    drive(&mut page, &rover, FORWARD);
    drop(camera);
    rover.wait(false, "it stops once the picture is old");
    page.wait("document.body.dataset.drive === 'locked'");
}

/// What takes the page from its operator, and gives it back if that is possible.
struct Loss {
    name: &'static str,
    take: fn(&Rover, &mut Browser),
    give: fn(&Rover, &mut Browser),
}

const LOSSES: [Loss; 4] = [
    Loss {
        name: "the browser is killed",
        take: |_, browser| browser.signal(Signal::KILL),
        give: |_, _| {},
    },
    Loss {
        name: "the tab is hidden",
        take: |_, browser| browser.cover(),
        give: |_, browser| browser.uncover(),
    },
    Loss {
        name: "the browser is stopped",
        take: |_, browser| browser.signal(Signal::STOP),
        give: |_, browser| browser.signal(Signal::CONT),
    },
    Loss {
        name: "the radio is cut",
        take: |rover, _| rover.links[1].pause(),
        give: |rover, _| rover.links[1].signal(Signal::CONT),
    },
];

/// Loses an operator who drives; returns the time until the rover stands.
fn lose(rover: &Rover, web: &Web, loss: &Loss) -> Option<Duration> {
    let home = tempfile::tempdir().expect("a folder");
    let mut browser = Browser::start(home.path())?;
    let mut page = operator(&mut browser, web, "none");
    // It turns: after sixty times forward it would meet a wall.
    drive(&mut page, rover, LEFT);
    std::thread::sleep(Duration::from_millis(200));
    drop(page);
    let lost = Instant::now();
    (loss.take)(rover, &mut browser);
    let stood = rover.wait(false, loss.name);
    // It does not move again by itself.
    (loss.give)(rover, &mut browser);
    std::thread::sleep(Duration::from_millis(500));
    assert!(!rover.moves().0, "after {}", loss.name);
    Some(stood.saturating_duration_since(lost))
}

#[test]
fn the_rover_stands_whatever_happens_to_its_operator() {
    let rover = Rover::start();
    let web = Web::start(&rover.base, &["--drive"]);
    for loss in &LOSSES {
        if lose(&rover, &web, loss).is_none() {
            return;
        }
    }
}

/// `TRIES` sets how often each.
///
/// `cargo test -p ropewalk-cli --test web --release -- --ignored --nocapture a_hundred`
#[test]
#[ignore = "takes ten minutes, and prints times"]
fn a_hundred_operators_are_lost() {
    let tries = std::env::var("TRIES").map_or(100, |n| n.parse().expect("TRIES is a number"));
    let rover = Rover::start();
    let web = Web::start(&rover.base, &["--drive"]);
    for loss in &LOSSES {
        let mut times: Vec<f64> = (0..tries)
            .filter_map(|_| lose(&rover, &web, loss).map(|t| t.as_secs_f64() * 1e3))
            .collect();
        times.sort_by(f64::total_cmp);
        let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!(
            "{}: {} of {tries} stopped; until the stop p50 {p50:.0} ms, p99 {p99:.0} ms, longest {:.0} ms",
            loss.name,
            times.len(),
            times[times.len() - 1]
        );
    }
}
