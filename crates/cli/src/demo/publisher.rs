//! Recording → the robot's bus.

use super::part::{Wishes, report};
use super::protocol::{Part, Report, Sent, Spec};
use crate::failure::{Failure, OrFail, Outcome};
use recording::{Pace, Player, Recording, Schedule};
use ropewalk::{Node, Publisher};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) fn run(spec: &Spec, node: &Node, wishes: &Wishes) -> Outcome {
    let recording = Recording::open(&spec.recording).or_input()?;
    let mut publishers = BTreeMap::new();
    for channel in recording.channels() {
        if spec.topics.contains_key(&channel.topic) {
            let schema = crate::types::needed(channel)?;
            publishers.insert(
                channel.id,
                node.dynamic_publisher(&channel.topic, &schema)
                    .or_job("publishing")?,
            );
        }
    }
    let scheduling = clock::realtime_thread(10);
    report(&Report::Ready {
        part: Part::Publisher,
        scheduling: scheduling.to_string(),
    });
    if !wishes.wait_for_go() {
        return Ok(());
    }
    let outcome = play(spec, &recording, &publishers, wishes);
    report(&published(&publishers, true));
    // The link still holds blocks of this process, which therefore stays until the demo stops it.
    while wishes.pause() {
        report(&published(&publishers, true));
    }
    outcome
}

fn play(
    spec: &Spec,
    recording: &Recording,
    publishers: &BTreeMap<recording::ChannelId, Publisher>,
    wishes: &Wishes,
) -> Outcome {
    let summary = recording.summary();
    let (Some(first), Some(last)) = (summary.start, summary.end) else {
        return Err(Failure::input(format_args!(
            "{} has no messages",
            spec.recording.display()
        )));
    };
    let duration = Some(Duration::from_secs_f64(spec.seconds));
    let start = clock::monotonic() + Duration::from_millis(20);
    let schedule = Schedule::new(
        &Pace {
            duration,
            ..Pace::default()
        },
        first,
        last,
        start,
    )
    .or_input()?;
    let mut next_report = start;
    for due in Player::new(schedule, || recording.messages()) {
        let (due, message) = due.or_job("reading the recording")?;
        let Some(publisher) = publishers.get(&message.channel) else {
            continue;
        };
        let stopped = || wishes.stop.load(Ordering::Relaxed);
        if !clock::sleep_until(due, clock::SPIN, stopped).or_job("waiting")? {
            return Ok(());
        }
        publisher.publish_ros1(&message.data).or_job("publishing")?;
        if clock::monotonic() >= next_report {
            report(&published(publishers, false));
            next_report = clock::monotonic() + super::part::REPORT_INTERVAL;
        }
    }
    Ok(())
}

fn published(publishers: &BTreeMap<recording::ChannelId, Publisher>, done: bool) -> Report {
    let mut topics = BTreeMap::<String, Sent>::new();
    for publisher in publishers.values() {
        topics.entry(publisher.topic().to_owned()).or_default().messages += publisher.stats().published;
    }
    Report::Published { topics, done }
}
