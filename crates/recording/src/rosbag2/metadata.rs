//! `metadata.yaml`, versions 1 to 9. Newer versions are read as far as they are compatible.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::MAX_FILES;
use crate::qos::{MAX_PROFILES, Qos};

/// Longest file that is read, in bytes: enough for thousands of topics and files.
const MAX_BYTES: u64 = 8 << 20;
/// Most keys, values and lists in the file.
const MAX_NODES: usize = 1 << 20;

/// Information in a folder's metadata that its files may lack.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// Files by their names in the folder, each with its number of messages, 0 if not stated.
    pub(crate) files: Vec<(String, u64)>,
    /// Number of all messages.
    pub(crate) messages: u64,
    /// Quality of service offered by the publishers of each topic.
    pub(crate) qos: BTreeMap<String, Vec<Qos>>,
}

#[derive(Deserialize)]
struct Document {
    rosbag2_bagfile_information: Information,
}

#[derive(Deserialize)]
struct Information {
    #[serde(default)]
    version: u64,
    relative_file_paths: Vec<String>,
    #[serde(default)]
    message_count: u64,
    #[serde(default)]
    topics_with_message_count: Vec<Topic>,
    #[serde(default)]
    files: Vec<Part>,
}

#[derive(Deserialize)]
struct Topic {
    topic_metadata: TopicMetadata,
}

#[derive(Deserialize)]
struct TopicMetadata {
    name: String,
    #[serde(default)]
    offered_qos_profiles: Profiles,
}

#[derive(Deserialize)]
struct Part {
    path: String,
    #[serde(default)]
    message_count: u64,
}

/// Up to version 8 a string that contains YAML, a list since then.
#[derive(Deserialize)]
#[serde(untagged)]
enum Profiles {
    Text(String),
    List(Vec<Profile>),
    Other(serde::de::IgnoredAny),
}

impl Default for Profiles {
    fn default() -> Self {
        Profiles::List(Vec::new())
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Profile {
    history: Word,
    depth: Word,
    reliability: Word,
    durability: Word,
}

/// A policy as its number or its name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Word {
    Number(u64),
    Name(String),
    Other(serde::de::IgnoredAny),
}

impl Default for Word {
    fn default() -> Self {
        Word::Name(String::new())
    }
}

impl Word {
    fn text(self) -> String {
        match self {
            Word::Number(number) => number.to_string(),
            Word::Name(name) => name,
            Word::Other(_) => String::new(),
        }
    }
}

/// Reads the file, or returns why it cannot be used.
pub(super) fn read(path: &Path) -> Result<Metadata, String> {
    let is_file = std::fs::metadata(path)
        .map_err(|error| error.to_string())?
        .is_file();
    if !is_file {
        return Err("is no regular file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("exceeds the limit of {MAX_BYTES} bytes"));
    }
    parse(&text)
}

/// The same for its text.
pub(crate) fn parse(text: &str) -> Result<Metadata, String> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_recorded_anchor_events: 0,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 0 },
    };
    let document: Document =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    let information = document.rosbag2_bagfile_information;
    if information.relative_file_paths.len() > MAX_FILES {
        let files = information.relative_file_paths.len();
        return Err(format!(
            "names {files} files, and {MAX_FILES} are read of a folder"
        ));
    }
    let counts: BTreeMap<_, _> = information
        .files
        .iter()
        .map(|f| (f.path.as_str(), f.message_count))
        .collect();
    let one_file = information.relative_file_paths.len() == 1;
    let files = information.relative_file_paths.iter().map(|name| {
        let messages = match counts.get(name.as_str()) {
            None if one_file => information.message_count,
            count => count.copied().unwrap_or(0),
        };
        // Before version 4, paths started with the folder's own name.
        let own = if information.version < 4 {
            name.rsplit('/').next().unwrap_or(name)
        } else {
            name
        };
        (own.to_owned(), messages)
    });
    let files = files.collect();
    let mut qos = BTreeMap::new();
    for topic in information.topics_with_message_count {
        let profiles = match topic.topic_metadata.offered_qos_profiles {
            Profiles::Text(text) => Qos::read(&text),
            Profiles::List(list) => list.into_iter().take(MAX_PROFILES).map(profile).collect(),
            Profiles::Other(_) => Vec::new(),
        };
        qos.entry(topic.topic_metadata.name).or_insert(profiles);
    }
    Ok(Metadata {
        files,
        messages: information.message_count,
        qos,
    })
}

fn profile(profile: Profile) -> Qos {
    Qos::of(
        &profile.history.text(),
        &profile.depth.text(),
        &profile.reliability.text(),
        &profile.durability.text(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::{Durability, History, Reliability};

    const HEAD: &str = "rosbag2_bagfile_information:\n";

    fn of(lines: &str) -> Result<Metadata, String> {
        let indented: String = lines.lines().map(|line| format!("  {line}\n")).collect();
        parse(&format!("{HEAD}{indented}"))
    }

    #[test]
    fn paths_of_old_versions_lose_their_folder_and_new_ones_keep_it() {
        let old = of("version: 3\nrelative_file_paths: [bag/bag_0.db3]").expect("is read");
        assert_eq!(old.files, [("bag_0.db3".to_owned(), 0)]);
        let new = of("version: 9\nmessage_count: 5\nrelative_file_paths:\n- a/b.mcap").expect("is read");
        assert_eq!(new.files, [("a/b.mcap".to_owned(), 5)]);
        let unknown = of(
            "version: 10\nnew: {key: [1]}\nrelative_file_paths: [b.mcap]\nfiles:\n- {path: b.mcap, message_count: 7}",
        );
        assert_eq!(unknown.expect("is read").files, [("b.mcap".to_owned(), 7)]);
    }

    #[test]
    fn profiles_are_read_from_texts_and_from_lists() {
        let expected = Qos {
            reliability: Some(Reliability::Reliable),
            durability: Some(Durability::TransientLocal),
            history: Some(History::KeepLast(4)),
        };
        let topic = |profiles: &str| {
            let text = format!(
                "relative_file_paths: []\ntopics_with_message_count:\n- message_count: 1\n  topic_metadata:\n    \
                 name: /t\n    offered_qos_profiles: {profiles}"
            );
            of(&text).expect("is read").qos["/t"].clone()
        };
        let text = topic("\"- history: 1\\n  depth: 4\\n  reliability: 1\\n  durability: 1\\n\"");
        assert_eq!(text, [expected]);
        let list = "[{history: keep_last, depth: 4, reliability: reliable, durability: transient_local, deadline: {sec: 1}}]";
        assert_eq!(topic(list), [expected]);
        assert_eq!(
            topic("[{history: 1, depth: 4, reliability: 1, durability: 1}]"),
            [expected]
        );
        assert_eq!(topic("[{history: [], depth: -1}, {}]"), [Qos::default(); 2]);
        for none in ["''", "[]", "~", "{}", "7"] {
            assert!(topic(none).iter().all(|qos| *qos == Qos::default()), "{none}");
        }
    }

    #[test]
    fn invalid_metadata_is_refused_and_its_size_is_bounded() {
        for wrong in [
            "",
            "[]",
            "a: b",
            HEAD,
            "rosbag2_bagfile_information: 7",
            "\u{0}",
            "&a [*a, *a]",
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(of("relative_file_paths: {}").is_err());
        assert!(
            of("relative_file_paths: [&a x, *a]").is_err(),
            "nothing is repeated"
        );
        let names = "x, ".repeat(MAX_FILES + 1);
        assert!(of(&format!("relative_file_paths: [{names}]")).is_err_and(|why| why.contains("4096")));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("metadata.yaml");
        std::fs::write(&path, " ".repeat(MAX_BYTES as usize + 1)).expect("writes");
        assert!(read(&path).is_err_and(|why| why.contains("limit")));
        assert!(read(folder.path()).is_err());
    }
}
