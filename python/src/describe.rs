//! Types, described for `ropewalk/_codec.py`.

use crate::fault::{OrRaise, raise};
use pyo3::prelude::*;
use ropewalk::{Arity, FieldType, Flavour, MessageType, Registry, Schema, Service};
use serde_json::{Value as Json, json};

/// A message type.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Type(pub(crate) Schema);

/// A service type.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct ServiceType(pub(crate) Service);

fn registry(ros2: bool, paths: Vec<String>) -> Registry {
    let mut registry = Registry::from_env(if ros2 { Flavour::Ros2 } else { Flavour::Ros1 });
    paths.into_iter().for_each(|p| registry.add_folder(p));
    registry
}

#[pymethods]
impl Type {
    /// Finds a type by name, or creates it from a definition with those of all types that it uses.
    #[new]
    #[pyo3(signature = (name, definition=None, *, md5=None, ros2=false, paths=Vec::new()))]
    fn new(
        name: &str,
        definition: Option<&str>,
        md5: Option<&str>,
        ros2: bool,
        paths: Vec<String>,
    ) -> PyResult<Self> {
        let mut registry = registry(ros2, paths);
        if let Some(text) = definition {
            registry.add_embedded(name, text).or_raise()?;
        }
        let schema = registry.schema(name).or_raise()?;
        compare(name, md5, schema.md5_hex())?;
        Ok(Type(schema))
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("Type('{}')", self.0.name())
    }

    #[getter]
    fn md5(&self) -> String {
        self.0.md5_hex()
    }

    #[getter]
    fn definition(&self) -> String {
        self.0.definition()
    }

    /// Fields and constants, with those of all types that it uses, as JSON.
    fn describe(&self) -> String {
        message(self.0.message_type()).to_string()
    }
}

#[pymethods]
impl ServiceType {
    /// Like `Type`.
    #[new]
    #[pyo3(signature = (name, definition=None, *, md5=None, ros2=false, paths=Vec::new()))]
    fn new(
        name: &str,
        definition: Option<&str>,
        md5: Option<&str>,
        ros2: bool,
        paths: Vec<String>,
    ) -> PyResult<Self> {
        let mut registry = registry(ros2, paths);
        if let Some(text) = definition {
            registry.add_embedded_service(name, text).or_raise()?;
        }
        let service = registry.service(name).or_raise()?;
        compare(name, md5, service.md5_hex())?;
        Ok(ServiceType(service))
    }

    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("ServiceType('{}')", self.0.name())
    }

    #[getter]
    fn md5(&self) -> String {
        self.0.md5_hex()
    }

    #[getter]
    fn definition(&self) -> String {
        self.0.definition()
    }

    #[getter]
    fn request(&self) -> Type {
        Type(self.0.request().clone())
    }

    #[getter]
    fn response(&self) -> Type {
        Type(self.0.response().clone())
    }
}

/// Names of the standard packages' types of ROS 1: messages, then services.
#[pyfunction]
pub(crate) fn standard_names() -> (Vec<String>, Vec<String>) {
    let registry = Registry::new(Flavour::Ros1);
    (texts(&registry.names()), texts(&registry.service_names()))
}

fn texts(names: &[impl ToString]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// A message of a standard package of ROS 1, whatever else is installed.
#[pyfunction]
pub(crate) fn standard_type(name: &str) -> PyResult<Type> {
    Ok(Type(Registry::new(Flavour::Ros1).schema(name).or_raise()?))
}

/// A service of a standard package of ROS 1, whatever else is installed.
#[pyfunction]
pub(crate) fn standard_service(name: &str) -> PyResult<ServiceType> {
    Ok(ServiceType(
        Registry::new(Flavour::Ros1).service(name).or_raise()?,
    ))
}

fn compare(name: &str, stated: Option<&str>, computed: String) -> PyResult<()> {
    match stated {
        Some(stated) if stated != computed => {
            let text = format!("{name} should have the sum {stated}, but its definition has {computed}");
            Err(raise("TypeUnknown", text))
        }
        _ => Ok(()),
    }
}

fn message(ty: &MessageType) -> Json {
    let fields: Vec<Json> = (ty.fields().iter())
        .map(|f| {
            let (kind, bound, inner) = match f.ty() {
                FieldType::Primitive(p) => (p.name(), None, Json::Null),
                FieldType::String { bound } => ("string", *bound, Json::Null),
                FieldType::WString { bound } => ("wstring", *bound, Json::Null),
                FieldType::Message(m) => ("message", None, message(m)),
                _ => ("unknown", None, Json::Null),
            };
            let (arity, n) = match f.arity() {
                Arity::One => ("one", None),
                Arity::Fixed(n) => ("fixed", Some(n)),
                Arity::Bounded(n) => ("variable", Some(n)),
                Arity::Unbounded => ("variable", None),
            };
            json!({
                "name": f.name(), "kind": kind, "bound": bound, "type": inner, "arity": arity, "n": n,
                "default": f.default_text(),
            })
        })
        .collect();
    let constants: Vec<Json> = (ty.constants().iter())
        .map(|c| json!([c.name, c.ty, c.value]))
        .collect();
    json!({
        "name": ty.name().to_string(), "ros2": ty.flavour() == Flavour::Ros2,
        "layout": ty.c_layout(), "constants": constants, "fields": fields,
    })
}
