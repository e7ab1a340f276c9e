//! Definitions of a file: channels and the schemas they refer to.

use std::collections::BTreeMap;

use crate::model::{Channel, ChannelId};
use crate::qos::Qos;

/// The channels of a file by their numbers in the file.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) channels: Vec<Channel>,
    by_number: BTreeMap<u32, ChannelId>,
    schemas: BTreeMap<u16, Schema>,
    /// Bytes of text held: a small file may refer to one large definition many times.
    text: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) encoding: String,
    pub(crate) definition: String,
}

/// A directory while it is filled, or afterwards.
#[derive(Debug)]
pub(crate) enum Access<'a> {
    Fill(&'a mut Directory),
    Look(&'a Directory),
}

impl Access<'_> {
    pub(crate) fn directory(&self) -> &Directory {
        match self {
            Access::Fill(directory) => directory,
            Access::Look(directory) => directory,
        }
    }

    /// The directory, if `number` is not defined yet. The first definition counts: files repeat them.
    pub(crate) fn undefined(&mut self, number: u32) -> Option<&mut Directory> {
        match self {
            Access::Fill(directory) if !directory.by_number.contains_key(&number) => Some(directory),
            _ => None,
        }
    }

    pub(crate) fn filling(&mut self) -> Option<&mut Directory> {
        match self {
            Access::Fill(directory) => Some(directory),
            Access::Look(_) => None,
        }
    }
}

impl Directory {
    pub(crate) fn find(&self, number: u32) -> Option<ChannelId> {
        self.by_number.get(&number).copied()
    }

    pub(crate) fn schema(&self, id: u16) -> Option<&Schema> {
        self.schemas.get(&id)
    }

    /// Err with the length of all text, if it exceeds `limit`.
    pub(crate) fn define(&mut self, number: u32, mut channel: Channel, limit: u64) -> Result<(), u64> {
        let lengths = [
            channel.topic.len(),
            channel.type_name.len(),
            channel.definition.len(),
            channel.definition_encoding.len(),
            channel.md5.as_ref().map_or(0, String::len),
            channel.type_hash.as_ref().map_or(0, String::len),
            channel.callerid.as_ref().map_or(0, String::len),
            channel.qos.len() * size_of::<Qos>(),
            channel.encoding.name().len(),
            CHANNEL_OVERHEAD,
        ];
        self.charge(&lengths, limit)?;
        let id = ChannelId(u32::try_from(self.channels.len()).map_err(|_| u64::MAX)?);
        channel.id = id;
        self.channels.push(channel);
        self.by_number.insert(number, id);
        Ok(())
    }

    pub(crate) fn define_schema(&mut self, id: u16, schema: Schema, limit: u64) -> Result<(), u64> {
        if self.schemas.contains_key(&id) {
            return Ok(());
        }
        self.charge(
            &[schema.name.len(), schema.encoding.len(), schema.definition.len()],
            limit,
        )?;
        self.schemas.insert(id, schema);
        Ok(())
    }

    fn charge(&mut self, lengths: &[usize], limit: u64) -> Result<(), u64> {
        let length = lengths
            .iter()
            .fold(self.text, |sum, &length| sum.saturating_add(length as u64));
        if length > limit {
            return Err(length);
        }
        self.text = length;
        Ok(())
    }
}

/// Approximate size of a channel without its texts.
const CHANNEL_OVERHEAD: usize = 256;
