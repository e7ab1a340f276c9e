//! The real recording used by the experiments, if it is present.

use recording::write::{Compression, Options};
use recording::{Recording, Writer};
use stats::Time;

use crate::support::root;

fn robot() -> Option<Recording> {
    let path = root().join("../shared/data/robot.bag");
    if path.exists() {
        return Some(Recording::open(path).expect("robot.bag opens"));
    }
    assert!(std::env::var_os("CI").is_none(), "CI needs {}", path.display());
    eprintln!("SKIPPED: no {}", path.display());
    None
}

#[test]
fn counts_times_and_sizes_are_right() {
    let Some(robot) = robot() else { return };
    assert!(robot.is_indexed() && robot.damage().is_none());
    let summary = robot.summary();
    let counts: Vec<_> = summary
        .topics
        .iter()
        .map(|(topic, of)| (topic.as_str(), of.messages))
        .collect();
    assert_eq!(
        counts,
        [("/camera/image/compressed", 184), ("/scan", 819), ("/tf", 2189)]
    );
    let measured = robot.measure();
    assert_eq!(measured.messages, 3192);
    assert_eq!((measured.start, measured.end), (summary.start, summary.end));
    assert!((27.4..27.6).contains(&measured.duration().as_secs_f64()));
    assert_eq!(measured.topics["/scan"].bytes, Some(819 * 2631));
    let mut last = Time::ZERO;
    let (mut least, mut most) = (usize::MAX, 0);
    for message in robot.messages() {
        let message = message.expect("sound");
        assert!(message.log_time >= last);
        last = message.log_time;
        if robot.channel(message.channel).topic == "/tf" {
            (least, most) = (least.min(message.data.len()), most.max(message.data.len()));
        }
    }
    assert_eq!((least, most), (87, 3212));
    for channel in robot.channels() {
        let md5 = match channel.type_name.as_str() {
            "sensor_msgs/LaserScan" => "90c7ef2dc6895d81024acba2ac42f369",
            "sensor_msgs/CompressedImage" => "8f7a12909da2c9d3332d540a0977563f",
            "tf2_msgs/TFMessage" => "94810edda583a504dfda3829e70d7eec",
            other => panic!("{other}"),
        };
        assert_eq!(channel.md5.as_deref(), Some(md5));
        assert!(channel.definition.contains("MSG: std_msgs/Header"));
    }
}

#[test]
fn rewritten_as_mcap_it_is_the_same() {
    let Some(robot) = robot() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let path = folder.path().join(format!("{compression:?}.mcap"));
        let mut writer = Writer::create(
            &path,
            &Options {
                compression,
                ..Options::default()
            },
        )
        .expect("created");
        for channel in robot.channels() {
            writer.add_channel(channel).expect("added");
        }
        for message in robot.messages() {
            let message = message.expect("sound");
            writer
                .write(
                    message.channel,
                    message.log_time,
                    message.publish_time,
                    &message.data,
                )
                .expect("written");
        }
        writer.finish().expect("finished");
        let mcap = Recording::open(&path).expect("opens");
        assert_eq!(mcap.channels(), robot.channels());
        assert!(mcap.is_indexed());
        let mut ours = mcap.messages();
        for message in robot.messages() {
            let ours = ours.next().expect("as many").expect("sound");
            assert!(ours == message.expect("sound"), "{compression:?} differs");
        }
        assert!(ours.next().is_none());
    }
}
