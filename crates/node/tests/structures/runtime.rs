//! Types that look to serde like those of ros2_rust's runtime library, without their C memory.

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::string::String as Text;

/// Bytes, written as a text; bytes that are not UTF-8 are replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct String(pub Vec<u8>);

/// UTF-16 code units, written as a text; malformed units are replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WString(pub Vec<u16>);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundedString<const N: usize>(pub String);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundedWString<const N: usize>(pub WString);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence<T>(pub Vec<T>);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoundedSequence<T, const N: usize>(pub Sequence<T>);

impl From<&str> for String {
    fn from(text: &str) -> Self {
        String(text.as_bytes().to_vec())
    }
}

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        WString(text.encode_utf16().collect())
    }
}

impl Serialize for String {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Text::from_utf8_lossy(&self.0))
    }
}

impl Serialize for WString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Text::from_utf16_lossy(&self.0))
    }
}

impl<'de> Deserialize<'de> for String {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_string(StringVisitor)
    }
}

struct StringVisitor;

impl Visitor<'_> for StringVisitor {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.into())
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
        Ok(String(bytes.to_vec()))
    }
}

impl<'de> Deserialize<'de> for WString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_string(WStringVisitor)
    }
}

struct WStringVisitor;

impl<'de> Visitor<'de> for WStringVisitor {
    type Value = WString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WString, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut units: A) -> Result<WString, A::Error> {
        let mut all = Vec::with_capacity(units.size_hint().unwrap_or(0));
        while let Some(unit) = units.next_element()? {
            all.push(unit);
        }
        Ok(WString(all))
    }
}

impl<T: Serialize> Serialize for Sequence<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut elements = serializer.serialize_seq(Some(self.0.len()))?;
        for element in &self.0 {
            elements.serialize_element(element)?;
        }
        elements.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Sequence<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Sequence)
    }
}

impl<T: Serialize, const N: usize> Serialize for BoundedSequence<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for BoundedSequence<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all: Vec<T> = Deserialize::deserialize(deserializer)?;
        if all.len() > N {
            return Err(D::Error::custom("more than the bound"));
        }
        Ok(BoundedSequence(Sequence(all)))
    }
}

macro_rules! bounded {
    ($bounded:ident, $inner:ident) => {
        impl<const N: usize> Serialize for $bounded<N> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de, const N: usize> Deserialize<'de> for $bounded<N> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let inner = $inner::from(Text::deserialize(deserializer)?.as_str());
                if inner.0.len() > N {
                    return Err(D::Error::custom("more than the bound"));
                }
                Ok($bounded(inner))
            }
        }
    };
}

bounded!(BoundedString, String);
bounded!(BoundedWString, WString);

/// Like `serde_big_array::BigArray`: tuples, also of more than 32 elements.
pub mod big_array {
    use super::*;
    use serde::ser::SerializeTuple;

    pub fn serialize<S: Serializer, T: Serialize, const N: usize>(
        array: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut elements = serializer.serialize_tuple(N)?;
        for element in array {
            elements.serialize_element(element)?;
        }
        elements.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[T; N], D::Error> {
        deserializer.deserialize_tuple(N, Elements(std::marker::PhantomData))
    }

    struct Elements<T, const N: usize>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
        type Value = [T; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an array of {N}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<[T; N], A::Error> {
            let mut all = Vec::new();
            while let Some(element) = (all.len() < N)
                .then(|| elements.next_element())
                .transpose()?
                .flatten()
            {
                all.push(element);
            }
            let count = all.len();
            all.try_into().map_err(|_| A::Error::invalid_length(count, &self))
        }
    }
}
