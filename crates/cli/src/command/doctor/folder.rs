//! Whether programs of this user can find each other, and which processes do not answer.

use super::finding::Finding;
use bus::{Bus, BusConfig, PublisherOptions, Stamp, SubscriberOptions, Survey, TopicType};
use std::fs::read_to_string;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn check() -> Vec<Finding> {
    let config = match BusConfig::from_env() {
        Ok(config) => config,
        Err(e) => {
            return vec![Finding::problem(
                "environment",
                e.to_string(),
                "correct the variable, or unset it",
            )];
        }
    };
    let dir = config.runtime_dir.display();
    let mut findings = vec![Finding::ok(
        "environment",
        format!("runtime folder {dir}, domain {}", config.domain),
    )];
    match std::fs::symlink_metadata(&config.runtime_dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            findings.push(Finding::ok(
                "runtime folder",
                "does not exist yet: no program is on this bus; the first one creates it",
            ));
            return findings;
        }
        Err(e) => {
            findings.push(Finding::problem(
                "runtime folder",
                format!("{dir}: {e}"),
                "set ROPEWALK_RUNTIME_DIR to a folder of this user",
            ));
            return findings;
        }
        Ok(data) => findings.push(folder(&config, data.mode(), data.uid(), data.gid())),
    }
    // Opening the folder gives the best description of what is wrong with it.
    match Bus::open(config).and_then(|bus| bus.survey(PATIENCE)) {
        Ok(survey) => findings.extend(endpoints(&survey)),
        Err(e) => findings.push(Finding::problem("bus", e.to_string(), "follow the message")),
    }
    findings
}

/// A folder shared by a group needs two more bits: setgid, so that new sockets get the group, and sticky, so that
/// members cannot replace each other's sockets.
fn folder(config: &BusConfig, mode: u32, uid: u32, gid: u32) -> Finding {
    let found = format!("mode {:03o}, user {uid}, group {gid}", mode & 0o7777);
    let shared = mode & 0o020 != 0;
    if shared && mode & 0o3000 != 0o3000 {
        return Finding::warning(
            "runtime folder",
            format!("{found}: members of the group can replace each other's sockets"),
            format!("chmod 3770 {}", config.runtime_dir.display()),
        );
    }
    if shared && config.group.is_none() {
        return Finding::warning(
            "runtime folder",
            format!("{found}: shared by a group"),
            format!("set ROPEWALK_GROUP={gid} for every program, or chmod 700 the folder"),
        );
    }
    Finding::ok("runtime folder", found)
}

fn endpoints(survey: &Survey) -> Vec<Finding> {
    let count = |f: fn(&bus::TopicInfo) -> usize| survey.topics.iter().map(f).sum::<usize>();
    let mut found = format!(
        "{} topics, {} publishers, {} subscribers",
        survey.topics.len(),
        count(|t| t.publishers.len()),
        count(|t| t.subscribers.len())
    );
    if survey.elsewhere > 0 {
        found += &format!("; {} endpoints of other domains", survey.elsewhere);
    }
    let mut findings = vec![Finding::ok("endpoints", found)];
    if survey.removed > 0 {
        findings.push(Finding::warning(
            "stale sockets",
            format!("{} of processes that are gone, removed now", survey.removed),
            "none; their programs were killed: find out why if it was not you",
        ));
    }
    if survey.left > 0 {
        findings.push(Finding::warning(
            "stale sockets",
            format!("{} of other users' processes that are gone", survey.left),
            "run ropewalk doctor as their user, or as the owner of the folder",
        ));
    }
    for silent in &survey.silent {
        findings.push(Finding::warning(
            "silent endpoint",
            format!(
                "process {} ({}) did not answer within {PATIENCE:?}{}",
                silent.pid,
                silent.program.as_deref().unwrap_or("unknown program"),
                state(silent.pid)
            ),
            format!(
                "kill -CONT {0} if it is stopped; look with gdb -p {0} if it hangs",
                silent.pid
            ),
        ));
    }
    let mismatched = survey
        .topics
        .windows(2)
        .filter(|w| w[0].topic.topic == w[1].topic.topic);
    for pair in mismatched {
        findings.push(Finding::warning(
            "types",
            format!(
                "{} is used as {} and as {}: these do not connect",
                pair[0].topic.topic,
                kind(&pair[0].topic),
                kind(&pair[1].topic)
            ),
            format!("ropewalk topic info {} shows who uses which", pair[0].topic.topic),
        ));
    }
    findings
}

/// The type with the start of its hash: two definitions may share a name.
fn kind(topic: &TopicType) -> String {
    let sum: String = topic
        .type_hash
        .iter()
        .take(4)
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("{} ({sum}…)", topic.type_name)
}

fn state(pid: i32) -> &'static str {
    let stat = read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The program's name comes first and may contain anything, parentheses too.
    match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        Some('T' | 't') => ": the process is stopped",
        Some('D') => ": the process waits for a device",
        Some('Z') => ": the process has ended, and its parent has not reaped it",
        _ => "",
    }
}

const SIZE: usize = 4 << 20;

/// Sends a message to itself, on a private bus.
pub(super) fn try_it() -> Vec<Finding> {
    let name = "self-test";
    match send() {
        Ok(what) => vec![Finding::ok(name, what)],
        Err(e) => vec![Finding::problem(
            name,
            format!("a message of 4 MiB did not arrive: {e}"),
            "the error names the cause; in a container, see docs/guide/containers.md",
        )],
    }
}

fn send() -> Result<String, Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let bus = Bus::open(BusConfig::new(dir.path().join("bus")))?;
    let topic = TopicType {
        topic: "/doctor".into(),
        type_name: "doctor/Bytes".into(),
        type_hash: [0; 16],
        flavour: Default::default(),
        definition: "".into(),
    };
    let subscriber = bus.subscriber(topic.clone(), SubscriberOptions::default())?;
    let publisher = bus.publisher(topic, PublisherOptions::default())?;
    if !publisher.wait_for_subscribers(1, PATIENCE * 5) {
        let refusals = publisher.refusals();
        return Err(refusals
            .last()
            .map_or("no connection".into(), |r| r.reason.clone())
            .into());
    }
    let mut loan = publisher.loan(0, &[SIZE])?;
    loan.part_mut(0).fill(0x5A);
    publisher.publish(loan, Stamp::default())?;
    let message = subscriber
        .take_timeout(PATIENCE * 5)?
        .ok_or("no message arrived")?;
    let mut copy = vec![0; SIZE];
    message.part(0).copy_to(0, &mut copy);
    if copy.iter().any(|b| *b != 0x5A) {
        return Err("the bytes received differ from those sent".into());
    }
    Ok("a message of 4 MiB went through shared memory".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_folder_without_its_two_bits_is_reported_with_the_fix() {
        let config = BusConfig::new("/run/robot").with_group(7);
        for (mode, fixed) in [
            (0o40770, false),
            (0o42770, false),
            (0o41770, false),
            (0o43770, true),
            (0o40700, true),
        ] {
            let text = folder(&config, mode, 0, 7).text(false, usize::MAX);
            assert_eq!(
                text.contains("fix: chmod 3770 /run/robot"),
                !fixed,
                "{mode:o}: {text}"
            );
        }
        let text = folder(&BusConfig::new("/run/robot"), 0o43770, 0, 7).text(false, usize::MAX);
        assert!(text.contains("set ROPEWALK_GROUP=7"), "{text}");
    }
}
