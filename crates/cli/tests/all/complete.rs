//! Completion by a shell, of names that are on the bus.

use crate::support::{Host, eventually, finish};
use std::process::Command;

/// What bash offers for the last of these words.
fn offered(host: &Host, words: &[&str]) -> Vec<String> {
    let ropewalk = host.command(&[]);
    let program = ropewalk.get_program().to_string_lossy().into_owned();
    let last = words.len() - 1;
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = format!(
        "source <(COMPLETE=bash '{program}'); COMP_WORDS=({}); COMP_CWORD={last}; COMP_TYPE=9\n\
         _clap_complete_ropewalk '{program}' \"${{COMP_WORDS[{last}]}}\" ''; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" ")
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &script]);
    for (name, value) in ropewalk.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    let done = finish(bash);
    assert_eq!(done.code, 0, "{script}: {done:?}");
    done.stdout.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn a_shell_completes_what_is_there() {
    let host = Host::new();
    let talker = [
        "topic",
        "pub",
        "/chatter",
        "std_msgs/msg/String",
        "data: hi",
        "-r",
        "20",
        "--wait",
        "0",
    ];
    let _talker = host.start(&talker);
    eventually("it is there", || {
        (host.run(&["topic", "type", "/chatter"]).code == 0).then_some(())
    });
    assert_eq!(offered(&host, &["ropewalk", "topic", "ech"]), ["echo"]);
    assert_eq!(
        offered(&host, &["ropewalk", "topic", "echo", "/ch"]),
        ["/chatter"]
    );
    assert_eq!(offered(&host, &["ropewalk", "topic", "hz", "cha"]), ["chatter"]);
    assert_eq!(
        offered(&host, &["ropewalk", "record", "a.mcap", "/c"]),
        ["/chatter"]
    );
    assert_eq!(offered(&host, &["ropewalk", "node", "info", "/to"]), ["/topic"]);
    let types = offered(
        &host,
        &["ropewalk", "topic", "pub", "/scan", "sensor_msgs/msg/Laser"],
    );
    assert!(
        types.iter().any(|t| t == "sensor_msgs/msg/LaserScan"),
        "{types:?}"
    );
}
