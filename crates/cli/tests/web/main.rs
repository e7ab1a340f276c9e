//! The page of `ropewalk web` in a real Chromium: it shows the data of `top --json` and the published messages, and refuses
//! clients without permission.
// Tests print only their own text.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods)]

mod browser;
mod drive;
mod h264;
mod looks;
mod map;
mod record;
mod stages;
#[allow(dead_code)]
#[path = "../all/support.rs"]
mod support;
mod video;

use browser::{Browser, Page};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use support::{Host, Running, address, eventually};

const DESK: (u32, u32) = (1440, 900);
const PHONE: (u32, u32) = (390, 844);
/// Red, green, blue, and a grey, twice; then the same backwards.
const PIXELS: [u8; 24] = [
    255, 0, 0, 0, 255, 0, 0, 0, 255, 90, 91, 92, 90, 91, 92, 0, 0, 255, 0, 255, 0, 255, 0, 0,
];

/// A robot and a base joined by links, with publishers on the robot.
struct Pair {
    robot: Host,
    base: Host,
    running: Vec<Running>,
}

/// `ropewalk web` of a host.
struct Web {
    child: Child,
    port: u16,
}

fn config(host: &Host, own: (&str, &str), peer: (&str, &str), topics: &str) {
    let text = format!(
        "host: {}\nradio: {{bind: '{}', rate: 6Mbit/s}}\npeers:\n  - {{name: {}, address: '{}'}}\n{topics}",
        own.0, own.1, peer.0, peer.1
    );
    std::fs::write(host.path("link.yaml"), text).expect("writes");
}

impl Pair {
    fn new() -> Pair {
        let (robot, base) = (Host::new(), Host::new());
        let (a, b) = (address(), address());
        let topics = |direction: &str| {
            let one = |name: &str, priority: u8| {
                format!("  - {{name: {name}, direction: {direction}, priority: {priority}}}\n")
            };
            format!(
                "topics:\n{}{}{}",
                one("/counted", 20),
                one("/scan", 100),
                one("/camera/image", 10)
            )
        };
        config(&robot, ("robot", &a), ("base", &b), &topics("out"));
        let taken = topics("in")
            .replace(", priority: 20", "")
            .replace(", priority: 100", "");
        config(
            &base,
            ("base", &b),
            ("robot", &a),
            &taken.replace(", priority: 10", ""),
        );
        let mut pair = Pair {
            robot,
            base,
            running: Vec::new(),
        };
        let ranges: Vec<String> = (0..90)
            .map(|i| format!("{:.1}", 1.0 + f64::from(i % 30) / 10.0))
            .collect();
        let scan = format!(
            "{{header: {{frame_id: laser}}, angle_min: -1.5, angle_max: 1.5, angle_increment: 0.034, range_max: 3.0, ranges: [{}]}}",
            ranges.join(", ")
        );
        pair.publish("/scan", "sensor_msgs/LaserScan", &scan, "20");
        let image = format!(
            "{{header: {{stamp: now}}, height: 2, width: 4, encoding: rgb8, step: 12, data: {PIXELS:?}}}"
        );
        pair.publish("/camera/image", "sensor_msgs/Image", &image, "10");
        pair.running.push(pair.robot.start(&["link", "link.yaml"]));
        pair.running.push(pair.base.start(&["link", "link.yaml"]));
        let echo = pair
            .base
            .run(&["topic", "echo", "/scan", "-n", "3", "--wait", "60"]);
        assert_eq!(echo.code, 0, "{echo:?}");
        pair
    }

    /// A simulated drive, and a link that is too slow for all of it.
    fn driving(seconds: f64) -> Pair {
        let (robot, base) = (Host::new(), Host::new());
        let (a, b) = (address(), address());
        let names = [("/scan", 100), ("/tf", 95), ("/camera/image/compressed", 10)];
        let topics = |direction: &str| {
            let one = |(name, priority): &(&str, u8)| match direction {
                "out" => format!("  - {{name: {name}, direction: out, priority: {priority}}}\n"),
                _ => format!("  - {{name: {name}, direction: in}}\n"),
            };
            names.iter().map(one).collect::<String>()
        };
        let text = |direction: &str| format!("topics:\n{}", topics(direction));
        config(&robot, ("rover", &a), ("base", &b), &text("out"));
        config(&base, ("base", &b), ("rover", &a), &text("in"));
        let drive = robot.path("drive.mcap");
        recording::simulation::write(&drive, seconds, 1, &recording::write::Options::default())
            .expect("writes");
        let running = vec![
            robot.start(&["link", "link.yaml"]),
            base.start(&["link", "link.yaml"]),
            robot.start(&["play", "drive.mcap", "--loop"]),
        ];
        Pair { robot, base, running }
    }

    fn publish(&mut self, topic: &str, kind: &str, yaml: &str, rate: &str) {
        let args = ["topic", "pub", topic, kind, yaml, "--rate", rate];
        let mut command = self.robot.command(&args);
        // Nobody reads what it says.
        command.stdin(Stdio::null());
        self.running.push(Running::spawn(command));
    }

    /// Publishes 40 messages on `/counted` and waits until their fate is known.
    fn count(&mut self) {
        let publish = [
            "topic",
            "pub",
            "/counted",
            "std_msgs/String",
            "data: x",
            "--rate",
            "40",
            "-t",
            "40",
        ];
        let done = self.robot.run(&publish);
        assert_eq!(done.code, 0, "{done:?}");
    }

    /// The newest line of `top --json` of the robot.
    fn top(&self) -> Value {
        let done = self.robot.run(&["top", "--json", "-n", "1", "--every", "1"]);
        assert_eq!(done.code, 0, "{done:?}");
        serde_json::from_str(done.stdout.lines().next_back().expect("a line")).expect("JSON")
    }
}

fn topic<'a>(top: &'a Value, name: &str) -> &'a Value {
    let all = top["topics"].as_array().expect("topics");
    all.iter().find(|t| t["topic"] == name).unwrap_or(&Value::Null)
}

impl Web {
    fn start(host: &Host, more: &[&str]) -> Web {
        Web::of(host.command(&[&["web", "--port", "0"], more].concat()))
    }

    /// Starts a command that shows the page, and waits until it prints the address.
    fn of(mut command: Command) -> Web {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line.strip_prefix("open http://localhost:")?.to_owned();
            Some(address)
        });
        // A full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.expect("an address");
        let port = address.split('/').next().and_then(|p| p.parse().ok());
        Web {
            child,
            port: port.unwrap_or_else(|| panic!("{address}")),
        }
    }

    fn url(&self) -> String {
        format!("http://localhost:{}/", self.port)
    }

    /// The first line of the answer to a request, and the last.
    fn request(&self, target: &str, headers: &str) -> (String, String) {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        write!(socket, "GET {target} HTTP/1.1\r\n{headers}\r\n").expect("writes");
        let mut lines = BufReader::new(&mut socket);
        let mut first = String::new();
        lines.read_line(&mut first).expect("a line");
        if first.contains(" 101 ") {
            return (first, String::new());
        }
        let mut rest = String::new();
        lines.read_to_string(&mut rest).expect("text");
        (
            first,
            rest.trim_end().lines().next_back().unwrap_or_default().to_owned(),
        )
    }

    fn upgrade(&self, protocol: &str, target: &str, headers: &str) -> (String, String) {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let upgrade = format!(
            "{headers}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: {protocol}\r\n"
        );
        self.request(target, &upgrade)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The row of a topic as the page shows it, by the head of its column.
fn row(page: &mut Page, name: &str) -> Value {
    page.evaluate(&format!(
        "(() => {{
            const table = document.getElementById('topics-table');
            const heads = [...table.tHead.rows[0].cells].map((c) => c.textContent);
            const row = [...table.tBodies[0].rows].find((r) => r.querySelector('.name')?.textContent === '{name}');
            return row && Object.fromEntries([...row.cells].map((c, i) => [heads[i], c.querySelector('output')?.textContent ?? c.textContent]));
        }})()"
    ))
}

/// Opens or closes the losses of a topic, and returns what they say.
fn losses(page: &mut Page, name: &str) -> String {
    let text = page.evaluate(&format!(
        "(() => {{
            const row = [...document.querySelectorAll('#topics-table tr[data-id]')].find((r) => r.querySelector('.name').textContent === '{name}');
            if (!row.classList.contains('chosen')) row.querySelector('.name').click();
            return document.querySelector('tr.detail').textContent;
        }})()"
    ));
    text.as_str().expect("text").to_owned()
}

fn press(page: &mut Page, what: &str) {
    page.evaluate(&format!(
        "document.querySelector('[aria-label^=\"{what}\"]').click()"
    ));
}

#[test]
fn a_link_and_the_demo_show_the_page_beside_themselves() {
    let host = Host::new();
    let (own, other) = (address(), address());
    config(&host, ("robot", &own), ("base", &other), "");
    let link = Web::of(host.command(&["link", "link.yaml", "--web=0"]));
    assert_eq!(link.request("/role", "Host: localhost\r\n").1, "drive");
    let demo = Web::of(host.command(&["demo", "--web=0", "--only", "priority"]));
    assert!(demo.request("/", "Host: localhost\r\n").0.contains(" 200 "));
}

#[test]
fn the_page_shows_the_numbers_of_top_and_of_publishers_and_changes_priorities() {
    let mut pair = Pair::new();
    let web = Web::start(&pair.robot, &[]);
    let Some(mut browser) = Browser::start(&pair.robot.path("t")) else {
        return;
    };
    pair.count();
    let settled = eventually("the fate of all messages is known", || {
        let top = pair.top();
        let counted = topic(&top, "/counted");
        (counted["offered"] == 40 && counted["in_flight"] == 0).then(|| counted.clone())
    });
    let mut page = browser.open(&web.url(), DESK);

    // A topic at rest: the numbers are equal. One that flows: the rates are alike.
    page.wait("document.querySelector('#status').textContent.startsWith('up')");
    page.wait("document.querySelectorAll('#topics-table tr[data-id]').length === 3");
    let reported = losses(&mut page, "/counted");
    let lost: u64 = settled["drops"]
        .as_object()
        .expect("drops")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    let sum = format!(
        "offered {} = delivered {} + lost {lost} + in flight 0",
        settled["offered"], settled["delivered"]
    );
    assert!(reported.contains(&sum), "{reported} instead of {sum}");
    let share = settled["delivery"].as_f64().expect("a share") * 100.0;
    assert!(
        reported.contains(&format!("{share:.1} % delivered")),
        "{reported}"
    );
    for (reason, n) in settled["drops"].as_object().expect("drops") {
        assert!(
            reported.contains(&format!("{} {n}", reason.replace('_', " "))),
            "{reported}"
        );
    }
    let counted = row(&mut page, "/counted");
    assert_eq!(counted["priority"], "20");
    assert_eq!(counted["lost/s"], "–");
    eventually("the page shows the rates of top", || {
        let (top, shown) = (pair.top(), row(&mut page, "/scan"));
        let text = shown["offered → through, Hz"].as_str()?.to_owned();
        let (offered, sent) = text.split_once(" → ")?;
        let (offered, sent): (f64, f64) = (offered.parse().ok()?, sent.parse().ok()?);
        let of_top = topic(&top, "/scan");
        let alike = |shown: f64, field: &str| (shown - of_top[field].as_f64().unwrap_or(-1.0)).abs() <= 2.0;
        (alike(offered, "offered_hz") && alike(sent, "sent_hz")).then_some(())
    });
    let top = pair.top();
    let peers = page.evaluate("document.querySelector('#peers-table tbody').textContent");
    assert!(peers.as_str().expect("text").starts_with("baseup"), "{peers}");
    let rate = format!(
        "{:.2} set",
        top["peers"][0]["rate_mbit_s"].as_f64().expect("a rate")
    );
    assert!(peers.as_str().expect("text").contains(&rate), "{peers}");

    // The camera's pixels are those that were sent, and the scan has all points in range.
    page.wait("document.getElementById('camera-picture').dataset.stamp");
    let pixels = page.evaluate(
        "[...document.getElementById('camera-picture').getContext('2d').getImageData(0, 0, 4, 2).data].filter((_, i) => i % 4 < 3)",
    );
    assert_eq!(pixels, json!(PIXELS));
    let size = page.evaluate(
        "[document.getElementById('camera-picture').width, document.getElementById('camera-picture').height]",
    );
    assert_eq!(size, json!([4, 2]));
    // 21 of each 30 ranges are at most 3 m.
    page.wait("document.getElementById('scan-picture').dataset.points === '63'");

    // One step up, and back.
    press(&mut page, "Raise the priority of /scan to 101");
    eventually("the link has the priority", || {
        (topic(&pair.top(), "/scan")["priority"] == 101).then_some(())
    });
    page.wait("document.querySelector('#journal-list').textContent.includes('/scan → base: priority 100 → 101 (drive at 127.0.0.1)')");
    assert_eq!(row(&mut page, "/scan")["priority"], "101");
    page.evaluate("document.querySelector('#undo button').click()");
    eventually("the link has the old priority", || {
        (topic(&pair.top(), "/scan")["priority"] == 100).then_some(())
    });
    page.wait("document.querySelector('#journal-list').textContent.includes('priority 101 → 100')");
    // By the keyboard, and undone in the journal.
    let key = |key: &str| {
        format!(
            "[...document.querySelectorAll('.name')].find((n) => n.textContent === '/scan').dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"
        )
    };
    page.evaluate(&key("-"));
    page.wait("document.querySelector('#journal-list').textContent.includes('priority 100 → 99')");
    press(&mut page, "Undo: priority of /scan back to 100");
    page.wait("document.querySelector('#journal-list').textContent.includes('priority 99 → 100')");

    // On a phone nothing is wider than the screen.
    let mut page = browser.open(&web.url(), PHONE);
    page.wait("document.querySelectorAll('#topics-table tr[data-id]').length === 3");
    for tab in ["look", "topics", "air", "journal", "peers"] {
        page.evaluate(&format!("document.querySelector('nav [data-tab={tab}]').click()"));
        let width = page.evaluate("document.documentElement.scrollWidth");
        assert!(width.as_u64() <= Some(390), "{tab}: {width}");
        let cut = page.evaluate("document.getElementById('topics-table').offsetWidth");
        assert!(cut.as_u64() <= Some(390), "{tab}: {cut}");
    }
    assert_eq!(browser.problems(), Vec::<String>::new());

    // A base shows what it receives.
    browser.close_pages();
    drop(web);
    let web = Web::start(&pair.base, &[]);
    let mut page = browser.open(&web.url(), DESK);
    page.wait("document.querySelectorAll('#topics-table tr[data-id]').length >= 2");
    page.wait("document.getElementById('camera-picture').dataset.stamp");
    let may =
        page.evaluate("[...document.querySelectorAll('#topics-table .steps button')].some((b) => !b.hidden)");
    assert_eq!(may, false, "the sender sets the priority");
    stages::are_shown_and_saved(&mut page, &pair.base);
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn a_compressed_picture_passes_through_as_it_is() {
    use base64::Engine;
    let host = Host::new();
    let web = Web::start(&host, &[]);
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    let mut page = browser.open(&web.url(), DESK);
    // Chromium makes the JPEG, and says how it decodes it.
    let made = page.evaluate(
        "(async () => {
            const canvas = new OffscreenCanvas(32, 16);
            const context = canvas.getContext('2d');
            for (let x = 0; x < 32; x++) {
                context.fillStyle = `rgb(${x * 8}, ${255 - x * 5}, ${(x * 37) % 256})`;
                context.fillRect(x, 0, 1, 16);
            }
            const blob = await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.7 });
            const bytes = new Uint8Array(await blob.arrayBuffer());
            const picture = await createImageBitmap(new Blob([bytes]));
            context.drawImage(picture, 0, 0);
            const pixels = context.getImageData(0, 0, 32, 16).data;
            return [btoa(String.fromCharCode(...bytes)), [...pixels]];
        })()",
    );
    let jpeg = base64::engine::general_purpose::STANDARD
        .decode(made[0].as_str().expect("text"))
        .expect("base64");
    let yaml = format!("{{format: jpeg, data: {jpeg:?}}}");
    let publish = [
        "topic",
        "pub",
        "/camera/jpeg",
        "sensor_msgs/CompressedImage",
        &yaml,
        "--rate",
        "10",
    ];
    let _publisher = host.start(&publish);
    page.wait("document.getElementById('camera-picture').dataset.stamp");
    let pixels = page.evaluate(
        "[...document.getElementById('camera-picture').getContext('2d').getImageData(0, 0, 32, 16).data]",
    );
    assert_eq!(pixels, made[1]);
    // Nobody looks: nobody takes it.
    page.evaluate("document.getElementById('camera').hidden = true");
    eventually("the topic is not taken any more", || {
        let info = host.run(&["topic", "info", "/camera/jpeg", "--json"]);
        let info: Value = serde_json::from_str(&info.stdout).ok()?;
        info["topics"][0]["subscribers"]
            .as_array()?
            .is_empty()
            .then_some(())
    });
    // Without a link the page says so, and shows the bus.
    page.wait("document.querySelector('#topics-none').textContent.startsWith('No link runs')");
    page.wait("document.querySelector('#bus-table tbody').textContent.includes('/camera/jpegsensor_msgs/CompressedImage10')");
    assert_eq!(browser.problems(), Vec::<String>::new());
}

#[test]
fn unauthorized_clients_are_refused() {
    let pair = Pair::new();
    let web = Web::start(&pair.robot, &[]);
    let here = format!("Host: localhost:{}\r\n", web.port);
    for protocol in ["ropewalk.page.v1", "foxglove.websocket.v1"] {
        let refused = |headers: &str, word: &str| {
            let (first, line) = web.upgrade(protocol, "/", headers);
            assert!(first.contains(" 403 ") && line.contains(word), "{first} {line}");
        };
        let (first, _) = web.upgrade(protocol, "/", &here);
        assert!(first.contains(" 101 "), "{first}");
        refused(&format!("{here}Origin: https://evil.example\r\n"), "evil.example");
        refused(
            &format!("{here}Origin: https://app.foxglove.dev\r\n"),
            "app.foxglove.dev",
        );
        refused(&format!("{here}Origin: null\r\n"), "null");
        refused("Host: rebound.evil.example\r\n", "rebound.evil.example");
    }
    let (first, _) = web.request("/", "Host: rebound.evil.example\r\n");
    assert!(first.contains(" 403 "), "{first}");
    let (first, _) = web.request("/", &format!("{here}Origin: https://evil.example\r\n"));
    assert!(first.contains(" 403 "), "{first}");

    let (view, operate) = ("v".repeat(20), "o".repeat(20));
    let closed = Web::start(
        &pair.robot,
        &[
            "--token",
            &format!("view={view}"),
            "--token",
            &format!("operate={operate}"),
        ],
    );
    let here = format!("Host: localhost:{}\r\n", closed.port);
    for (target, status) in [
        ("/".to_owned(), " 403 "),
        ("/?token=wrong-wrong-wrong-wrong".to_owned(), " 403 "),
        (format!("/?token={view}"), " 101 "),
    ] {
        let (first, _) = closed.upgrade("ropewalk.page.v1", &target, &here);
        assert!(first.contains(status), "{target}: {first}");
    }
    let (first, line) = closed.request("/role", &here);
    assert!(
        first.contains(" 403 ") && line.contains("token"),
        "{first} {line}"
    );
    let (first, line) = closed.request("/role", &format!("{here}Authorization: Bearer {view}\r\n"));
    assert!(first.contains(" 200 ") && line == "view", "{first} {line}");
    // The page itself holds no secret.
    let (first, _) = closed.request("/", &here);
    assert!(first.contains(" 200 "), "{first}");

    let Some(mut browser) = Browser::start(&pair.robot.path("t")) else {
        return;
    };
    // Another site's page in this machine's browser.
    let mut page = browser.open("about:blank", DESK);
    let opened = page.evaluate(&format!(
        "new Promise((done) => {{
            const socket = new WebSocket('ws://localhost:{}/', 'ropewalk.page.v1');
            socket.onopen = () => done('open');
            socket.onclose = () => done('closed');
        }})",
        web.port
    ));
    assert_eq!(opened, "closed");
    let mut page = browser.open(&closed.url(), DESK);
    page.wait("document.querySelector('#notice').textContent.includes('a token is needed')");
    assert_eq!(
        page.evaluate("document.querySelectorAll('#topics-table tr[data-id]').length"),
        0
    );
    browser.problems();

    // With the role view there are no buttons, and the server would refuse them; the address does not keep the token.
    let mut page = browser.open(&format!("{}#token={view}", closed.url()), DESK);
    page.wait("document.querySelectorAll('#topics-table tr[data-id]').length === 2");
    assert_eq!(page.evaluate("location.href"), closed.url());
    assert_eq!(
        page.evaluate("[...document.querySelectorAll('#topics-table .steps button')].every((b) => b.hidden)"),
        true
    );
    let set = |token: &str| {
        format!(
            "new Promise((done) => {{
                const socket = new WebSocket('ws://' + location.host + '/?token={token}', 'ropewalk.page.v1');
                socket.onopen = () => socket.send(JSON.stringify({{ op: 'set', id: 7, link: 'robot', topic: '/scan', peer: 'base', changes: ['priority=1'] }}));
                socket.onmessage = (event) => {{
                    const answer = JSON.parse(event.data);
                    if (answer.op === 'answer') done(answer);
                }};
            }})"
        )
    };
    let answer = page.evaluate(&set(&view));
    assert_eq!(
        answer,
        json!({ "op": "answer", "id": 7, "error": "changing settings needs a token with the role operate" })
    );
    assert_eq!(topic(&pair.top(), "/scan")["priority"], 100);
    let answer = page.evaluate(&set(&operate));
    assert!(
        answer["now"][0]
            .as_str()
            .is_some_and(|now| now.contains("priority=1 ")),
        "{answer}"
    );
    assert_eq!(topic(&pair.top(), "/scan")["priority"], 1);
    assert_eq!(browser.problems(), Vec::<String>::new());
}
