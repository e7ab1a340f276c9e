//! A message that was taken.

use crate::node::ros;
use crate::typed::Contents;
use bus::PartView;
use schema::{CodecError, Conversion, Schema, Value};
use stats::{Drops, Time};

/// A message, where its publisher wrote it. Dropping it gives the block back.
#[derive(Debug)]
pub struct Message {
    bus: bus::Message,
    schema: Schema,
    /// The control part, where it was of the other ROS.
    converted: Option<Box<[u8]>>,
}

impl Message {
    pub(crate) fn new(bus: bus::Message, schema: Schema, conversion: Option<&Conversion>) -> Self {
        // Which ROS it is of may not be stated.
        let is_of_the_other = bus.ros() == ros(schema.flavour().other());
        let conversion = conversion.filter(|_| is_of_the_other);
        // A control part that cannot be converted becomes an empty one, which every reader refuses with an error.
        let converted = conversion.map(|c| c.control(bus.control()).unwrap_or_default().into());
        Message {
            bus,
            schema,
            converted,
        }
    }

    /// The message in ROS 1's serialization.
    ///
    /// # Errors
    /// [`CodecError`] if its publisher wrote something that is not of its type.
    pub fn ros1(&self) -> Result<Vec<u8>, CodecError> {
        self.schema.join_ros1(self.control(), &slices(&self.bus))
    }

    /// Length in bytes of [`Message::ros1`], without making it.
    ///
    /// # Errors
    /// As [`Message::ros1`].
    pub fn ros1_len(&self) -> Result<usize, CodecError> {
        Ok(self.schema.join(self.control(), &slices(&self.bus))?.ros1_len())
    }

    /// The message in CDR, little-endian, with its encapsulation header.
    ///
    /// # Errors
    /// As [`Message::ros1`].
    pub fn cdr(&self) -> Result<Vec<u8>, CodecError> {
        self.schema.join_cdr(self.control(), &slices(&self.bus))
    }

    /// The message as a dynamic value.
    ///
    /// # Errors
    /// As [`Message::ros1`].
    pub fn value(&self) -> Result<Value, CodecError> {
        self.schema.decode(self.control(), &slices(&self.bus))
    }

    /// The message as a structure of serde's ([`structure`](crate::structure)), of its own memory.
    ///
    /// # Errors
    /// [`StructureError`](crate::structure::StructureError) if the structure is not one of the subscriber's type, or its publisher wrote
    /// something that is not.
    #[cfg(feature = "serde")]
    pub fn structure<T: serde::de::DeserializeOwned>(&self) -> Result<T, crate::structure::StructureError> {
        crate::structure::from_parts(&self.schema, self.control(), &slices(&self.bus))
    }

    /// As [`Message::value`], but large arrays come out empty and are not copied.
    ///
    /// # Errors
    /// As [`Message::ros1`].
    pub fn small_value(&self) -> Result<Value, CodecError> {
        self.schema.decode_small(self.control(), &slices(&self.bus))
    }

    /// When its source published it: nanoseconds since the Unix epoch, of the source host's clock.
    pub fn stamp(&self) -> Time {
        self.bus.stamp()
    }

    /// Its publisher's count, from 1 up.
    pub fn sequence(&self) -> u64 {
        self.bus.sequence()
    }

    /// Where it came from first.
    pub fn origin(&self) -> u64 {
        self.bus.origin()
    }

    /// Whether it was published before this subscriber joined, and kept for it
    /// ([`PublisherOptions::with_history`](crate::PublisherOptions::with_history)).
    pub fn is_history(&self) -> bool {
        self.bus.is_history()
    }

    /// What was lost between the message taken before and this one.
    pub fn lost(&self) -> Drops {
        self.bus.lost().drops()
    }

    /// The control part, of the subscriber's type.
    pub fn control(&self) -> &[u8] {
        self.converted.as_deref().unwrap_or_else(|| self.bus.control())
    }

    /// How many data parts there are.
    pub fn part_count(&self) -> usize {
        self.bus.part_count()
    }

    /// Data part `i`, in place; empty if there is none.
    pub fn part(&self, i: usize) -> PartView<'_> {
        self.bus.part(i)
    }

    /// The bus's message, for what this type does not wrap. Its control part is of its publisher's type, which may be of the other
    /// ROS.
    pub fn bus(&self) -> &bus::Message {
        &self.bus
    }

    /// Its type.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}

impl Contents for Message {
    fn control(&self) -> &[u8] {
        Message::control(self)
    }

    fn parts(&self) -> Vec<&[u8]> {
        slices(&self.bus)
    }
}

/// The data parts of a message, in place.
pub(crate) fn slices(message: &bus::Message) -> Vec<&[u8]> {
    (0..message.part_count())
        .map(|i| message.part(i).bytes())
        .collect()
}
