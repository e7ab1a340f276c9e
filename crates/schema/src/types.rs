//! Resolved types: every name is a type, and every type knows its size if it is fixed.

use crate::definition::{Arity, Constant, Primitive};
use crate::layout::Fixed;
use crate::{Flavour, TypeName};
use std::fmt;
use std::sync::Arc;

/// A message type with all types that it uses.
#[derive(Debug)]
pub struct MessageType {
    pub(crate) name: TypeName,
    pub(crate) folder: &'static str,
    pub(crate) flavour: Flavour,
    pub(crate) fields: Vec<Field>,
    pub(crate) constants: Vec<Constant>,
    pub(crate) sums: Vec<String>,
    pub(crate) text: Arc<str>,
    pub(crate) measure: Measure,
}

/// Properties of a type that hold for all its messages.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    /// Layout, if every message has the same size.
    pub(crate) fixed: Option<Arc<Fixed>>,
    /// Nesting depth of messages, including itself.
    pub(crate) depth: usize,
    /// Number of leaf fields, with all nested types flattened.
    pub(crate) leaves: u64,
    /// Smallest size of a message in ROS 1 form.
    pub(crate) min_len: u64,
}

/// One field of a message.
#[derive(Debug, Clone)]
pub struct Field {
    pub(crate) name: String,
    pub(crate) written: Option<String>,
    pub(crate) ty: FieldType,
    pub(crate) arity: Arity,
    pub(crate) default: Option<String>,
}

/// The type of a field, or of the elements of an array.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FieldType {
    /// A built-in type of fixed size.
    Primitive(Primitive),
    /// Bytes that should be UTF-8, at most `bound` of them (ROS 2).
    String {
        /// Most bytes.
        bound: Option<u32>,
    },
    /// UTF-16, at most `bound` code units (ROS 2).
    WString {
        /// Most code units.
        bound: Option<u32>,
    },
    /// Another message.
    Message(Arc<MessageType>),
}

impl MessageType {
    /// Name, `package/Type`.
    pub fn name(&self) -> &TypeName {
        &self.name
    }

    /// Name as ROS 2 writes it: `package/msg/Type`, and `package/srv/Type` for a service's request or response.
    pub fn ros2_name(&self) -> String {
        self.name.with_folder(self.folder)
    }

    /// The generation of ROS to which it belongs.
    pub fn flavour(&self) -> Flavour {
        self.flavour
    }

    /// Its fields, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Its constants, in order; of several with one name the last, and only those whose name is an identifier and not
    /// that of a field.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Its own text, as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Size of every message in ROS 1 form, if it is fixed.
    pub fn fixed_size(&self) -> Option<usize> {
        self.measure.fixed.as_ref().map(|f| f.packed as usize)
    }

    /// Size and alignment in bytes as a C structure, the layout of elements in data parts, if all messages have the
    /// same size. Size 0 if it has no content.
    pub fn c_layout(&self) -> Option<(usize, usize)> {
        let fixed = self.measure.fixed.as_ref()?;
        Some((fixed.natural as usize, usize::from(fixed.align)))
    }
}

impl Field {
    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type, or type of the elements.
    pub fn ty(&self) -> &FieldType {
        &self.ty
    }

    /// Number of elements.
    pub fn arity(&self) -> Arity {
        self.arity
    }

    /// The default value as written (ROS 2).
    pub fn default_text(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// The type as text, with its arity: `geometry_msgs/Point[]`.
    pub fn type_text(&self) -> String {
        format!("{}{}", self.ty, self.arity)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldType::Primitive(p) => f.write_str(p.name()),
            FieldType::String { bound: None } => f.write_str("string"),
            FieldType::String { bound: Some(n) } => write!(f, "string<={n}"),
            FieldType::WString { bound: None } => f.write_str("wstring"),
            FieldType::WString { bound: Some(n) } => write!(f, "wstring<={n}"),
            FieldType::Message(m) => write!(f, "{}", m.name),
        }
    }
}

/// The message types used by `types`, each once, in the order of genmsg's `get_all_depends`: depth first, a type before
/// the types in it.
pub(crate) fn dependencies<'a>(fields: impl Iterator<Item = &'a Field>) -> Vec<&'a Arc<MessageType>> {
    fn add<'a>(field: &'a Field, out: &mut Vec<&'a Arc<MessageType>>) {
        let FieldType::Message(m) = &field.ty else { return };
        // A type that is listed already has its dependencies listed too.
        if out.iter().any(|t| t.name == m.name) {
            return;
        }
        out.push(m);
        for field in &m.fields {
            add(field, out);
        }
    }
    let mut out = Vec::new();
    for field in fields {
        add(field, &mut out);
    }
    out
}
