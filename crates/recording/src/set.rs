//! Several recordings as one: what a recorder split by size or time, or what several hosts recorded.

use std::fs::File;
use std::io::{Read, Seek};
use std::iter::Peekable;
use std::path::Path;

use stats::Time;

use crate::error::{OpenError, ReadError};
use crate::model::{Channel, ChannelId, Message, Summary};
use crate::reader::{Messages, Recording};

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
}

impl Set {
    /// Opens all of them, see [`Recording::open`].
    ///
    /// # Errors
    /// The first one that does not open.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, OpenError> {
        let recordings = paths.iter().map(Recording::open).collect::<Result<_, _>>()?;
        Ok(Self::new(recordings))
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
        }
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
    /// wrong with one file comes as an error in between. Each call begins anew.
    pub fn messages(&self) -> SetMessages<R> {
        let sources = self
            .recordings
            .iter()
            .map(|(base, recording)| (*base, recording.messages().peekable()));
        SetMessages {
            sources: sources.collect(),
        }
    }
}

/// The messages of a [`Set`] in time order.
#[derive(Debug)]
pub struct SetMessages<R: Read + Seek> {
    /// The first channel of each file, and its messages.
    sources: Vec<(u32, Peekable<Messages<R>>)>,
}

impl<R: Read + Seek> Iterator for SetMessages<R> {
    type Item = Result<Message, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut earliest: Option<(Time, usize)> = None;
        for (index, (_, messages)) in self.sources.iter_mut().enumerate() {
            match messages.peek() {
                Some(Ok(message)) if earliest.is_none_or(|(time, _)| message.log_time < time) => {
                    earliest = Some((message.log_time, index));
                }
                Some(Err(_)) => return messages.next(),
                _ => {}
            }
        }
        let (base, messages) = self.sources.get_mut(earliest?.1)?;
        let mut message = messages.next()?;
        if let Ok(message) = &mut message {
            message.channel = ChannelId(message.channel.0.saturating_add(*base));
        }
        Some(message)
    }
}
