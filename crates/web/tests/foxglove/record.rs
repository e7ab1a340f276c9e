//! Recording from the page: by operators only, one at a time, and to the end of the server.

use super::{Client, wait_until};
use ropewalk::{BusConfig, Node};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use web::page::{Dashboard, DashboardOptions, Progress, Recorder};
use web::{Access, Role, Server, ServerOptions, Token};

const PAGE: &str = "ropewalk.page.v1";
const VIEW: &str = "a-token-that-looks";
const OPERATE: &str = "a-token-that-operates";

/// Counts instead of recording.
#[derive(Debug, Default)]
struct Counter {
    asked: Mutex<Vec<Vec<String>>>,
    reported: Mutex<u64>,
    full: AtomicBool,
    closed: AtomicBool,
}

impl Counter {
    fn reported(&self) -> u64 {
        *self.reported.lock().unwrap()
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.asked.lock().unwrap().clone()
    }
}

#[derive(Debug)]
struct Shared(Arc<Counter>);

impl Recorder for Shared {
    fn record(&self, patterns: &[String], tell: &mut dyn FnMut(Progress) -> bool) -> Result<(), String> {
        let counter = &self.0;
        counter.asked.lock().unwrap().push(patterns.to_vec());
        counter.closed.store(false, Ordering::Relaxed);
        let mut progress = Progress {
            file: "robot.mcap".into(),
            ..Progress::default()
        };
        while tell(progress.clone()) {
            if counter.full.load(Ordering::Relaxed) {
                return Err("the disk is full: delete files".into());
            }
            progress.messages += 1;
            *counter.reported.lock().unwrap() = progress.messages;
            std::thread::sleep(Duration::from_millis(5));
        }
        // A slow disk.
        std::thread::sleep(Duration::from_millis(300));
        progress.messages = 1_000_000;
        tell(progress);
        counter.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

struct Pages {
    counter: Arc<Counter>,
    server: Server,
    site: Arc<Dashboard>,
    _folder: tempfile::TempDir,
}

impl Pages {
    fn new(records: bool) -> Pages {
        let folder = tempfile::Builder::new().prefix("rw").tempdir().unwrap();
        let node = Node::with_config("web", BusConfig::new(folder.path().join("bus"))).unwrap();
        let counter = Arc::new(Counter::default());
        let mut options = DashboardOptions::default();
        if records {
            options.recorder = Some(Arc::new(Shared(counter.clone())));
        }
        let site = Arc::new(Dashboard::start(node, options).unwrap());
        let access = Access::new(&[])
            .unwrap()
            .with_token(Token::new(Role::View, VIEW).unwrap())
            .with_token(Token::new(Role::Operate, OPERATE).unwrap());
        let options = ServerOptions::new("127.0.0.1:0".parse().unwrap(), access);
        Pages {
            counter,
            server: Server::start(options, site.clone()).unwrap(),
            site,
            _folder: folder,
        }
    }

    fn page(&self, token: &str, steps: &[Json]) -> Client {
        let url = format!("ws://{}/?token={token}", self.server.address());
        let mut client = super::client(&url, &[PAGE], json!({}), steps);
        assert_eq!(client.next(), json!(["HTTP/1.1 101 Switching Protocols", PAGE]));
        client
    }

    /// The answers to requests, of a page of its own.
    fn answers(&self, token: &str, requests: &[Json]) -> Vec<Json> {
        let steps = requests
            .iter()
            .flat_map(|request| [json!(["send", request]), json!(["op", "answer"])]);
        let mut page = self.page(token, &steps.collect::<Vec<_>>());
        requests.iter().map(|_| page.skip(2)).collect()
    }

    fn answer(&self, token: &str, request: Json) -> Json {
        self.answers(token, &[request]).remove(0)
    }
}

fn record(topics: Json) -> Json {
    json!({ "op": "record", "id": 1, "topics": topics })
}

fn stop() -> Json {
    json!({ "op": "stop_recording", "id": 2 })
}

fn until(values: Json) -> Json {
    json!(["until", "recording", values])
}

fn go(client: &mut Client) {
    writeln!(client.child.stdin.as_mut().unwrap()).unwrap();
}

#[test]
fn an_operator_starts_a_recording_that_all_see_and_that_another_operator_stops() {
    let pages = Pages::new(true);
    let mut viewer = pages.page(
        VIEW,
        &[
            until(json!({ "runs": false })),
            json!(["op", "hello"]),
            json!(["wait"]),
            until(json!({ "runs": true })),
            json!(["op", "events"]),
            json!(["wait"]),
            until(json!({ "runs": false })),
            json!(["op", "events"]),
        ],
    );
    assert_eq!(viewer.next(), json!({ "op": "recording", "runs": false }));
    assert_eq!(viewer.next()["role"], "view");
    let answer = pages.answer(OPERATE, record(json!(["/scan", "/camera/*"])));
    assert_eq!(answer, json!({ "op": "answer", "id": 1, "now": [] }));
    // Its page has left.
    let before = pages.counter.reported();
    wait_until("the recording goes on", || pages.counter.reported() > before + 10);
    go(&mut viewer);
    let seen = viewer.skip(2);
    assert_eq!(seen["by"], "operate at 127.0.0.1");
    assert_eq!((&seen["stopped_by"], &seen["why"]), (&Json::Null, &Json::Null));
    let started = viewer.next()["events"][0].clone();
    assert_eq!(started["what"], "recording_started");
    assert_eq!(started["topics"], json!(["/scan", "/camera/*"]));
    assert_eq!(started["by"], "operate at 127.0.0.1");

    let answers = pages.answers(OPERATE, &[record(json!([])), stop()]);
    let error = answers[0]["error"].as_str().unwrap();
    assert!(error.contains("operate at 127.0.0.1 already records"), "{error}");
    assert_eq!(answers[1]["now"], json!([]));
    go(&mut viewer);
    let seen = viewer.skip(2);
    assert_eq!(seen["stopped_by"], "operate at 127.0.0.1");
    assert_eq!(
        (&seen["file"], &seen["messages"]),
        (&json!("robot.mcap"), &json!(1_000_000))
    );
    let ended = viewer.next()["events"][0].clone();
    assert_eq!(
        (&ended["what"], &ended["by"]),
        (&json!("recording_ended"), &seen["stopped_by"])
    );
    assert_eq!(
        (&ended["messages"], &ended["why"]),
        (&json!(1_000_000), &Json::Null)
    );
    let answer = pages.answer(OPERATE, stop());
    assert_eq!(answer["error"], "nothing is being recorded");
    assert_eq!(pages.counter.asked(), [["/scan", "/camera/*"]]);
}

#[test]
fn viewers_and_what_names_no_topics_start_nothing() {
    let pages = Pages::new(true);
    for answer in pages.answers(VIEW, &[record(json!([])), stop()]) {
        assert_eq!(answer["error"], "recording needs a token with the role operate");
    }
    let long = format!("/{}", "x".repeat(255));
    for (topics, word) in [
        (json!("/scan"), "at most 16"),
        (Json::Null, "at most 16"),
        (json!(vec!["/scan"; 17]), "at most 16"),
        (json!([7]), "texts"),
        (json!(["x".repeat(1025)]), "texts"),
        (json!(["scan"]), "not a full name"),
        (json!(["/../scan"]), "not a full name"),
        (json!(["/a*"]), "not a full name"),
        (json!(["*"]), "not a full name"),
        (json!([""]), "not a full name"),
        (json!([long]), "not a full name"),
    ] {
        let answer = pages.answer(OPERATE, record(topics.clone()));
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(word), "{topics}: {answer}");
    }
    let answer = pages.answer(OPERATE, json!({ "op": "erase", "id": 1 }));
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .starts_with("known requests are"),
        "{answer}"
    );
    assert!(pages.counter.asked().is_empty());

    let without = Pages::new(false);
    let answer = without.answer(OPERATE, record(json!([])));
    assert!(
        answer["error"].as_str().unwrap().contains("--record FOLDER"),
        "{answer}"
    );
}

#[test]
fn a_recording_that_ends_by_itself_says_why_and_the_next_one_starts() {
    let pages = Pages::new(true);
    pages.counter.full.store(true, Ordering::Relaxed);
    let steps = [
        json!(["send", record(json!([]))]),
        until(json!({ "runs": false, "why": "the disk is full: delete files", "stopped_by": null })),
        json!(["wait"]),
        json!(["send", record(json!([]))]),
        until(json!({ "runs": true, "why": null })),
    ];
    let mut page = pages.page(OPERATE, &steps);
    assert_eq!(page.skip(2)["file"], "robot.mcap");
    pages.counter.full.store(false, Ordering::Relaxed);
    go(&mut page);
    page.skip(3);
    // The state says so as the recorder's thread starts.
    wait_until("it records again", || pages.counter.asked().len() == 2);
    assert_eq!(pages.counter.asked(), [[""; 0], [""; 0]]);
}

#[test]
fn the_end_of_the_server_waits_for_the_file_and_starts_no_other() {
    let pages = Pages::new(true);
    let answer = pages.answer(OPERATE, record(json!([])));
    assert_eq!(answer["now"], json!([]));
    wait_until("it records", || pages.counter.reported() > 0);
    pages.site.end_recording();
    assert!(pages.counter.closed.load(Ordering::Relaxed));
    let answer = pages.answer(OPERATE, record(json!([])));
    assert_eq!(answer["error"], "the server is ending");
    let mut page = pages.page(VIEW, &[until(json!({ "runs": false }))]);
    assert_eq!(page.next()["stopped_by"], "the end of the server");
    // Again, as dropping does.
    pages.site.end_recording();
}
