//! The public interface of a type: names, hashes, text, and access to its codecs.

use crate::plan::Plan;
use crate::types::{Field, MessageType, dependencies};
use crate::{Flavour, TypeName, limits, md5, rihs};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// One message type, ready to encode and decode. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    pub(crate) inner: Arc<Inner>,
    pub(crate) threshold: usize,
}

pub(crate) struct Inner {
    pub(crate) ty: Arc<MessageType>,
    pub(crate) plan: Plan,
    name: String,
    md5: [u8; 16],
}

impl Schema {
    pub(crate) fn compile(ty: Arc<MessageType>) -> Self {
        let plan = Plan::compile(&ty);
        let (name, md5) = (ty.name.to_string(), md5::of_message(&ty));
        Self {
            inner: Arc::new(Inner { ty, plan, name, md5 }),
            threshold: limits::DEFAULT_THRESHOLD,
        }
    }

    /// The same schema with another threshold: an array whose data part would be shorter than `bytes` stays in the
    /// control part. Readers need not know the writer's threshold.
    #[must_use]
    pub fn with_threshold(mut self, bytes: usize) -> Self {
        self.threshold = bytes;
        self
    }

    /// The threshold in bytes; [`DEFAULT_THRESHOLD`](crate::DEFAULT_THRESHOLD) unless set.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// Name, `package/Type` in both flavours.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Name as ROS 2 writes it, `package/msg/Type`.
    pub fn ros2_name(&self) -> String {
        self.inner.ty.ros2_name()
    }

    /// The generation of ROS to which it belongs.
    pub fn flavour(&self) -> Flavour {
        self.inner.ty.flavour
    }

    /// The type with its fields and constants.
    pub fn message_type(&self) -> &Arc<MessageType> {
        &self.inner.ty
    }

    /// The MD5 sum as ROS 1 computes it. ROS 2 has none; for its types it is computed in the same way.
    pub fn md5(&self) -> [u8; 16] {
        self.inner.md5
    }

    /// [`md5`](Self::md5) as 32 hexadecimal digits.
    pub fn md5_hex(&self) -> String {
        md5::hex(&self.inner.md5)
    }

    /// The type hash as ROS 2 computes it (REP-2011), `RIHS01_` and 64 hexadecimal digits.
    pub fn rihs01(&self) -> String {
        rihs::written(&self.type_hash())
    }

    /// The 32 bytes of [`rihs01`](Self::rihs01).
    pub fn type_hash(&self) -> [u8; 32] {
        rihs::of_message(&self.inner.ty)
    }

    /// The definition and those of all types in it, as written by `gendeps --cat` and stored in bags, TCPROS headers
    /// and MCAP.
    pub fn definition(&self) -> String {
        full_text(&self.inner.ty.text, self.inner.ty.fields.iter())
    }

    /// Constants and fields, one per line, without comments, nested messages indented below their field. The constants
    /// of a nested type appear where it is first used.
    pub fn canonical_text(&self) -> String {
        fn add<'a>(ty: &'a MessageType, indent: usize, seen: &mut BTreeSet<&'a TypeName>, out: &mut String) {
            let space = "  ".repeat(indent);
            let first = seen.insert(&ty.name);
            for c in ty.constants.iter().filter(|_| first) {
                out.push_str(&format!("{space}{} {}={}\n", c.ty, c.name, c.value));
            }
            for f in &ty.fields {
                let default = f.default.as_ref().map(|d| format!(" {d}")).unwrap_or_default();
                out.push_str(&format!("{space}{} {}{default}\n", f.type_text(), f.name));
                if let crate::FieldType::Message(m) = &f.ty {
                    add(m, indent + 1, seen, out);
                }
            }
        }
        let mut out = String::new();
        add(&self.inner.ty, 0, &mut BTreeSet::new(), &mut out);
        out
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("name", &self.name())
            .field("flavour", &self.flavour())
            .field("md5", &self.md5_hex())
            .finish_non_exhaustive()
    }
}

/// One service type: a request and a response.
#[derive(Clone, Debug)]
pub struct Service {
    name: TypeName,
    text: String,
    request: Schema,
    response: Schema,
}

impl Service {
    pub(crate) fn new(name: TypeName, text: String, request: Schema, response: Schema) -> Self {
        Self {
            name,
            text,
            request,
            response,
        }
    }

    /// Name, `package/Type`.
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// The message that the caller sends; named `TypeRequest` in ROS 1, `Type_Request` in ROS 2.
    pub fn request(&self) -> &Schema {
        &self.request
    }

    /// The message that the server returns.
    pub fn response(&self) -> &Schema {
        &self.response
    }

    /// The MD5 sum as ROS 1 computes it.
    pub fn md5(&self) -> [u8; 16] {
        md5::of_service(&self.request.inner.ty, &self.response.inner.ty)
    }

    /// [`md5`](Self::md5) as 32 hexadecimal digits.
    pub fn md5_hex(&self) -> String {
        md5::hex(&self.md5())
    }

    /// The type hash as ROS 2 computes it for services.
    pub fn rihs01(&self) -> String {
        rihs::written(&self.type_hash())
    }

    /// The 32 bytes of [`rihs01`](Self::rihs01).
    pub fn type_hash(&self) -> [u8; 32] {
        rihs::of_service(&self.name, &self.request.inner.ty, &self.response.inner.ty)
    }

    /// The definition and those of all types in it.
    pub fn definition(&self) -> String {
        let (request, response) = (&self.request.inner.ty, &self.response.inner.ty);
        full_text(&self.text, request.fields.iter().chain(&response.fields))
    }
}

/// Like genmsg's `compute_full_text`.
fn full_text<'a>(own: &str, fields: impl Iterator<Item = &'a Field>) -> String {
    let mut out = own.to_owned();
    for dep in dependencies(fields) {
        out.push('\n');
        out.push_str(&"=".repeat(80));
        out.push_str(&format!("\nMSG: {}\n", dep.name));
        out.push_str(&dep.text);
    }
    out
}
