//! Definitions of a type support. The text comes from its own source files if they are `.msg` or `.srv`, so that
//! comments, constants and MD5 match those of every other tool. Otherwise the text is written from the type
//! description, which only knows fields.

use super::{TypeError, check, incomplete};
use crate::abi::introspection::{
    CString, Field, IndividualTypeDescription, Sequence, TypeDescription, TypeHash, TypeSource,
};
use schema::limits::{MAX_FIELDS, MAX_TEXT, MAX_TYPES};
use schema::{DefinitionError, Flavour, Registry, Schema, Service};
use std::collections::BTreeMap;

/// A type and all types that it uses. The first is the type itself.
pub(super) struct Described {
    types: Vec<Individual>,
    /// Encoding and text of source files, by type.
    sources: BTreeMap<String, (String, String)>,
}

struct Individual {
    name: String,
    /// The fields as lines of a definition, or why they cannot be written.
    text: Result<String, TypeError>,
}

/// The field that IDL requires in a structure without fields.
const DUMMY: &str = "structure_needs_at_least_one_member";

impl Described {
    /// # Safety
    /// Both come from rosidl's generator.
    pub(super) unsafe fn read(
        description: &TypeDescription,
        sources: Option<&Sequence<TypeSource>>,
    ) -> Result<Self, TypeError> {
        // SAFETY: upheld by the caller, here and below.
        let own = unsafe { Individual::read(&description.own) }?;
        let mut types = vec![own];
        // SAFETY: as above.
        for other in unsafe { items(&description.referenced, MAX_TYPES, "referenced types") }? {
            // SAFETY: as above.
            types.push(unsafe { Individual::read(other) }?);
        }
        let mut texts = BTreeMap::new();
        if let Some(sources) = sources {
            // SAFETY: as above.
            for source in unsafe { items(sources, MAX_TYPES, "sources") }? {
                // SAFETY: as above.
                let (name, encoding, text) = unsafe {
                    (
                        string(&source.type_name)?,
                        string(&source.encoding)?,
                        file(&source.raw_file_contents),
                    )
                };
                texts.insert(name, (encoding, text));
            }
        }
        Ok(Self {
            types,
            sources: texts,
        })
    }

    /// Name in ROS 2's notation.
    pub(super) fn name(&self) -> &str {
        self.types.first().map_or("", |own| &own.name)
    }

    /// Returns the schema of a message with this `hash`.
    pub(super) fn message(&self, hash: TypeHash) -> Result<Schema, TypeError> {
        let name = self.name();
        self.attempt(hash, |registry, _| {
            let schema = registry.schema(name)?;
            let computed = schema.rihs01();
            Ok((schema, computed))
        })
    }

    /// Returns the service with this `hash`.
    pub(super) fn service(&self, hash: TypeHash) -> Result<Service, TypeError> {
        let name = self.name();
        let part = |suffix: &str| {
            let part = format!("{name}_{suffix}");
            let found = self.types.iter().find(|t| t.name == part);
            found.map_or_else(|| Err(incomplete(&part, "type description")), |t| t.text.clone())
        };
        let written = format!("{}---\n{}", part("Request")?, part("Response")?);
        self.attempt(hash, |registry, files| {
            let own = if files { self.source(name, "srv") } else { None };
            registry.add_service(name, own.unwrap_or(&written))?;
            let service = registry.service(name)?;
            let computed = service.rihs01();
            Ok((service, computed))
        })
    }

    /// Tries the texts of the source files, then those written from the description.
    fn attempt<T>(
        &self,
        hash: TypeHash,
        build: impl Fn(&mut Registry, bool) -> Result<(T, String), DefinitionError>,
    ) -> Result<T, TypeError> {
        let name = self.name();
        let once = |files: bool| {
            let mut registry = self.registry(files)?;
            let built = build(&mut registry, files);
            let (made, computed) = built.map_err(|reason| definition(name, reason))?;
            check(name, hash, computed)?;
            Ok(made)
        };
        once(true).or_else(|_| once(false))
    }

    fn registry(&self, files: bool) -> Result<Registry, TypeError> {
        let mut registry = Registry::new(Flavour::Ros2);
        for t in &self.types {
            let source = if files { self.source(&t.name, "msg") } else { None };
            let text = match source {
                Some(text) => text,
                None => t.text.as_deref().map_err(Clone::clone)?,
            };
            let added = registry.add_message(&t.name, text);
            added.map_err(|reason| definition(&t.name, reason))?;
        }
        Ok(registry)
    }

    /// Returns the source file of `name` if it is in `encoding` and not empty: generators may leave the text out.
    fn source(&self, name: &str, encoding: &str) -> Option<&str> {
        let (found, text) = self.sources.get(name)?;
        (found == encoding && !text.is_empty()).then_some(text.as_str())
    }
}

impl Individual {
    /// # Safety
    /// A generated description.
    unsafe fn read(of: &IndividualTypeDescription) -> Result<Self, TypeError> {
        // SAFETY: upheld by the caller, here and below.
        let name = unsafe { string(&of.type_name) }?;
        // SAFETY: as above.
        let fields = unsafe { items(&of.fields, MAX_FIELDS, "fields") }?;
        // SAFETY: as above.
        let text = unsafe { text(&name, fields) };
        Ok(Self { name, text })
    }
}

/// Writes fields as lines of a definition. Omits defaults: they may use IDL's grammar, and no hash covers them.
///
/// # Safety
/// Generated descriptions.
unsafe fn text(ty: &str, fields: &[Field]) -> Result<String, TypeError> {
    let mut out = String::new();
    for field in fields {
        // SAFETY: upheld by the caller.
        let (name, nested) = unsafe { (string(&field.name)?, string(&field.ty.nested_type_name)?) };
        if fields.len() == 1 && name == DUMMY {
            break;
        }
        let (id, capacity, length) = (field.ty.type_id, field.ty.capacity, field.ty.string_capacity);
        // Arrays, bounded and unbounded sequences of the same types follow, 48 numbers each.
        let (base, arity) = match id {
            1..=48 => (id, String::new()),
            49..=96 => (id - 48, format!("[{capacity}]")),
            97..=144 => (id - 96, format!("[<={capacity}]")),
            145..=192 => (id - 144, "[]".into()),
            _ => (0, String::new()),
        };
        let base = match base {
            1 => nested,
            2 => "int8".into(),
            3 => "uint8".into(),
            4 => "int16".into(),
            5 => "uint16".into(),
            6 => "int32".into(),
            7 => "uint32".into(),
            8 => "int64".into(),
            9 => "uint64".into(),
            10 => "float32".into(),
            11 => "float64".into(),
            15 => "bool".into(),
            16 => "byte".into(),
            17 => "string".into(),
            18 => "wstring".into(),
            21 => format!("string<={length}"),
            22 => format!("wstring<={length}"),
            _ => {
                let what = match base {
                    12 => "a long double".into(),
                    13 => "IDL's char".into(),
                    14 => "IDL's wchar".into(),
                    _ => format!("type {id} of FieldType.msg"),
                };
                return Err(TypeError::Unsupported {
                    name: ty.into(),
                    field: name,
                    what,
                });
            }
        };
        out.push_str(&format!("{base}{arity} {name}\n"));
    }
    Ok(out)
}

/// Returns the text of a source file. rosidl's generator states the length of the file, but omits the end of the last
/// line and writes the other line ends as Python's `repr` does, which escapes quotes and backslashes. So the text ends
/// at its NUL byte.
///
/// # Safety
/// A generated string.
unsafe fn file(of: &CString) -> String {
    if of.size == 0 || of.data.is_null() {
        return String::new();
    }
    // SAFETY: upheld by the caller: a literal, which ends with a NUL byte.
    let bytes = unsafe { std::slice::from_raw_parts(of.data, libc::strnlen(of.data.cast(), MAX_TEXT)) };
    let as_it_is = (bytes.len()..=bytes.len() + 1).contains(&of.size);
    let bytes = match as_it_is {
        true => bytes.to_vec(),
        false => unescape(bytes),
    };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if bytes.len() != of.size {
        text.push('\n');
    }
    text
}

/// Reverses what `repr` does to the bytes of a line.
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let (byte, len) = match (first, after) {
            (b'\\', [b'\\', ..]) => (b'\\', 2),
            (b'\\', [b'\'', ..]) => (b'\'', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'x', high, low, ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (*first, 1),
            },
            _ => (*first, 1),
        };
        out.push(byte);
        rest = rest.get(len..).unwrap_or(&[]);
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

/// # Safety
/// A generated string.
unsafe fn string(of: &CString) -> Result<String, TypeError> {
    // SAFETY: upheld by the caller.
    let bytes = unsafe { items(of, MAX_TEXT, "text") }?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// # Safety
/// A generated sequence.
unsafe fn items<'a, T>(of: &Sequence<T>, most: usize, what: &'static str) -> Result<&'a [T], TypeError> {
    match of.size {
        0 => Ok(&[]),
        // A size that no generator writes means that the structure has another layout.
        n if n > most || of.data.is_null() => Err(incomplete("a type", what)),
        // SAFETY: upheld by the caller; static memory that is never written to.
        n => Ok(unsafe { std::slice::from_raw_parts(of.data, n) }),
    }
}

fn definition(name: &str, reason: DefinitionError) -> TypeError {
    TypeError::Definition {
        name: name.into(),
        reason,
    }
}
