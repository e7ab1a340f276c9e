//! Python: a module for each package, whose classes the package `ropewalk` creates from the definitions at run time,
//! and a stub that describes the fields to tools.

use crate::{File, Unit};
use schema::{Arity, Constant, Field, FieldType, Flavour, MessageType, Primitive, Schema};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The modules of all packages in `units`.
pub(crate) fn modules<'a>(units: impl Iterator<Item = &'a Unit>) -> Vec<File> {
    let mut packages: BTreeMap<String, Vec<&Unit>> = BTreeMap::new();
    for unit in units {
        packages
            .entry(split(&unit.name()).0.to_owned())
            .or_default()
            .push(unit);
    }
    let file = |package: &str, extension: &str, text| File {
        path: PathBuf::from(format!("ropewalk_msgs/{package}.{extension}")),
        text,
    };
    (packages.iter())
        .flat_map(|(package, units)| {
            [
                file(package, "py", module(package, units)),
                file(package, "pyi", stub(package, units)),
            ]
        })
        .collect()
}

fn split(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or(("", name))
}

fn module(package: &str, units: &[&Unit]) -> String {
    let mut out = format!(
        "# Made by `ropewalk gen python`; do not edit.\n\"\"\"The types of {package}.\"\"\"\n\n\
         from ropewalk import ServiceType, Type, message_class\n"
    );
    for unit in units {
        let name = unit.name();
        let (short, (definition, md5)) = (split(&name).1, unit.text());
        let ros2 = if unit.schemas()[0].flavour() == Flavour::Ros2 {
            "True"
        } else {
            "False"
        };
        let (open, close) = match unit {
            Unit::Message(_) => ("message_class(Type", ")"),
            Unit::Service(_) => ("ServiceType", ""),
        };
        let _ = write!(out, "\n{short} = {open}(\n    \"{name}\",\n");
        for line in definition.split_inclusive('\n') {
            let _ = writeln!(out, "    {}", quoted(line));
        }
        if definition.is_empty() {
            out.push_str("    \"\"\n");
        }
        let _ = writeln!(out, "    , md5=\"{md5}\", ros2={ros2}){close}");
    }
    out
}

fn stub(package: &str, units: &[&Unit]) -> String {
    let imports: BTreeSet<&str> = (units.iter())
        .flat_map(|u| u.schemas())
        .flat_map(|s| s.message_type().fields())
        .filter_map(|f| match f.ty() {
            FieldType::Message(m) if m.name().package() != package => Some(m.name().package()),
            _ => None,
        })
        .collect();
    let mut out =
        String::from("# Made by `ropewalk gen python`; do not edit.\nimport numpy as np\nimport ropewalk\n");
    let has_arrays = |schema: &&Schema| schema.message_type().fields().iter().any(is_array);
    if units.iter().any(|u| u.schemas().iter().any(has_arrays)) {
        out.push_str("from collections.abc import Sequence\nfrom numpy.typing import ArrayLike\n");
    }
    for import in imports {
        let _ = writeln!(out, "from . import {import}");
    }
    for unit in units {
        let name = unit.name();
        let short = split(&name).1;
        match unit {
            Unit::Message(schema) => class(&mut out, short, package, schema.message_type()),
            Unit::Service(_) => {
                let _ = writeln!(out, "\n{short}: ropewalk.ServiceType");
            }
        }
    }
    out
}

fn class(out: &mut String, name: &str, package: &str, ty: &MessageType) {
    let _ = writeln!(out, "\nclass {name}(ropewalk.Message):");
    for Constant { name, ty, .. } in ty.constants() {
        let _ = writeln!(out, "    {name}: {}", word(ty));
    }
    for field in ty.fields() {
        let (name, kind, given) = (field.name(), annotation(field, package), argument(field, package));
        if is_array(field) {
            // Converted when it is published: read and written types differ.
            let _ = writeln!(out, "    @property\n    def {name}(self) -> {kind}: ...");
            let _ = writeln!(
                out,
                "    @{name}.setter\n    def {name}(self, value: {given}) -> None: ..."
            );
        } else {
            let _ = writeln!(out, "    {name}: {kind}");
        }
    }
    let arguments: String = (ty.fields().iter())
        .map(|f| format!(", {}: {} = ...", f.name(), argument(f, package)))
        .collect();
    let star = if arguments.is_empty() { "" } else { ", *" };
    let _ = writeln!(out, "    def __init__(self{star}{arguments}) -> None: ...");
}

/// The type of the attribute that is read.
fn annotation(field: &Field, package: &str) -> String {
    match field.arity() {
        Arity::One => element(field, package),
        _ if is_array(field) => "np.ndarray".into(),
        _ => format!("list[{}]", element(field, package)),
    }
}

/// The type of what may be assigned.
fn argument(field: &Field, package: &str) -> String {
    if !is_array(field) {
        return annotation(field, package);
    }
    let messages = match field.ty() {
        FieldType::Message(_) => format!(" | Sequence[{}]", element(field, package)),
        _ => String::new(),
    };
    let sized = match field.arity() {
        Arity::Fixed(_) => "",
        _ => " | ropewalk.Sized",
    };
    format!("ArrayLike{messages}{sized}")
}

/// Whether the field is a numpy array: an array of elements of fixed size.
fn is_array(field: &Field) -> bool {
    let is_fixed = match field.ty() {
        FieldType::Primitive(_) => true,
        FieldType::Message(m) => m.c_layout().is_some_and(|(size, _)| size > 0),
        _ => false,
    };
    is_fixed && !matches!(field.arity(), Arity::One)
}

fn element(field: &Field, package: &str) -> String {
    match field.ty() {
        FieldType::Primitive(Primitive::Time) => "ropewalk.Time".into(),
        FieldType::Primitive(Primitive::Duration) => "ropewalk.Duration".into(),
        FieldType::Primitive(p) => word(p.name()).to_owned(),
        FieldType::Message(m) if m.name().package() == package => m.name().name().to_owned(),
        FieldType::Message(m) => m.name().to_string().replace('/', "."),
        _ => "str".into(),
    }
}

fn word(ty: &str) -> &'static str {
    match ty {
        "bool" => "bool",
        "float32" | "float64" => "float",
        "string" | "wstring" => "str",
        _ => "int",
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use crate::{Language, files};
    use schema::{Flavour, Registry};

    #[test]
    fn packages_become_modules_with_stubs() {
        let names = ["sensor_msgs/Image".to_owned(), "std_srvs/SetBool".to_owned()];
        let files = files(Language::Python, &Registry::new(Flavour::Ros1), &names).expect("made");
        let text = |path: &str| {
            let file = files.iter().find(|f| f.path.to_str() == Some(path));
            file.unwrap_or_else(|| panic!("{path}")).text.clone()
        };
        let module = text("ropewalk_msgs/sensor_msgs.py");
        assert!(
            module.contains("Image = message_class(Type(\n    \"sensor_msgs/Image\",\n"),
            "{module}"
        );
        assert!(
            module.contains("md5=\"060021388200f6f0f447d0fcd9c64743\", ros2=False))"),
            "{module}"
        );
        let stub = text("ropewalk_msgs/sensor_msgs.pyi");
        assert!(stub.contains("    header: std_msgs.Header\n"), "{stub}");
        assert!(stub.contains("    def data(self) -> np.ndarray: ...\n"), "{stub}");
        assert!(
            stub.contains(", data: ArrayLike | ropewalk.Sized = ...)"),
            "{stub}"
        );
        assert!(text("ropewalk_msgs/std_srvs.py").contains("SetBool = ServiceType("));
        assert!(text("ropewalk_msgs/std_msgs.pyi").contains("    stamp: ropewalk.Time\n"));
    }
}
