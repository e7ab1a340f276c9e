//! Writes `metadata.yaml` as rosbag2's version 9 does.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use stats::Time;

use super::METADATA;
use crate::model::{Channel, Encoding};
use crate::qos::{Qos, Words};

/// The version written.
const VERSION: u32 = 9;

/// Contents of a folder with one file.
#[derive(Debug)]
pub(crate) struct Written<'a> {
    /// The file's name in the folder.
    pub(crate) file: &'a str,
    pub(crate) channels: &'a [Channel],
    /// Messages of each channel, and their bytes.
    pub(crate) counts: &'a [(u64, u64)],
    pub(crate) span: Option<(Time, Time)>,
}

/// Writes the metadata of a folder, atomically.
pub(crate) fn write(folder: &Path, written: &Written<'_>) -> io::Result<()> {
    let new = folder.join(format!("{METADATA}.new"));
    let mut file = File::create(&new)?;
    file.write_all(text(written).as_bytes())?;
    file.sync_data()?;
    std::fs::rename(&new, folder.join(METADATA))
}

fn text(written: &Written<'_>) -> String {
    // rosbag2's numbers are signed. Without messages it writes the greatest time.
    let signed = |time: u64| time.min(i64::MAX as u64);
    let (first, last) = written
        .span
        .map_or((u64::MAX, u64::MAX), |(first, last)| (first.0, last.0));
    let (start, duration) = (signed(first), signed(last) - signed(first));
    let messages: u64 = written.counts.iter().map(|(messages, _)| messages).sum();
    let file = quoted(written.file);
    let mut out = format!(
        "rosbag2_bagfile_information:\n  version: {VERSION}\n  storage_identifier: mcap\n  duration:\n    \
         nanoseconds: {duration}\n  starting_time:\n    nanoseconds_since_epoch: {start}\n  \
         message_count: {messages}\n  topics_with_message_count:"
    );
    let topics = topics(written);
    out.push_str(if topics.is_empty() { " []\n" } else { "\n" });
    for (channel, count) in topics {
        let _ = write!(
            out,
            "    - topic_metadata:\n        name: {}\n        type: {}\n        serialization_format: {}\n        \
             offered_qos_profiles:",
            quoted(&channel.topic),
            quoted(&channel.type_name),
            quoted(channel.encoding.name()),
        );
        out.push_str(if channel.qos.is_empty() { " []\n" } else { "\n" });
        for line in Qos::write(&channel.qos, Words::Names).lines() {
            let _ = writeln!(out, "          {line}");
        }
        let _ = writeln!(
            out,
            "        type_description_hash: {}\n      message_count: {count}",
            quoted(channel.type_hash.as_deref().unwrap_or_default()),
        );
    }
    let _ = write!(
        out,
        "  compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n    - {file}\n  files:\n    \
         - path: {file}\n      starting_time:\n        nanoseconds_since_epoch: {start}\n      duration:\n        \
         nanoseconds: {duration}\n      message_count: {messages}\n  custom_data: ~\n  ros_distro: ropewalk\n"
    );
    out
}

/// Topics with their counts. Channels that rosbag2 cannot distinguish are merged.
fn topics<'a>(written: &Written<'a>) -> Vec<(&'a Channel, u64)> {
    let mut topics: Vec<(&Channel, u64)> = Vec::new();
    let key = |c: &'a Channel| (&c.topic, &c.type_name, &c.encoding, &c.qos);
    for (channel, (messages, _)) in written.channels.iter().zip(written.counts) {
        match topics.iter_mut().find(|(known, _)| key(known) == key(channel)) {
            Some((_, count)) => *count += messages,
            None => topics.push((channel, *messages)),
        }
    }
    topics
}

/// A string in double quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            '\u{a0}'..='\u{2027}' | '\u{2030}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' => out.push(c),
            _ => drop(write!(out, "\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Whether rosbag2 can read messages of a channel.
pub(crate) fn can_hold(channel: &Channel) -> bool {
    channel.encoding == Encoding::Cdr
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rosbag2::metadata::parse;

    #[test]
    fn written_metadata_is_read_back_even_with_odd_names() {
        let mut channel = Channel::ros1("/a\"\\\n\u{1b}: - #\u{2028}ü\u{1f600}", "t/msg/T", "", "");
        channel.encoding = Encoding::Cdr;
        channel.qos = vec![Qos::default(); 2];
        let written = Written {
            file: "my bag: \"1\"_0.mcap",
            channels: &[channel.clone(), channel.clone()],
            counts: &[(3, 0), (4, 0)],
            span: Some((Time(5), Time(u64::MAX))),
        };
        let read = parse(&text(&written)).expect("is read");
        assert_eq!(read.files, [(written.file.to_owned(), 7)]);
        assert_eq!(read.messages, 7);
        assert_eq!(read.qos.get(&channel.topic), Some(&channel.qos));
        let empty = Written {
            file: "a_0.mcap",
            channels: &[],
            counts: &[],
            span: None,
        };
        assert_eq!(
            parse(&text(&empty)).expect("is read").files,
            [("a_0.mcap".to_owned(), 0)]
        );
    }
}
