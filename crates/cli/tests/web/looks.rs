//! How the page looks: axe checks it, and the pictures of `docs/guide/web.md` are made by
//! `ROPEWALK_SCREENSHOTS=docs/guide/web cargo test -p ropewalk-cli --test web -- --ignored pictures`.

use super::browser::{Browser, Page};
use super::drive::Rover;
use super::support::{Host, Running};
use super::{DESK, PHONE, Pair, Web, drive, losses, map, press, record, video};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tables are wider than their parts of the page.
const NARROW: (u32, u32) = (900, 700);

fn screenshot(page: &mut Page, folder: &Path, name: &str) {
    use base64::Engine;
    // By then the page knows the server's clock.
    std::thread::sleep(Duration::from_secs(6));
    let shot = page.call(
        "Page.captureScreenshot",
        json!({ "format": "webp", "quality": 80 }),
    );
    let data = shot["data"].as_str().expect("a picture");
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(data)
        .expect("base64");
    std::fs::write(folder.join(name), bytes).expect("writes");
}

#[test]
#[ignore = "needs axe.min.js of npm's axe-core in AXE"]
fn axe_finds_no_violation() {
    let axe = std::env::var_os("AXE").expect("the path of axe.min.js");
    let axe = std::fs::read_to_string(axe).expect("axe");
    let mut pair = Pair::new();
    pair.count();
    for name in ["rover", "arm"] {
        pair.running
            .push(pair.robot.start(&["robot", "sim", "--name", name]));
    }
    std::fs::create_dir(pair.robot.path("recordings")).expect("a folder");
    let web = Web::start(&pair.robot, &["--record", "recordings", "--drive"]);
    video::start(&pair.robot, "/camera/video");
    let mut browser = Browser::start(&pair.robot.path("t")).expect("a browser");
    for (size, theme) in [
        (DESK, "light"),
        (DESK, "dark"),
        (NARROW, "light"),
        (PHONE, "light"),
        (PHONE, "dark"),
    ] {
        let mut page = browser.open(&web.url(), size);
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        page.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        page.wait("document.querySelectorAll('#topics-table tr[data-id]').length === 3");
        losses(&mut page, "/scan");
        press(&mut page, "Raise the priority of /scan");
        // Video with its stages.
        page.evaluate("document.querySelector('nav [data-tab=look]').click()");
        page.wait(
            "[...document.getElementById('camera-topic').options].some((o) => o.value === '/camera/video')",
        );
        map::choose(&mut page, "camera-topic", "/camera/video");
        page.wait("document.getElementById('camera-facts').textContent.includes('h264')");
        page.wait("!document.getElementById('camera-stages').hidden");
        page.evaluate(&format!("{axe}; undefined"));
        let check = |page: &mut Page, tab: &str| {
            page.evaluate(&format!("document.querySelector('nav [data-tab={tab}]').click()"));
            let found = page.evaluate(
                "axe.run().then((r) => r.passes.length < 10 ? 'axe checked nothing' : r.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`))",
            );
            assert_eq!(found, json!([]), "{size:?} {theme} {tab}");
        };
        for tab in ["look", "drive", "air", "journal", "peers"] {
            check(&mut page, tab);
        }
        drive::request(&mut page);
        page.evaluate("document.getElementById('stop-all').click()");
        page.wait("document.getElementById('stop-status').textContent.includes('executed')");
        check(&mut page, "drive");
        record::refused(&mut page);
        check(&mut page, "topics");
        record::start(&mut page);
        check(&mut page, "topics");
        record::stop(&mut page);
        browser.close_pages();
    }
}

#[test]
#[ignore = "makes the pictures of the guide"]
fn pictures_of_the_guide() {
    let folder = std::env::var_os("ROPEWALK_SCREENSHOTS").expect("a folder");
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let pair = Pair::driving(30.0);
    let web = Web::start(&pair.robot, &[]);
    let there = Web::start(&pair.base, &[]);
    let fleet = Fleet::start();
    let mut browser = Browser::start(&pair.robot.path("t")).expect("a browser");
    // For a minute of rates in the plots.
    std::thread::sleep(Duration::from_secs(60));
    for theme in ["light", "dark"] {
        let dark = |page: &mut Page| {
            let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
            page.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        };
        let mut page = browser.open(&web.url(), DESK);
        dark(&mut page);
        page.wait("document.getElementById('camera-picture').dataset.stamp");
        page.wait("document.getElementById('scan-picture').dataset.points");
        losses(&mut page, "/camera/image/compressed");
        screenshot(&mut page, &folder, &format!("desk-{theme}.webp"));
        for (size, name) in [(DESK, "desk"), (PHONE, "phone")] {
            let mut page = browser.open(&fleet.web.url(), size);
            dark(&mut page);
            page.wait("!document.querySelector('[aria-label=\"Drive rover\"]').hidden");
            page.evaluate("document.querySelector('[aria-label=\"Drive rover\"]').click()");
            drive::request(&mut page);
            page.evaluate("scrollTo(0, 0)");
            page.wait("document.getElementById('camera-picture').dataset.stamp");
            screenshot(&mut page, &folder, &format!("{name}-drive-{theme}.webp"));
            browser.close_pages();
        }
        for (web, tab) in [(&web, "topics"), (&there, "look")] {
            let mut page = browser.open(&web.url(), PHONE);
            dark(&mut page);
            page.wait("document.querySelectorAll('#topics-table tr[data-id]').length === 3");
            page.evaluate(&format!("document.querySelector('nav [data-tab={tab}]').click()"));
            if tab == "look" {
                page.wait("document.getElementById('camera-picture').dataset.stamp");
            }
            screenshot(&mut page, &folder, &format!("phone-{tab}-{theme}.webp"));
        }
        browser.close_pages();
    }
}

/// `cargo test -p ropewalk-cli --test web --release -- --ignored --nocapture the_first_view`
#[test]
#[ignore = "prints times"]
fn the_first_view_of_a_new_browser_is_timed() {
    let pair = Pair::driving(30.0);
    let web = Web::start(&pair.robot, &[]);
    let parts = [
        (
            "painted",
            "performance.getEntriesByName('first-contentful-paint').length > 0",
        ),
        (
            "topics",
            "document.querySelectorAll('#topics-table tr[data-id]').length === 3",
        ),
        (
            "picture",
            "document.getElementById('camera-picture').dataset.stamp !== undefined",
        ),
        (
            "scan",
            "document.getElementById('scan-picture').dataset.points !== undefined",
        ),
    ];
    let mut times = vec![Vec::new(); parts.len()];
    // By then the server knows the link.
    std::thread::sleep(Duration::from_secs(5));
    for _ in 0..5 {
        let home = tempfile::tempdir().expect("a folder");
        let mut browser = Browser::start(home.path()).expect("a browser");
        let mut page = browser.open("about:blank", DESK);
        let tests: Vec<String> = parts
            .iter()
            .map(|(name, is)| format!("{name}: () => {is}"))
            .collect();
        let script = format!(
            "window.firstView = {{}};
            const tests = {{ {} }};
            const look = () => {{
                for (const [name, is] of Object.entries(tests)) try {{ if (is()) firstView[name] ??= performance.now(); }} catch {{}}
                requestAnimationFrame(look);
            }};
            look();",
            tests.join(", ")
        );
        page.call(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": script }),
        );
        page.call("Page.navigate", json!({ "url": web.url() }));
        page.wait(&format!("Object.keys(firstView).length === {}", parts.len()));
        for ((name, _), times) in parts.iter().zip(&mut times) {
            let ms = page.evaluate(&format!("firstView.{name}"));
            times.push(ms.as_f64().expect("a time"));
        }
    }
    for ((name, _), times) in parts.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{name}: median {:.0} ms, of {times:.0?}", times[times.len() / 2]);
    }
}

/// A rover behind a link and an arm on the base, both with cameras, and the base's page.
struct Fleet {
    _rover: Rover,
    _running: [Running; 3],
    web: Web,
}

impl Fleet {
    fn start() -> Fleet {
        let rover = Rover::start();
        let play = |host: &Host, seed: u64, camera: &str| {
            recording::simulation::write(
                host.path("drive.mcap"),
                30.0,
                seed,
                &recording::write::Options::default(),
            )
            .expect("writes");
            let camera = format!("/camera/image/compressed:={camera}");
            host.start(&[
                "play",
                "drive.mcap",
                "--loop",
                "--exclude",
                "/tf",
                "--remap",
                &camera,
            ])
        };
        let running = [
            play(&rover.robot, 1, "/camera/image"),
            play(&rover.base, 2, "/arm/camera"),
            rover.base.start(&["robot", "sim", "--name", "arm"]),
        ];
        std::fs::create_dir(rover.base.path("recordings")).expect("a folder");
        let web = Web::start(&rover.base, &["--drive", "--record", "recordings"]);
        Fleet {
            _rover: rover,
            _running: running,
            web,
        }
    }
}
