//! The MD5 sum that ROS 1 nodes compare before they exchange messages.
//!
//! Like genmsg's `compute_md5_text`: constants first, then fields, one a line, without comments; a field of a message
//! type is written as the sum of that type, without its array brackets.

use crate::types::{FieldType, MessageType};
use ::md5::{Digest, Md5};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The text that is hashed for one message.
fn text(ty: &MessageType, done: &mut BTreeMap<String, [u8; 16]>) -> String {
    let mut out = String::new();
    for line in &ty.sums {
        let _ = writeln!(out, "{line}");
    }
    for f in &ty.fields {
        let _ = match &f.ty {
            FieldType::Message(m) => {
                let key = m.name.to_string();
                let sum = match done.get(&key) {
                    Some(sum) => *sum,
                    None => {
                        let sum = digest(&[text(m, done)]);
                        done.insert(key, sum);
                        sum
                    }
                };
                writeln!(out, "{} {}", hex(&sum), f.name)
            }
            ty => match &f.written {
                Some(written) => writeln!(out, "{written} {}", f.name),
                None => writeln!(out, "{ty}{} {}", f.arity, f.name),
            },
        };
    }
    out.trim().to_owned()
}

/// The sum of a message.
pub(crate) fn of_message(ty: &MessageType) -> [u8; 16] {
    digest(&[text(ty, &mut BTreeMap::new())])
}

/// The sum of a service, over both texts one after the other.
pub(crate) fn of_service(request: &MessageType, response: &MessageType) -> [u8; 16] {
    let mut done = BTreeMap::new();
    digest(&[text(request, &mut done), text(response, &mut done)])
}

pub(crate) fn digest(parts: &[String]) -> [u8; 16] {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(part.as_bytes());
    }
    md5.finalize().into()
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
