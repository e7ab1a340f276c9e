//! Recording from the page: what an operator starts there is in a file on the server's host.

use super::browser::{Browser, Page};
use super::support::{Host, Running, address};
use super::{DESK, PHONE, Web, config};
use recording::Recording;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

/// The file that the page names, and the number of messages that it tells.
fn shown(page: &mut Page) -> (String, u64) {
    let facts = page.evaluate("document.getElementById('record-facts').textContent");
    let facts = facts.as_str().expect("text").to_owned();
    let parts: Vec<_> = facts.split(" · ").collect();
    let messages = parts.iter().find_map(|part| part.split_once(" messages of "));
    let messages = messages.and_then(|(n, _)| n.parse().ok());
    (parts[0].to_owned(), messages.unwrap_or_else(|| panic!("{facts}")))
}

/// Topics of a file, which must be whole, and its number of messages.
fn read(file: &Path) -> (BTreeSet<String>, u64) {
    let recording = Recording::open(file).expect("opens");
    assert!(
        recording.is_indexed() && recording.damage().is_none(),
        "not closed"
    );
    let messages = recording.messages().map(|m| m.expect("a message").channel);
    let channels: Vec<_> = messages.collect();
    let topics = channels.iter().map(|id| recording.channel(*id).topic.clone());
    (topics.collect(), channels.len() as u64)
}

fn enter(page: &mut Page) {
    let key = |kind: &str| json!({ "type": kind, "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13 });
    page.call("Input.dispatchKeyEvent", key("keyDown"));
    page.call("Input.dispatchKeyEvent", key("keyUp"));
}

/// Asks for a recording of a topic whose name is refused.
pub(crate) fn refused(page: &mut Page) {
    page.wait("!document.getElementById('record').hidden");
    page.evaluate("document.getElementById('record-topics').value = 'arm'");
    page.evaluate("document.getElementById('record-button').click()");
    page.wait("document.getElementById('record-refused').textContent.includes('is not a full name')");
    page.evaluate("document.getElementById('record-topics').value = ''");
}

/// Starts a recording of all topics.
pub(crate) fn start(page: &mut Page) {
    page.evaluate("document.getElementById('record-button').click()");
    wait_for_messages(page);
}

/// Stops the recording.
pub(crate) fn stop(page: &mut Page) {
    page.evaluate("document.getElementById('record-button').click()");
    page.wait("document.getElementById('record').dataset.state === 'rests'");
}

fn wait_for_messages(page: &mut Page) {
    page.wait("document.getElementById('record').dataset.state === 'runs'");
    page.wait(
        "Number(/(\\d+) messages/.exec(document.getElementById('record-facts').textContent)?.[1]) >= 20",
    );
}

fn journal(page: &mut Page, text: &str) {
    page.wait(&format!(
        "document.getElementById('journal-list').textContent.includes('{text}')"
    ));
}

#[test]
fn a_press_records_the_chosen_topics_and_the_end_of_the_server_closes_the_file() {
    let host = Host::new();
    std::fs::create_dir(host.path("recordings")).expect("a folder");
    let publish = |topic| {
        let args = [
            "topic",
            "pub",
            topic,
            "std_msgs/String",
            "data: x",
            "--rate",
            "50",
        ];
        let mut command = host.command(&args);
        command.stdin(Stdio::null());
        Running::spawn(command)
    };
    let _running = [publish("/arm/state"), publish("/scan")];
    let (view, operate) = ("v".repeat(20), "o".repeat(20));
    let (view_token, operate_token) = (format!("view={view}"), format!("operate={operate}"));
    let mut web = Web::start(
        &host,
        &[
            "--record",
            "recordings",
            "--token",
            &view_token,
            "--token",
            &operate_token,
        ],
    );
    let Some(mut browser) = Browser::start(&host.path("t")) else {
        return;
    };
    // By the keyboard alone.
    let mut page = browser.open(&format!("{}#token={operate}", web.url()), DESK);
    page.wait("!document.getElementById('record').hidden");
    page.evaluate("document.getElementById('record-topics').focus()");
    page.call("Input.insertText", json!({ "text": "arm" }));
    enter(&mut page);
    page.wait("document.getElementById('record-refused').textContent.includes('is not a full name')");
    page.evaluate("document.getElementById('record-topics').value = '/arm/*'");
    enter(&mut page);
    wait_for_messages(&mut page);
    let state = page.evaluate("document.getElementById('record-state').textContent");
    assert_eq!(state, "recording, started by operate at 127.0.0.1");
    assert_eq!(
        page.evaluate("document.getElementById('record-refused').textContent"),
        ""
    );
    journal(&mut page, "recording of /arm/* started (operate at 127.0.0.1)");
    assert_eq!(page.evaluate("document.activeElement.id"), "record-button");
    enter(&mut page);
    page.wait("document.getElementById('record').dataset.state === 'rests'");
    let (name, messages) = shown(&mut page);
    assert!(messages >= 20);
    journal(
        &mut page,
        &format!("recording {name} ended (operate at 127.0.0.1): {messages} messages, 0 lost"),
    );
    let file = host.path("recordings").join(&name);
    assert_eq!(read(&file), (BTreeSet::from(["/arm/state".to_owned()]), messages));

    // All topics. The page leaves, and one that may only look comes.
    page.evaluate("document.getElementById('record-topics').value = ''");
    start(&mut page);
    browser.close_pages();
    let mut page = browser.open(&format!("{}#token={view}", web.url()), PHONE);
    wait_for_messages(&mut page);
    let hidden =
        page.evaluate("['record-button', 'record-topics'].every((id) => document.getElementById(id).hidden)");
    assert_eq!(hidden, true);
    let width = page.evaluate("document.documentElement.scrollWidth");
    assert!(width.as_u64() <= Some(390), "{width}");
    let (name, _) = shown(&mut page);
    assert_eq!(browser.problems(), Vec::<String>::new());
    browser.close_pages();
    kill_process(Pid::from_child(&web.child), Signal::INT).expect("signals");
    assert!(web.child.wait().expect("ends").success());
    let (topics, messages) = read(&host.path("recordings").join(name));
    assert!(messages >= 20, "{messages}");
    assert!(
        topics.contains("/arm/state") && topics.contains("/scan"),
        "{topics:?}"
    );
}

#[test]
fn a_missing_folder_and_one_without_a_page_are_refused() {
    let host = Host::new();
    let done = host.run(&["web", "--port", "0", "--record", "missing"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.stderr.contains("missing is not a folder: create it"),
        "{done:?}"
    );
    let (own, other) = (address(), address());
    config(&host, ("robot", &own), ("base", &other), "");
    let done = host.run(&["link", "link.yaml", "--record", "t"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("give --web, too"), "{done:?}");
    let done = host.run(&["web", "--record-limit", "1GB"]);
    assert_eq!(done.code, 2, "{done:?}");
}
