//! A message that was taken.

use crate::Dynamic;
use crate::node::ros;
use crate::typed::{self, Contents, FieldError, Structure};
use bus::PartView;
use schema::{CodecError, Conversion, Schema, Value};
use stats::{Drops, Time};
use std::marker::PhantomData;

/// A message, read where its publisher wrote it. Dropping it returns the block.
#[derive(Debug)]
pub struct Message<T = Dynamic> {
    bus: bus::Message,
    schema: Schema,
    /// The converted control part, if the message has the other ROS version.
    converted: Option<Box<[u8]>>,
    of: PhantomData<fn() -> T>,
}

impl<T: Structure> Message<T> {
    /// Reads all fields; bulk fields are views of the block.
    ///
    /// # Errors
    /// [`FieldError`]: its publisher wrote something that is not such a message.
    pub fn read(&self) -> Result<T::View<'_>, FieldError> {
        typed::read(self)
    }
}

impl<T> Message<T> {
    pub(crate) fn new(bus: bus::Message, schema: Schema, conversion: Option<&Conversion>) -> Self {
        // The ROS version may not be stated.
        let is_of_the_other = bus.ros() == ros(schema.flavour().other());
        let conversion = conversion.filter(|_| is_of_the_other);
        // A control part that cannot be converted becomes empty, which every reader refuses with an error.
        let converted = conversion.map(|c| c.control(bus.control()).unwrap_or_default().into());
        Message {
            bus,
            schema,
            converted,
            of: PhantomData,
        }
    }

    /// The message in ROS 1's serialization.
    ///
    /// # Errors
    /// [`CodecError`] if its publisher wrote something that does not have its type.
    pub fn ros1(&self) -> Result<Vec<u8>, CodecError> {
        self.schema.join_ros1(self.control(), &slices(&self.bus))
    }

    /// Length in bytes of [`Message::ros1`], without creating it.
    ///
    /// # Errors
    /// As for [`Message::ros1`].
    pub fn ros1_len(&self) -> Result<usize, CodecError> {
        Ok(self.schema.join(self.control(), &slices(&self.bus))?.ros1_len())
    }

    /// The message in CDR, little-endian, with its encapsulation header.
    ///
    /// # Errors
    /// As for [`Message::ros1`].
    pub fn cdr(&self) -> Result<Vec<u8>, CodecError> {
        self.schema.join_cdr(self.control(), &slices(&self.bus))
    }

    /// The message as a dynamic value.
    ///
    /// # Errors
    /// As for [`Message::ros1`].
    pub fn value(&self) -> Result<Value, CodecError> {
        self.schema.decode(self.control(), &slices(&self.bus))
    }

    /// The message as a serde structure ([`structure`](crate::structure)) in its own memory.
    ///
    /// # Errors
    /// [`StructureError`](crate::structure::StructureError) if the structure does not match the subscriber's
    /// type, or its publisher wrote something that does not.
    #[cfg(feature = "serde")]
    pub fn structure<S: serde::de::DeserializeOwned>(&self) -> Result<S, crate::structure::StructureError> {
        crate::structure::from_parts(&self.schema, self.control(), &slices(&self.bus))
    }

    /// Like [`Message::value`], but large arrays are empty and not copied.
    ///
    /// # Errors
    /// As for [`Message::ros1`].
    pub fn small_value(&self) -> Result<Value, CodecError> {
        self.schema.decode_small(self.control(), &slices(&self.bus))
    }

    /// When its source published it: nanoseconds since the Unix epoch, by the source host's clock.
    pub fn stamp(&self) -> Time {
        self.bus.stamp()
    }

    /// Its publisher's sequence number, starting at 1.
    pub fn sequence(&self) -> u64 {
        self.bus.sequence()
    }

    /// Its original source.
    pub fn origin(&self) -> u64 {
        self.bus.origin()
    }

    /// Whether it was published before this subscriber joined, and kept for late joiners
    /// ([`PublisherOptions::with_history`](crate::PublisherOptions::with_history)).
    pub fn is_history(&self) -> bool {
        self.bus.is_history()
    }

    /// Messages lost between the previously taken message and this one.
    pub fn lost(&self) -> Drops {
        self.bus.lost().drops()
    }

    /// The control part, in the subscriber's type.
    pub fn control(&self) -> &[u8] {
        self.converted.as_deref().unwrap_or_else(|| self.bus.control())
    }

    /// Number of data parts.
    pub fn part_count(&self) -> usize {
        self.bus.part_count()
    }

    /// Data part `i`, in place; empty if there is no such part.
    pub fn part(&self, i: usize) -> PartView<'_> {
        self.bus.part(i)
    }

    /// Returns the bus's message, for features that this type does not wrap. Its control part has its
    /// publisher's type, which may belong to the other ROS version.
    pub fn bus(&self) -> &bus::Message {
        &self.bus
    }

    /// Its type.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}

impl<T> Contents for Message<T> {
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
