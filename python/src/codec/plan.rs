//! Operations for each field.

use super::Codec;
use crate::fault::raise;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// A field of a message.
pub(super) struct Field {
    /// The attribute.
    pub(super) name: Py<PyString>,
    /// The name, for errors.
    pub(super) text: String,
    pub(super) op: Op,
}

/// How to read and write a field, described by a tuple that begins with the operation's name.
pub(super) enum Op {
    /// `("word", format)`, as in Python's `struct`.
    Word(Word),
    /// `("pair", format, class)`: two numbers as a named tuple.
    Pair(Word, Py<PyAny>),
    /// `("text", bytes of a code unit, bound)`
    Text { wide: bool, bound: Option<u32> },
    /// `("message", codec)`
    Message(Py<Codec>),
    /// `("bulk", dtype, packed dtype, bound, format, exact)`
    Bulk(Bulk),
    /// `("fixed", packed dtype, count, exact)`: numbers, or messages of such, in the control part.
    Fixed {
        dtype: Py<PyAny>,
        size: usize,
        count: u32,
        exact: Py<PyAny>,
    },
    /// `("list", op, count, bound, wanted)`: elements of varying size; `count` of them if given. `wanted` is
    /// for errors.
    List {
        element: Box<Op>,
        count: Option<u32>,
        bound: Option<u32>,
        wanted: String,
    },
    /// `("empties", codec, count, bound, wanted)`: elements without content.
    Empties {
        codec: Py<Codec>,
        count: Option<u32>,
        bound: Option<u32>,
        wanted: String,
    },
}

/// An array of elements of fixed size, which becomes a data part if it is long.
pub(super) struct Bulk {
    /// Layout of elements in data parts: like C structures.
    pub(super) dtype: Py<PyAny>,
    pub(super) size: usize,
    /// Layout of elements in the control part: without padding.
    pub(super) packed: Py<PyAny>,
    pub(super) packed_size: usize,
    pub(super) bound: Option<u32>,
    /// The number type, if the elements are numbers.
    pub(super) word: Option<Word>,
    /// `ropewalk._arrays.Field`, which converts a user's value to exactly such an array, or refuses it.
    pub(super) exact: Py<PyAny>,
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

impl Field {
    pub(super) fn new(name: &str, op: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Field {
            name: PyString::intern(op.py(), name).unbind(),
            text: name.to_owned(),
            op: Op::new(op)?,
        })
    }
}

impl Op {
    fn new(op: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind: String = op.get_item(0)?.extract()?;
        let at = |i: usize| op.get_item(i);
        Ok(match kind.as_str() {
            "word" => Op::Word(Word::new(&at(1)?)?),
            "pair" => Op::Pair(Word::new(&at(1)?)?, at(2)?.unbind()),
            "text" => Op::Text {
                wide: at(1)?.extract::<u32>()? == 2,
                bound: at(2)?.extract()?,
            },
            "message" => Op::Message(at(1)?.extract()?),
            "bulk" => Op::Bulk(Bulk {
                size: size(&at(1)?)?,
                dtype: at(1)?.unbind(),
                packed_size: size(&at(2)?)?,
                packed: at(2)?.unbind(),
                bound: at(3)?.extract()?,
                word: (!at(4)?.is_none()).then(|| Word::new(&at(4)?)).transpose()?,
                exact: at(5)?.unbind(),
            }),
            "fixed" => Op::Fixed {
                size: size(&at(1)?)?,
                dtype: at(1)?.unbind(),
                count: at(2)?.extract()?,
                exact: at(3)?.unbind(),
            },
            "list" => Op::List {
                element: Box::new(Op::new(&at(1)?)?),
                count: at(2)?.extract()?,
                bound: at(3)?.extract()?,
                wanted: at(4)?.extract()?,
            },
            "empties" => Op::Empties {
                codec: at(1)?.extract()?,
                count: at(2)?.extract()?,
                bound: at(3)?.extract()?,
                wanted: at(4)?.extract()?,
            },
            other => return Err(raise("TypeUnknown", format!("a field of the kind {other}"))),
        })
    }
}

fn size(dtype: &Bound<'_, PyAny>) -> PyResult<usize> {
    dtype.getattr("itemsize")?.extract()
}

impl Word {
    fn new(format: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match format.extract::<char>()? {
            '?' => Word::Bool,
            'b' => Word::I8,
            'B' => Word::U8,
            'h' => Word::I16,
            'H' => Word::U16,
            'i' => Word::I32,
            'I' => Word::U32,
            'q' => Word::I64,
            'Q' => Word::U64,
            'f' => Word::F32,
            'd' => Word::F64,
            other => return Err(raise("TypeUnknown", format!("a number of the kind {other}"))),
        })
    }

    /// Format character of Python's `struct`.
    pub(super) fn format(self) -> char {
        match self {
            Word::Bool => '?',
            Word::I8 => 'b',
            Word::U8 => 'B',
            Word::I16 => 'h',
            Word::U16 => 'H',
            Word::I32 => 'i',
            Word::U32 => 'I',
            Word::I64 => 'q',
            Word::U64 => 'Q',
            Word::F32 => 'f',
            Word::F64 => 'd',
        }
    }

    /// Size in bytes.
    pub(super) fn size(self) -> usize {
        match self {
            Word::Bool | Word::I8 | Word::U8 => 1,
            Word::I16 | Word::U16 => 2,
            Word::I32 | Word::U32 | Word::F32 => 4,
            Word::I64 | Word::U64 | Word::F64 => 8,
        }
    }

    /// Type character of numpy.
    pub(super) fn letter(self) -> u8 {
        match self {
            Word::Bool => b'b',
            Word::I8 | Word::I16 | Word::I32 | Word::I64 => b'i',
            Word::U8 | Word::U16 | Word::U32 | Word::U64 => b'u',
            Word::F32 | Word::F64 => b'f',
        }
    }
}
