//! Inspects a bus from outside: `topic info` and `doctor`.

use crate::support::{Host, eventually, finish};
use rustix::process::Signal;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn info_prints_queues_memory_and_losses() {
    let host = Host::new();
    let publish = host.start(&[
        "topic",
        "pub",
        "/chatter",
        "std_msgs/String",
        "data: hello",
        "--rate",
        "50",
    ]);
    let echo = host.start(&["topic", "echo", "/chatter", "--json"]);
    let info = eventually("both know each other and something was published", || {
        let done = host.run(&["topic", "info", "chatter", "--json"]);
        let info = (done.code == 0).then(|| json(&done.stdout))?;
        let publisher = &info["topics"][0]["publishers"][0];
        let ready = publisher["subscribers"][0]["ready"] == true;
        (ready && publisher["published"].as_u64() > Some(0)).then_some(info)
    });
    let topic = &info["topics"][0];
    assert_eq!(topic["type"], "std_msgs/String");
    let publisher = &topic["publishers"][0];
    assert_eq!(publisher["memory_policy"], "best effort");
    assert!(publisher["memory_reserved_bytes"].as_u64() <= publisher["memory_limit_bytes"].as_u64());
    let subscriber = &topic["subscribers"][0];
    assert_eq!(subscriber["id"], publisher["subscribers"][0]["id"], "{info:#}");
    assert_eq!(subscriber["queue_policy"], "drop oldest");

    let text = host.run(&["topic", "info", "/chatter"]);
    assert!(
        text.stdout.contains("when short: best effort") && text.stdout.contains("lost 0"),
        "{text:?}"
    );
    let nobody = host.run(&["topic", "info", "/nothing"]);
    assert_eq!(nobody.code, 2);
    assert!(nobody.stderr.contains("ropewalk topic list"), "{nobody:?}");
    for running in [publish, echo] {
        running.interrupt();
        assert_eq!(running.wait().code, 0);
    }
}

#[test]
fn doctor_finds_what_is_broken() {
    let host = Host::new();
    let well = host.run(&["doctor", "--json"]);
    let report = json(&well.stdout);
    assert_eq!((well.code, &report["problems"]), (0, &0.into()), "{well:?}");
    let checks: Vec<_> = report["checks"].as_array().expect("a list").iter().collect();
    let level = |name: &str| {
        let check = checks.iter().find(|c| c["check"] == name);
        check.unwrap_or_else(|| panic!("no check {name}: {report:#}"))["level"].clone()
    };
    assert_eq!(level("self-test"), "ok");
    for name in [
        "CPU governor",
        "open files",
        "memory",
        "control group",
        "SCHED_FIFO",
        "wake-ups",
    ] {
        assert_ne!(level(name), "problem", "{name}");
    }

    let mut relative = host.command(&["doctor", "--no-measure"]);
    relative.env("ROPEWALK_DOMAIN", "seven");
    let wrong = finish(relative);
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.stdout.contains("PROBLEM") && wrong.stdout.contains("fix:"),
        "{wrong:?}"
    );
}

#[test]
fn doctor_names_a_process_that_is_stopped() {
    let host = Host::new();
    let publish = host.start(&[
        "topic",
        "pub",
        "/chatter",
        "std_msgs/String",
        "data: hello",
        "--rate",
        "50",
    ]);
    eventually("it publishes", || {
        (host.run(&["topic", "info", "/chatter"]).code == 0).then_some(())
    });
    publish.pause();
    let report = host.run(&["doctor", "--no-measure", "--json"]);
    publish.signal(Signal::CONT);
    let silent = json(&report.stdout)["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|c| c["check"] == "silent endpoint")
        .cloned();
    let silent = silent.unwrap_or_else(|| panic!("not noticed: {report:?}"));
    assert!(
        silent["found"].as_str().is_some_and(|f| f.contains("stopped")),
        "{silent}"
    );
    publish.interrupt();
    assert_eq!(publish.wait().code, 0);
    assert_eq!(report.code, 0, "a stopped process is a warning");
}
