//! Rust, based on the module `typed` of the crate `ropewalk`.
//!
//! A message is a structure in a module named like its package: numbers, `String`, arrays, other structures, `Bulk` for
//! variable arrays of elements of fixed size, and `Vec` for other variable arrays. It has a lifetime if it contains a
//! bulk field (decision 223).

use crate::literal::{self, Number, unquoted};
use crate::{File, Unit};
use schema::{Arity, Constant, Field, FieldType, Flavour, MessageType, Primitive};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The modules of all packages in `units`, and the module that declares them.
pub(crate) fn modules<'a>(units: impl Iterator<Item = &'a Unit>) -> Vec<File> {
    let mut packages: BTreeMap<String, Vec<&Unit>> = BTreeMap::new();
    for unit in units {
        let name = unit.name();
        let package = name.split_once('/').map_or("", |(package, _)| package);
        packages.entry(package.to_owned()).or_default().push(unit);
    }
    let file = |name: &str, text| File {
        path: PathBuf::from(format!("ropewalk_msgs/{name}.rs")),
        text,
    };
    let mut all = String::from(HEAD);
    all.push_str("//! Types of messages and services, by package.\n");
    // Two lines, since rustfmt breaks longer ones.
    all.push_str("#![allow(dead_code, unused_variables, missing_docs)]\n");
    all.push_str("#![allow(unreachable_pub, nonstandard_style, clippy::all)]\n\n");
    for package in packages.keys() {
        let _ = writeln!(all, "#[rustfmt::skip]\npub mod {};", identifier(package));
    }
    let mut files: Vec<File> = (packages.iter())
        .map(|(package, units)| file(package, module(package, units)))
        .collect();
    files.push(file("mod", all));
    files
}

const HEAD: &str = "// Made by `ropewalk gen rust`; do not edit.\n";

fn module(package: &str, units: &[&Unit]) -> String {
    let mut out = format!("{HEAD}//! The types of {package}.\n\nuse ropewalk::typed;\n");
    for unit in units {
        let name = unit.name();
        let short = name.split_once('/').map_or("", |(_, short)| short);
        match unit {
            Unit::Message(schema) => {
                structure(&mut out, short, schema.message_type());
                let of = |life| lifetime(schema.message_type(), life);
                info(&mut out, &format!("{short}{}", of("<'_>")), unit);
                let _ = writeln!(
                    out,
                    "\nimpl typed::Structure for {short}{} {{\n    type View<'a> = {short}{};\n}}",
                    of("<'static>"),
                    of("<'a>")
                );
            }
            Unit::Service(service) => {
                let (request, response) = (
                    service.request().message_type(),
                    service.response().message_type(),
                );
                structure(&mut out, &format!("{short}Request"), request);
                structure(&mut out, &format!("{short}Response"), response);
                let _ = writeln!(
                    out,
                    "\n/// The service {name}.\n#[derive(Clone, Copy, Debug)]\npub struct {short};"
                );
                info(&mut out, short, unit);
                let _ = writeln!(
                    out,
                    "\nimpl typed::ServiceType for {short} {{\n    type Request<'a> = {short}Request{};\n    \
                     type Response<'a> = {short}Response{};\n}}",
                    lifetime(request, "<'a>"),
                    lifetime(response, "<'a>")
                );
            }
        }
    }
    out
}

/// `life` if the structure borrows from its message.
fn lifetime<'a>(ty: &MessageType, life: &'a str) -> &'a str {
    if has_bulk(ty) { life } else { "" }
}

/// Name, hash and definition.
fn info(out: &mut String, ty: &str, unit: &Unit) {
    let (definition, md5) = unit.text();
    let flavour = match unit.schemas()[0].flavour() {
        Flavour::Ros1 => "Ros1",
        Flavour::Ros2 => "Ros2",
    };
    let _ = write!(
        out,
        "\nimpl typed::Typed for {ty} {{\n    const NAME: &'static str = {:?};\n    const MD5: &'static str = {md5:?};\n    \
         const FLAVOUR: ropewalk::Flavour = ropewalk::Flavour::{flavour};\n    const DEFINITION: &'static str = concat!(\n",
        unit.name()
    );
    for line in definition.split_inclusive('\n') {
        let _ = writeln!(out, "        {line:?},");
    }
    out.push_str("    );\n}\n");
}

fn structure(out: &mut String, name: &str, ty: &MessageType) {
    let bulk = has_bulk(ty);
    let (life, of) = if bulk { ("<'a>", "<'a>") } else { ("", "") };
    let flavour = ty.flavour();
    let _ = writeln!(
        out,
        "\n/// {}\n#[derive(Clone, Debug, PartialEq)]\npub struct {name}{life} {{",
        ty.name()
    );
    for field in ty.fields() {
        let _ = writeln!(
            out,
            "    pub {}: {},",
            identifier(field.name()),
            member(field, flavour)
        );
    }
    let _ = writeln!(
        out,
        "}}\n\nimpl{life} Default for {name}{of} {{\n    fn default() -> Self {{\n        {name} {{"
    );
    for field in ty.fields() {
        let _ = writeln!(
            out,
            "            {}: {},",
            identifier(field.name()),
            initial(field, flavour)
        );
    }
    let _ = writeln!(out, "        }}\n    }}\n}}");
    if !ty.constants().is_empty() {
        let _ = writeln!(out, "\nimpl{life} {name}{of} {{");
        for constant in ty.constants() {
            let _ = writeln!(out, "    {}", constant_line(constant, flavour));
        }
        out.push_str("}\n");
    }
    let _ = writeln!(
        out,
        "\nimpl<'a> typed::Fields<'a> for {name}{of} {{\n    fn put(&self, to: &mut typed::Put) -> Result<(), typed::FieldError> {{"
    );
    for field in ty.fields() {
        let _ = writeln!(out, "        {}", put(field));
    }
    let _ = writeln!(
        out,
        "        Ok(())\n    }}\n\n    fn get(from: &mut typed::Get<'a>) -> Result<Self, typed::FieldError> {{\n        Ok({name} {{"
    );
    for field in ty.fields() {
        let _ = writeln!(out, "            {}: {},", identifier(field.name()), get(field));
    }
    out.push_str("        })\n    }\n}\n");
    if let Some((size, align)) = ty.c_layout().filter(|(size, _)| *size > 0) {
        element(out, name, ty, size, align);
    }
}

/// Implements `Element` for arrays in shared memory. Structures of fixed size have neither strings nor variable arrays.
fn element(out: &mut String, name: &str, ty: &MessageType, size: usize, align: usize) {
    let (mut loads, mut stores, mut offset) = (String::new(), String::new(), 0);
    for field in ty.fields() {
        let (one, aligned) = match field.ty() {
            FieldType::Primitive(p) => primitive_layout(*p),
            FieldType::Message(m) => m.c_layout().unwrap_or((0, 1)),
            _ => (0, 1),
        };
        offset = usize::next_multiple_of(offset, aligned.max(1));
        let id = identifier(field.name());
        match field.arity() {
            Arity::Fixed(n) if one > 0 => {
                let _ = writeln!(
                    loads,
                    "            {id}: std::array::from_fn(|i| typed::load_at(bytes, {offset} + i * {one})),"
                );
                let _ = writeln!(
                    stores,
                    "        for (i, element) in self.{id}.iter().enumerate() {{\n            \
                     typed::store_at(element, bytes, {offset} + i * {one});\n        }}"
                );
                offset += one * n as usize;
            }
            Arity::One if one > 0 => {
                let _ = writeln!(loads, "            {id}: typed::load_at(bytes, {offset}),");
                let _ = writeln!(stores, "        typed::store_at(&self.{id}, bytes, {offset});");
                offset += one;
            }
            _ => {
                let _ = writeln!(loads, "            {id}: {},", initial(field, ty.flavour()));
            }
        }
    }
    let _ = writeln!(
        out,
        "\nimpl Copy for {name} {{}}\n\nimpl typed::Element for {name} {{\n    const SIZE: usize = {size};\n    \
         const ALIGN: usize = {align};\n\n    fn load(bytes: &[u8]) -> Self {{\n        {name} {{\n{loads}        }}\n    }}\n\n    \
         fn store(&self, bytes: &mut [u8]) {{\n        if let Some(bytes) = bytes.get_mut(..{size}) {{\n            \
         bytes.fill(0);\n        }}\n{stores}    }}\n}}"
    );
}

fn has_bulk(ty: &MessageType) -> bool {
    ty.fields().iter().any(|field| match field.ty() {
        _ if is_bulk(field) => true,
        FieldType::Message(m) => has_bulk(m),
        _ => false,
    })
}

/// Whether a field can be a data part.
fn is_bulk(field: &Field) -> bool {
    let fixed = match field.ty() {
        FieldType::Primitive(_) => true,
        FieldType::Message(m) => m.c_layout().is_some_and(|(size, _)| size > 0),
        _ => false,
    };
    fixed && matches!(field.arity(), Arity::Bounded(_) | Arity::Unbounded)
}

fn member(field: &Field, flavour: Flavour) -> String {
    let one = one(field.ty(), flavour);
    match field.arity() {
        Arity::One => one,
        Arity::Fixed(n) => format!("[{one}; {n}]"),
        _ if is_bulk(field) => format!("typed::Bulk<'a, {one}>"),
        _ => format!("::std::vec::Vec<{one}>"),
    }
}

fn one(ty: &FieldType, flavour: Flavour) -> String {
    match ty {
        FieldType::Primitive(p) => primitive(*p, flavour).into(),
        FieldType::String { .. } => "::std::string::String".into(),
        FieldType::WString { .. } => "::std::vec::Vec<u16>".into(),
        FieldType::Message(m) => {
            let life = if has_bulk(m) { "<'a>" } else { "" };
            let (package, name) = (identifier(m.name().package()), m.name().name());
            format!("super::{package}::{name}{life}")
        }
        _ => unreachable!("the types of fields are those of the schema's version"),
    }
}

/// A `bool` is a byte: a publisher may write values other than 0 and 1.
fn primitive(p: Primitive, flavour: Flavour) -> &'static str {
    match (p, flavour) {
        (Primitive::Byte, Flavour::Ros1) | (Primitive::Int8, _) => "i8",
        (Primitive::Bool | Primitive::Byte | Primitive::Char | Primitive::Uint8, _) => "u8",
        (Primitive::Int16, _) => "i16",
        (Primitive::Uint16, _) => "u16",
        (Primitive::Int32, _) => "i32",
        (Primitive::Uint32, _) => "u32",
        (Primitive::Int64, _) => "i64",
        (Primitive::Uint64, _) => "u64",
        (Primitive::Float32, _) => "f32",
        (Primitive::Float64, _) => "f64",
        (Primitive::Time, _) => "typed::RosTime",
        (Primitive::Duration, _) => "typed::RosDuration",
    }
}

fn primitive_layout(p: Primitive) -> (usize, usize) {
    match p {
        Primitive::Time | Primitive::Duration => (8, 4),
        Primitive::Int16 | Primitive::Uint16 => (2, 2),
        Primitive::Int32 | Primitive::Uint32 | Primitive::Float32 => (4, 4),
        Primitive::Int64 | Primitive::Uint64 | Primitive::Float64 => (8, 8),
        _ => (1, 1),
    }
}

/// The bound of a string.
fn text_bound(ty: &FieldType) -> String {
    match ty {
        FieldType::String { bound: Some(n) } | FieldType::WString { bound: Some(n) } => format!("Some({n})"),
        _ => "None".into(),
    }
}

fn bound(field: &Field) -> String {
    match field.arity() {
        Arity::Bounded(n) => format!("Some({n})"),
        _ => "None".into(),
    }
}

fn put(field: &Field) -> String {
    let (name, id) = (field.name(), identifier(field.name()));
    let each = |place: &str, is_reference: bool| {
        let by = if is_reference { "" } else { "&" };
        match field.ty() {
            FieldType::Primitive(_) => format!("to.word({by}{place});"),
            FieldType::String { .. } => {
                format!("to.text({name:?}, {by}{place}, {})?;", text_bound(field.ty()))
            }
            FieldType::WString { .. } => {
                format!("to.wide({name:?}, {by}{place}, {})?;", text_bound(field.ty()))
            }
            _ => format!("to.message({name:?}, {by}{place})?;"),
        }
    };
    let own = format!("self.{id}");
    match field.arity() {
        Arity::One => each(&own, false),
        Arity::Fixed(_) => format!("for element in &{own} {{ {} }}", each("element", true)),
        _ if is_bulk(field) => format!("to.bulk({name:?}, &{own}, {})?;", bound(field)),
        _ => format!(
            "to.list({name:?}, {own}.len(), {})?;\n        for element in &{own} {{ {} }}",
            bound(field),
            each("element", true)
        ),
    }
}

fn get(field: &Field) -> String {
    let name = field.name();
    let each = match field.ty() {
        FieldType::Primitive(_) => format!("from.word({name:?})"),
        FieldType::String { .. } => format!("from.text({name:?}, {})", text_bound(field.ty())),
        FieldType::WString { .. } => format!("from.wide({name:?}, {})", text_bound(field.ty())),
        _ => "from.message()".into(),
    };
    match field.arity() {
        Arity::One => format!("{each}?"),
        Arity::Fixed(_) => format!("from.array(|from| {each})?"),
        _ if is_bulk(field) => format!("from.bulk({name:?}, {})?", bound(field)),
        _ => format!("from.vec({name:?}, {}, |from| {each})?", bound(field)),
    }
}

/// Initial value of a field: ROS 2's default, or nothing.
fn initial(field: &Field, flavour: Flavour) -> String {
    let default = field.default_text();
    match (field.arity(), field.ty(), default) {
        (Arity::Fixed(_), ..) => "std::array::from_fn(|_| Default::default())".into(),
        (Arity::One, FieldType::Primitive(p), Some(text)) if !is_time(*p) => {
            number(*p, text, flavour).unwrap_or_else(|| "Default::default()".into())
        }
        (Arity::One, FieldType::String { .. }, Some(text)) => format!("{:?}.into()", unquoted(text, flavour)),
        _ => "Default::default()".into(),
    }
}

fn is_time(p: Primitive) -> bool {
    matches!(p, Primitive::Time | Primitive::Duration)
}

fn constant_line(constant: &Constant, flavour: Flavour) -> String {
    let id = identifier(&constant.name);
    let number = literal::primitive(&constant.ty)
        .and_then(|p| Some((primitive(p, flavour), number(p, &constant.value, flavour)?)));
    match number {
        Some((ty, value)) => format!("pub const {id}: {ty} = {value};"),
        None => format!(
            "pub const {id}: &'static str = {:?};",
            unquoted(&constant.value, flavour)
        ),
    }
}

/// A number of a definition as a Rust literal.
fn number(p: Primitive, text: &str, flavour: Flavour) -> Option<String> {
    let ty = primitive(p, flavour);
    Some(match literal::number(p, text)? {
        Number::Float(v) if v.is_nan() => format!("{ty}::NAN"),
        Number::Float(f64::INFINITY) => format!("{ty}::INFINITY"),
        Number::Float(f64::NEG_INFINITY) => format!("{ty}::NEG_INFINITY"),
        // The shortest text that yields the same number.
        Number::Float(v) => format!("{v:?}_f64 as {ty}"),
        // A number that does not fit is converted as in C.
        Number::Integer(n) => format!("{n}_i128 as {ty}"),
    })
}

/// A name that is a Rust keyword is escaped.
fn identifier(name: &str) -> String {
    const WORDS: &str = " abstract as async await become box break const continue do dyn else enum extern false final fn \
        for gen if impl in let loop macro match mod move mut override priv pub ref return static struct trait true try \
        type typeof unsafe unsized use virtual where while yield ";
    match name {
        "self" | "Self" | "super" | "crate" | "_" => format!("{name}_"),
        _ if WORDS.contains(&format!(" {name} ")) => format!("r#{name}"),
        _ => name.to_owned(),
    }
}
