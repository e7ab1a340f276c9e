#![forbid(unsafe_code)]
//! Generates source code for message and service types, so that programs set fields by name and bulk fields in place.
//!
//! This crate turns schemas into source text; `schema` finds the definitions. The generated code relies on the headers
//! of its language (`cpp/include/ropewalk`), which implement the layout of a message in a block
//! (`docs/wire/control-part.md`).
//!
//! ```
//! use generate::{Language, Unit};
//! use schema::{Flavour, Registry};
//!
//! let files = generate::files(Language::Cpp, &Registry::new(Flavour::Ros1), &["sensor_msgs/Image".into()])?;
//! let names: Vec<_> = files.iter().map(|f| f.path.display().to_string()).collect();
//! assert_eq!(names, ["ropewalk/msg/sensor_msgs/Image.hpp", "ropewalk/msg/std_msgs/Header.hpp"]);
//! assert!(files[0].text.contains("::ropewalk::Bulk<std::uint8_t> data;"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cpp;
mod find;
mod literal;
mod python;
mod rust;

pub use find::{FindError, Found, find};

use schema::{DefinitionError, FieldType, Flavour, Registry, Schema, Service};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Target language of the source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// C++17 headers.
    Cpp,
    /// Python modules with stubs, for the package `ropewalk`.
    Python,
    /// Rust modules, for the crate `ropewalk`.
    Rust,
}

/// One type to generate code for.
#[derive(Clone, Debug)]
pub enum Unit {
    /// A message type.
    Message(Schema),
    /// A service type.
    Service(Service),
}

/// A file of source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path below the folder of all generated code.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// Generates the files for the types called `names`, messages or services, and for all types in them, by path.
///
/// # Errors
/// If a definition is missing or invalid.
pub fn files(
    language: Language,
    registry: &Registry,
    names: &[String],
) -> Result<Vec<File>, DefinitionError> {
    let mut units = BTreeMap::new();
    for name in names {
        let unit = unit(registry, name)?;
        for schema in unit.schemas() {
            add_fields(registry, schema, &mut units)?;
        }
        units.insert(name.clone(), unit);
    }
    // By their full names: a type may have been requested as `package/msg/Type`.
    let units: BTreeMap<String, Unit> = units.into_values().map(|u| (u.name(), u)).collect();
    let mut files: Vec<File> = match language {
        Language::Cpp => units.values().map(cpp::header).collect(),
        Language::Python => python::modules(units.values()),
        Language::Rust => rust::modules(units.values()),
    };
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// The Rust modules of [`files`] in one text, for build scripts: `include!` cannot include modules in separate files.
///
/// # Errors
/// As [`files`].
pub fn rust_text(registry: &Registry, names: &[String]) -> Result<String, DefinitionError> {
    let mut all = String::new();
    for file in files(Language::Rust, registry, names)? {
        match file.path.file_stem().and_then(|name| name.to_str()) {
            None | Some("mod") => {}
            Some(name) => all += &format!("pub mod {name} {{\n{}\n}}\n", file.text),
        }
    }
    Ok(all)
}

/// The Rust modules of all messages and services of ROS 1's standard packages in one text.
///
/// # Errors
/// None: their definitions are part of the crate `schema`.
pub fn standard_rust_text() -> Result<String, DefinitionError> {
    let registry = Registry::new(Flavour::Ros1);
    let names = registry.names().into_iter().chain(registry.service_names());
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    rust_text(&registry, &names)
}

/// A message, or else a service, by its name.
fn unit(registry: &Registry, name: &str) -> Result<Unit, DefinitionError> {
    match registry.schema(name) {
        Ok(schema) => Ok(Unit::Message(schema)),
        // Of the two errors, the message's is returned, unless a service of the name exists and is invalid.
        Err(e @ DefinitionError::Unknown { .. }) => match registry.service(name) {
            Ok(service) => Ok(Unit::Service(service)),
            Err(DefinitionError::Unknown { needed_by: None, .. }) => Err(e),
            Err(other) => Err(other),
        },
        Err(e) => Err(e),
    }
}

fn add_fields(
    registry: &Registry,
    schema: &Schema,
    units: &mut BTreeMap<String, Unit>,
) -> Result<(), DefinitionError> {
    for field in schema.message_type().fields() {
        if let FieldType::Message(m) = field.ty()
            && !units.contains_key(&m.name().to_string())
        {
            let inner = registry.schema(&m.name().to_string())?;
            units.insert(m.name().to_string(), Unit::Message(inner.clone()));
            add_fields(registry, &inner, units)?;
        }
    }
    Ok(())
}

impl Unit {
    /// `package/Type`.
    fn name(&self) -> String {
        match self {
            Unit::Message(schema) => schema.name().to_owned(),
            Unit::Service(service) => service.name(),
        }
    }

    /// The definition with those of all types in it, and its MD5 sum.
    fn text(&self) -> (String, String) {
        match self {
            Unit::Message(schema) => (schema.definition(), schema.md5_hex()),
            Unit::Service(service) => (service.definition(), service.md5_hex()),
        }
    }

    fn schemas(&self) -> Vec<&Schema> {
        match self {
            Unit::Message(schema) => vec![schema],
            Unit::Service(service) => vec![service.request(), service.response()],
        }
    }
}
