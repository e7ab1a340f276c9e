//! Several recordings as one: a recording split by size or time, or recordings of several hosts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{Read, Seek};
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use stats::Time;

use crate::error::{OpenError, ReadError};
use crate::model::{Channel, ChannelId, Message, Summary};
use crate::reader::{Messages, Recording};
use crate::rosbag2::Folder;

/// Recordings whose messages are read as one recording, in the order of their recording times.
///
/// Its [`ChannelId`]s number the channels of one file after the other: channels of different files are different
/// channels, even with the same topic and type. The files of a folder of rosbag2 are parts of one recording, so their
/// equal channels are one. [`Limits`](crate::Limits) apply to each file.
#[derive(Debug)]
pub struct Set<R = File> {
    /// Each recording with the ids of its channels in the set.
    recordings: Vec<(Arc<[ChannelId]>, Recording<R>)>,
    /// Recording of each channel, and its position there.
    channels: Vec<(usize, usize)>,
    /// Summary of several files together.
    summary: Option<Summary>,
    /// Errors of folders of rosbag2, such as files that cannot be opened.
    damage: Vec<ReadError>,
    /// Number of messages that the folders state.
    stated: u64,
}

impl Set {
    /// Opens all paths, see [`Recording::open`]. A folder is one of rosbag2: the files that its `metadata.yaml` names,
    /// at most [`MAX_FILES`](crate::MAX_FILES), or without it all files in it. A file of a folder that cannot be opened
    /// does not affect the others, and is returned as an error by [`Set::messages`].
    ///
    /// # Errors
    /// The first path that cannot be opened; for a folder its first file, if none can be opened.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, OpenError> {
        let (mut recordings, mut damage, mut stated) = (Vec::new(), Vec::new(), 0u64);
        for path in paths.iter().map(AsRef::as_ref) {
            if path.is_dir() {
                let folder = Folder::open(path)?;
                let group = recordings.len();
                recordings.extend(folder.recordings.into_iter().map(|part| (group, part)));
                damage.extend(folder.damage);
                stated = stated.saturating_add(folder.stated);
            } else {
                recordings.push((recordings.len(), Recording::open(path)?));
            }
        }
        Ok(Set {
            damage,
            stated,
            ..Self::gather(recordings)
        })
    }
}

impl<R: Read + Seek> Set<R> {
    /// A set of open recordings.
    pub fn new(recordings: Vec<Recording<R>>) -> Self {
        Self::gather(recordings.into_iter().enumerate().collect())
    }

    /// A set of consecutive recordings; those with the same number are parts of one.
    fn gather(recordings: Vec<(usize, Recording<R>)>) -> Self {
        let summary = (recordings.len() != 1).then(|| {
            let mut summary = Summary::default();
            (recordings.iter()).for_each(|(_, recording)| summary.add(recording.summary()));
            summary
        });
        let mut channels: Vec<(usize, usize)> = Vec::new();
        // Channels of this group's recordings, by topic.
        let (mut group, mut known) = (None, BTreeMap::<&str, Vec<ChannelId>>::new());
        let mut ids = Vec::new();
        for (index, (number, recording)) in recordings.iter().enumerate() {
            if group.replace(*number) != Some(*number) {
                known.clear();
            }
            let mut own: Vec<ChannelId> = Vec::new();
            for (place, channel) in recording.channels().iter().enumerate() {
                let same = known.entry(&channel.topic).or_default();
                // Equal channels of one file belong to different publishers.
                let before = same.iter().copied().find(|id| {
                    let (at, place) = channels[id.0 as usize];
                    at != index && !own.contains(id) && recordings[at].1.channels()[place].continues(channel)
                });
                own.push(before.unwrap_or_else(|| {
                    let id = ChannelId(channels.len() as u32);
                    channels.push((index, place));
                    same.push(id);
                    id
                }));
            }
            ids.push(own.into());
        }
        let recordings = recordings.into_iter().map(|(_, recording)| recording);
        Set {
            recordings: ids.into_iter().zip(recordings).collect(),
            channels,
            summary,
            damage: Vec::new(),
            stated: 0,
        }
    }

    /// Expected number of messages, by the files' indexes or as the folders state, whichever is more.
    pub fn expected(&self) -> u64 {
        self.stated.max(self.summary().messages)
    }

    /// The channels of all files, by their ids in this set.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        (0..)
            .map(ChannelId)
            .zip(&self.channels)
            .filter_map(|(id, &(at, place))| {
                let recording = &self.recordings.get(at)?.1;
                Some((id, recording.channels().get(place)?))
            })
    }

    /// The channel of a message of this set; `None` if the id belongs to another set.
    pub fn channel(&self, id: ChannelId) -> Option<&Channel> {
        let &(at, place) = self.channels.get(id.0 as usize)?;
        self.recordings.get(at)?.1.channels().get(place)
    }

    /// Start, end and counts of all files together, from their indexes.
    pub fn summary(&self) -> &Summary {
        match &self.summary {
            Some(together) => together,
            None => self.recordings[0].1.summary(),
        }
    }

    /// Time of the first readable message; `None` if there is none. Does not use the index, which may be wrong.
    pub fn first(&self) -> Option<Time> {
        self.messages().flatten().next().map(|message| message.log_time)
    }

    /// The messages of all files in the order of their log times; messages of the same time in the order of the files.
    /// Errors of folders come first, errors of files in between. Each call starts from the beginning.
    ///
    /// A file takes memory only from its first message to its last.
    pub fn messages(&self) -> SetMessages<R> {
        let mut waiting: Vec<_> = (self.recordings.iter().enumerate())
            .map(|(order, (ids, recording))| (recording.begin(), order, ids.clone(), recording.clone()))
            .collect();
        // The first is at the end.
        waiting.sort_by_key(|(begin, order, ..)| Reverse((*begin, *order)));
        SetMessages {
            damage: self.damage.iter().cloned().collect(),
            waiting,
            sources: Vec::new(),
        }
    }
}

/// The messages of a [`Set`] in time order.
#[derive(Debug)]
pub struct SetMessages<R: Read + Seek> {
    damage: VecDeque<ReadError>,
    waiting: Vec<Waiting<R>>,
    sources: Vec<Source<R>>,
}

/// A file not started yet: its start time, its position, the ids of its channels, the file.
type Waiting<R> = (Time, usize, Arc<[ChannelId]>, Recording<R>);
/// A file that is being read: its position, the ids of its channels, its messages.
type Source<R> = (usize, Arc<[ChannelId]>, Peekable<Messages<R>>);

impl<R: Read + Seek> SetMessages<R> {
    /// Starts the files that may have a message before the earliest known one.
    fn begin(&mut self, earliest: Option<Time>) -> bool {
        let is_due = |waiting: &mut Waiting<R>| earliest.is_none_or(|time| waiting.0 <= time);
        let Some((_, order, ids, recording)) = self.waiting.pop_if(is_due) else {
            return false;
        };
        let at = self.sources.partition_point(|(other, ..)| *other < order);
        self.sources
            .insert(at, (order, ids, recording.messages().peekable()));
        true
    }
}

impl<R: Read + Seek> Iterator for SetMessages<R> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(damage) = self.damage.pop_front() {
            return Some(Err(damage));
        }
        loop {
            let mut earliest: Option<(Time, usize)> = None;
            let mut ended = None;
            for (index, (_, _, messages)) in self.sources.iter_mut().enumerate() {
                match messages.peek() {
                    Some(Ok(message)) if earliest.is_none_or(|(time, _)| message.log_time < time) => {
                        earliest = Some((message.log_time, index));
                    }
                    Some(Err(_)) => return messages.next(),
                    Some(Ok(_)) => {}
                    None => ended = Some(index),
                }
            }
            if let Some(index) = ended {
                drop(self.sources.remove(index));
                continue;
            }
            if self.begin(earliest.map(|(time, _)| time)) {
                continue;
            }
            let (_, ids, messages) = self.sources.get_mut(earliest?.1)?;
            let mut message = messages.next()?;
            if let Ok(message) = &mut message {
                message.channel = *ids.get(message.channel.0 as usize)?;
            }
            return Some(message);
        }
    }
}
