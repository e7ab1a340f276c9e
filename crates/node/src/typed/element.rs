//! Element types of arrays in shared memory.

use super::{FieldError, Fields, Get, Put};

const _: () = assert!(
    cfg!(target_endian = "little"),
    "slices are what lies in blocks, which are little-endian"
);

/// An element of fixed size, as stored in a data part: natural C layout, little-endian.
pub trait Element: Copy + Default {
    /// Its size in bytes, a multiple of its alignment.
    const SIZE: usize;
    /// Its alignment in bytes.
    const ALIGN: usize;

    /// Reads it from the first `SIZE` bytes; returns the default if there are fewer.
    fn load(bytes: &[u8]) -> Self;

    /// Writes it into the first `SIZE` bytes, with zero padding; writes nothing if there are fewer.
    fn store(&self, bytes: &mut [u8]);
}

/// A number. Arrays of numbers are slices.
pub trait Word: Element + bytemuck::Pod {}

/// Types whose encoding in a control part is the same.
macro_rules! fields {
    ($element:ty) => {
        impl<'a> Fields<'a> for $element {
            fn put(&self, to: &mut Put) -> Result<(), FieldError> {
                to.word(self);
                Ok(())
            }

            fn get(from: &mut Get<'a>) -> Result<Self, FieldError> {
                from.word("element")
            }
        }
    };
}

macro_rules! words {
    ($($word:ty)*) => {$(
        impl Element for $word {
            const SIZE: usize = size_of::<$word>();
            const ALIGN: usize = size_of::<$word>();

            fn load(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or_else(Self::default, |bytes| <$word>::from_le_bytes(*bytes))
            }

            fn store(&self, bytes: &mut [u8]) {
                if let Some(to) = bytes.first_chunk_mut() {
                    *to = self.to_le_bytes();
                }
            }
        }

        impl Word for $word {}
        fields!($word);
    )*};
}

words! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

/// ROS 1's `time`, since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RosTime {
    /// Seconds.
    pub sec: u32,
    /// Nanoseconds, below 1e9.
    pub nsec: u32,
}

/// ROS 1's `duration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RosDuration {
    /// Seconds.
    pub sec: i32,
    /// Nanoseconds.
    pub nsec: i32,
}

macro_rules! pairs {
    ($($pair:ident: $word:ty)*) => {$(
        impl Element for $pair {
            const SIZE: usize = 8;
            const ALIGN: usize = 4;

            fn load(bytes: &[u8]) -> Self {
                let nsec = bytes.get(4..).map_or(0, <$word>::load);
                $pair { sec: <$word>::load(bytes), nsec }
            }

            fn store(&self, bytes: &mut [u8]) {
                self.sec.store(bytes);
                if let Some(rest) = bytes.get_mut(4..) {
                    self.nsec.store(rest);
                }
            }
        }

        fields!($pair);
    )*};
}

pairs! { RosTime: u32 RosDuration: i32 }

/// Reads a field of an element at its offset.
#[doc(hidden)]
pub fn load_at<T: Element>(bytes: &[u8], offset: usize) -> T {
    bytes.get(offset..).map_or_else(T::default, T::load)
}

/// Writes a field of an element at its offset.
#[doc(hidden)]
pub fn store_at<T: Element>(value: &T, bytes: &mut [u8], offset: usize) {
    if let Some(to) = bytes.get_mut(offset..) {
        value.store(to);
    }
}
