//! Several recordings as one: what a recorder split by size or time, or what several hosts recorded.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek};
use std::iter::Peekable;
use std::path::Path;

use stats::Time;

use crate::error::{OpenError, ReadError};
use crate::model::{Channel, ChannelId, Message, Summary};
use crate::reader::{Messages, Recording};
use crate::rosbag2::Folder;

/// Recordings whose messages are read as those of one, by the times at which they were recorded.
///
/// Its [`ChannelId`]s are those of the files one after the other: channels of different files are different channels, also where
/// topic and type are the same. [`Limits`](crate::Limits) hold for each file.
#[derive(Debug)]
pub struct Set<R = File> {
    /// Each with the first of its channels.
    recordings: Vec<(u32, Recording<R>)>,
    /// Of several files together.
    summary: Option<Summary>,
    /// What is wrong with folders of rosbag2, such as files that do not open.
    damage: Vec<ReadError>,
    /// How many messages there are by what folders say of themselves.
    stated: u64,
}

impl Set {
    /// Opens all of them, see [`Recording::open`]. A folder is one of rosbag2: the files that its `metadata.yaml` names, at most
    /// [`MAX_FILES`](crate::MAX_FILES), or without it all that are in it. A file of a folder that does not open costs itself alone
    /// and comes as an error of [`Set::messages`].
    ///
    /// # Errors
    /// The first one that does not open; of a folder its first file, if none of them opens.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, OpenError> {
        let (mut recordings, mut damage, mut stated) = (Vec::new(), Vec::new(), 0u64);
        for path in paths.iter().map(AsRef::as_ref) {
            if path.is_dir() {
                let folder = Folder::open(path)?;
                recordings.extend(folder.recordings);
                damage.extend(folder.damage);
                stated = stated.saturating_add(folder.stated);
            } else {
                recordings.push(Recording::open(path)?);
            }
        }
        Ok(Set {
            damage,
            stated,
            ..Self::new(recordings)
        })
    }
}

impl<R: Read + Seek> Set<R> {
    /// Of recordings that are open.
    pub fn new(recordings: Vec<Recording<R>>) -> Self {
        let summary = (recordings.len() != 1).then(|| {
            let mut summary = Summary::default();
            recordings
                .iter()
                .for_each(|recording| summary.add(recording.summary()));
            summary
        });
        let mut base = 0u32;
        let recordings = recordings.into_iter().map(|recording| {
            let first = base;
            base = base.saturating_add(recording.channels().len() as u32);
            (first, recording)
        });
        Set {
            recordings: recordings.collect(),
            summary,
            damage: Vec::new(),
            stated: 0,
        }
    }

    /// How many messages there should be, by the files' indexes or by what folders say of themselves, whichever is more.
    pub fn expected(&self) -> u64 {
        self.stated.max(self.summary().messages)
    }

    /// The channels of all files, by the ids that their messages have here.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        (self.recordings.iter()).flat_map(|(base, recording)| {
            let global = |channel: &Channel| ChannelId(base.saturating_add(channel.id.0));
            recording
                .channels()
                .iter()
                .map(move |channel| (global(channel), channel))
        })
    }

    /// The channel of a message of this set; `None` for an id of another one.
    pub fn channel(&self, id: ChannelId) -> Option<&Channel> {
        let (base, recording) = self.recordings.iter().rev().find(|(base, _)| *base <= id.0)?;
        recording.channels().get((id.0 - base) as usize)
    }

    /// Start, end and counts of all files together, as their indexes have them.
    pub fn summary(&self) -> &Summary {
        match &self.summary {
            Some(together) => together,
            None => self.recordings[0].1.summary(),
        }
    }

    /// When the first message was recorded that can be read; `None` if there is none. The index is not asked, which may be
    /// wrong.
    pub fn first(&self) -> Option<Time> {
        self.messages().flatten().next().map(|message| message.log_time)
    }

    /// The messages of all files in the order of their log times, those of the same time in the order of the files. What is
    /// wrong with one file comes as an error in between, what is wrong with a folder first. Each call begins anew.
    ///
    /// A file takes memory from its first message on to its last.
    pub fn messages(&self) -> SetMessages<R> {
        let mut waiting: Vec<_> = (self.recordings.iter().enumerate())
            .map(|(order, (base, recording))| (recording.begin(), order, *base, recording.clone()))
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
    /// Files whose time has not come: it, their place, their first channel.
    waiting: Vec<(Time, usize, u32, Recording<R>)>,
    /// The place and the first channel of each file that is being read, and its messages.
    sources: Vec<(usize, u32, Peekable<Messages<R>>)>,
}

impl<R: Read + Seek> SetMessages<R> {
    /// Begins with the files that may have a message before the earliest one that is known.
    fn begin(&mut self, earliest: Option<Time>) -> bool {
        let is_due =
            |(begin, ..): &mut (Time, usize, u32, Recording<R>)| earliest.is_none_or(|time| *begin <= time);
        let Some((_, order, base, recording)) = self.waiting.pop_if(is_due) else {
            return false;
        };
        let at = self.sources.partition_point(|(other, ..)| *other < order);
        self.sources
            .insert(at, (order, base, recording.messages().peekable()));
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
            let (_, base, messages) = self.sources.get_mut(earliest?.1)?;
            let mut message = messages.next()?;
            if let Ok(message) = &mut message {
                message.channel = ChannelId(message.channel.0.saturating_add(*base));
            }
            return Some(message);
        }
    }
}
