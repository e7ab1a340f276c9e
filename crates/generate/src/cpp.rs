//! C++17, based on the headers in `cpp/include/ropewalk`.
//!
//! A message is a structure in the namespace `ropewalk::msg::PACKAGE`: numbers, `std::string`, `std::array`, other
//! structures, `Bulk` for variable arrays of elements of fixed size, and `std::vector` for other variable arrays.
//! Structures of fixed size have the layout of elements of data parts, which the compiler checks.

use crate::literal::{self, Number, unquoted};
use crate::{File, Unit};
use schema::{Arity, Constant, Field, FieldType, Flavour, MessageType, Primitive, Schema, Service};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The header of one message or service.
pub(crate) fn header(unit: &Unit) -> File {
    let (name, types): (_, Vec<&Schema>) = match unit {
        Unit::Message(schema) => (schema.name().to_owned(), vec![schema]),
        Unit::Service(service) => (service.name(), vec![service.request(), service.response()]),
    };
    let (package, short) = name.split_once('/').unwrap_or(("", &name));
    let inner: BTreeSet<String> = (types.iter())
        .flat_map(|s| s.message_type().fields())
        .filter_map(|f| match &f.ty() {
            FieldType::Message(m) => Some(m.name().to_string()),
            _ => None,
        })
        .collect();
    let mut out = format!("// Made by `ropewalk gen cpp` from {name}; do not edit.\n#pragma once\n\n");
    let include = |name: &String| format!("#include \"ropewalk/msg/{name}.hpp\"\n");
    out.extend(inner.iter().map(include));
    out.push_str("#include \"ropewalk/codec.hpp\"\n\n");
    let _ = writeln!(out, "namespace ropewalk::msg::{package} {{\n");
    match unit {
        Unit::Message(schema) => structure(&mut out, short, schema.message_type(), ""),
        Unit::Service(service) => {
            let _ = writeln!(out, "struct {short} {{");
            structure(&mut out, "Request", service.request().message_type(), "    ");
            structure(&mut out, "Response", service.response().message_type(), "    ");
            out.push_str("};\n");
        }
    }
    let _ = writeln!(
        out,
        "\n}}  // namespace ropewalk::msg::{package}\n\nnamespace ropewalk {{\n"
    );
    let full = format!("msg::{package}::{short}");
    match unit {
        Unit::Message(schema) => info(&mut out, &full, &Info::of_message(schema)),
        Unit::Service(service) => {
            info(&mut out, &full, &Info::of_service(service));
            for (part, schema) in [("Request", service.request()), ("Response", service.response())] {
                info(&mut out, &format!("{full}::{part}"), &Info::of_message(schema));
            }
        }
    }
    for (schema, part) in types.iter().zip(parts(unit)) {
        if let Some((size, align)) = schema.message_type().c_layout().filter(|(size, _)| *size > 0) {
            let ty = format!("{full}{part}");
            let _ = writeln!(
                out,
                "static_assert(sizeof({ty}) == {size} && alignof({ty}) == {align}, \"the layout of elements\");"
            );
        }
    }
    for inner in inner {
        let _ = writeln!(
            out,
            "static_assert(Type<msg::{}>::flavour == Type<{full}{}>::flavour, \"{inner} is included for another version of ROS\");",
            inner.replace('/', "::"),
            parts(unit)[0],
        );
    }
    out.push_str("\n}  // namespace ropewalk\n");
    let path = PathBuf::from(format!("ropewalk/msg/{package}/{short}.hpp"));
    File { path, text: out }
}

fn parts(unit: &Unit) -> &'static [&'static str] {
    match unit {
        Unit::Message(_) => &[""],
        Unit::Service(_) => &["::Request", "::Response"],
    }
}

struct Info {
    name: String,
    md5: String,
    definition: String,
    flavour: Flavour,
}

impl Info {
    fn of_message(schema: &Schema) -> Self {
        Info {
            name: schema.name().to_owned(),
            md5: schema.md5_hex(),
            definition: schema.definition(),
            flavour: schema.flavour(),
        }
    }

    fn of_service(service: &Service) -> Self {
        Info {
            name: service.name(),
            md5: service.md5_hex(),
            definition: service.definition(),
            flavour: service.request().flavour(),
        }
    }
}

fn info(out: &mut String, ty: &str, info: &Info) {
    let flavour = match info.flavour {
        Flavour::Ros1 => "ROPEWALK_FLAVOUR_ROS1",
        Flavour::Ros2 => "ROPEWALK_FLAVOUR_ROS2",
    };
    let _ = write!(
        out,
        "template <>\nstruct Type<{ty}> {{\n    \
         static constexpr const char* name = {};\n    \
         static constexpr const char* md5 = \"{}\";\n    \
         static constexpr std::uint32_t flavour = {flavour};\n    \
         static constexpr const char* definition() {{\n        return\n",
        quoted(&info.name),
        info.md5,
    );
    // Line by line, for readability, and because a compiler need not accept long literals.
    for line in info.definition.split_inclusive('\n') {
        let _ = writeln!(out, "            {}", quoted(line));
    }
    if info.definition.is_empty() {
        out.push_str("            \"\"\n");
    }
    out.push_str("            ;\n    }\n};\n");
}

fn structure(out: &mut String, name: &str, ty: &MessageType, indent: &str) {
    let _ = writeln!(out, "{indent}struct {name} {{");
    for constant in ty.constants() {
        let _ = writeln!(out, "{indent}    {}", constant_line(constant, ty.flavour()));
    }
    for field in ty.fields() {
        let _ = writeln!(out, "{indent}    {}", member(field, ty.flavour()));
    }
    let _ = writeln!(
        out,
        "\n{indent}    template <class Self, class Visitor>\n\
         {indent}    static void ropewalk_fields([[maybe_unused]] Self& self, [[maybe_unused]] Visitor& visit) {{"
    );
    for field in ty.fields().iter().filter(|f| !is_nothing(f)) {
        let (name, id) = (field.name(), identifier(field.name()));
        let bound = match (field.arity(), field.ty()) {
            (Arity::Bounded(n), _) => format!(", {n}"),
            (Arity::One, FieldType::String { bound: Some(n) } | FieldType::WString { bound: Some(n) }) => {
                format!(", {n}")
            }
            _ => String::new(),
        };
        let _ = writeln!(out, "{indent}        visit(\"{name}\", self.{id}{bound});");
    }
    let _ = writeln!(out, "{indent}    }}\n{indent}}};");
}

/// Whether a field has no content: a message without fields, or fixed arrays of them.
fn is_nothing(field: &Field) -> bool {
    let nothing =
        matches!(field.ty(), FieldType::Message(m) if m.c_layout().is_some_and(|(size, _)| size == 0));
    nothing && matches!(field.arity(), Arity::One | Arity::Fixed(_)) || field.arity() == Arity::Fixed(0)
}

fn member(field: &Field, flavour: Flavour) -> String {
    let (element, id) = (element(field.ty(), flavour), identifier(field.name()));
    if is_nothing(field) {
        // A member would have a size in C++.
        return format!("static constexpr {element} {id}{{}};");
    }
    match field.arity() {
        Arity::One => format!("{element} {id}{};", initial(field, flavour)),
        Arity::Fixed(n) => format!("std::array<{element}, {n}> {id}{{}};"),
        Arity::Bounded(_) | Arity::Unbounded if is_bulk(field.ty()) => {
            format!("::ropewalk::Bulk<{element}> {id};")
        }
        Arity::Bounded(_) | Arity::Unbounded => format!("std::vector<{element}> {id};"),
    }
}

/// Whether a variable array of the type can be a data part.
fn is_bulk(ty: &FieldType) -> bool {
    match ty {
        FieldType::Primitive(_) => true,
        FieldType::Message(m) => m.c_layout().is_some_and(|(size, _)| size > 0),
        _ => false,
    }
}

fn element(ty: &FieldType, flavour: Flavour) -> String {
    match ty {
        FieldType::Primitive(p) => primitive(*p, flavour).into(),
        FieldType::String { .. } => "std::string".into(),
        FieldType::WString { .. } => "std::u16string".into(),
        FieldType::Message(m) => {
            format!("::ropewalk::msg::{}::{}", m.name().package(), m.name().name())
        }
        _ => unreachable!("the types of fields are those of the schema's version"),
    }
}

/// A `bool` is a byte, as in roscpp: a publisher may write values other than 0 and 1, which a C++ `bool` does not
/// allow.
fn primitive(p: Primitive, flavour: Flavour) -> &'static str {
    match (p, flavour) {
        (Primitive::Byte, Flavour::Ros1) | (Primitive::Int8, _) => "std::int8_t",
        (Primitive::Bool | Primitive::Byte | Primitive::Char | Primitive::Uint8, _) => "std::uint8_t",
        (Primitive::Int16, _) => "std::int16_t",
        (Primitive::Uint16, _) => "std::uint16_t",
        (Primitive::Int32, _) => "std::int32_t",
        (Primitive::Uint32, _) => "std::uint32_t",
        (Primitive::Int64, _) => "std::int64_t",
        (Primitive::Uint64, _) => "std::uint64_t",
        (Primitive::Float32, _) => "float",
        (Primitive::Float64, _) => "double",
        (Primitive::Time, _) => "::ropewalk::Time",
        (Primitive::Duration, _) => "::ropewalk::Duration",
    }
}

/// Initial value of a field: ROS 2's default, or nothing.
fn initial(field: &Field, flavour: Flavour) -> String {
    match (field.ty(), field.default_text()) {
        (FieldType::Primitive(Primitive::Time | Primitive::Duration), _) => String::new(),
        (FieldType::Primitive(p), default) => {
            let value = default.and_then(|d| number(*p, d)).unwrap_or_else(|| "0".into());
            format!(" = {value}")
        }
        (FieldType::String { .. }, Some(text)) => format!(" = {}", quoted(&unquoted(text, flavour))),
        _ => String::new(),
    }
}

fn constant_line(constant: &Constant, flavour: Flavour) -> String {
    let id = identifier(&constant.name);
    let number = literal::primitive(&constant.ty)
        .and_then(|p| Some((primitive(p, flavour), number(p, &constant.value)?)));
    match number {
        Some((ty, value)) => format!("static constexpr {ty} {id} = {value};"),
        None => {
            let text = quoted(&unquoted(&constant.value, flavour));
            format!("static constexpr const char* {id} = {text};")
        }
    }
}

/// A number of a definition as a C++ literal.
fn number(p: Primitive, text: &str) -> Option<String> {
    let ty = primitive(p, Flavour::Ros1);
    Some(match literal::number(p, text)? {
        Number::Float(v) if v.is_nan() => format!("std::numeric_limits<{ty}>::quiet_NaN()"),
        Number::Float(f64::INFINITY) => format!("std::numeric_limits<{ty}>::infinity()"),
        Number::Float(f64::NEG_INFINITY) => format!("-std::numeric_limits<{ty}>::infinity()"),
        // The shortest text that yields the same number.
        Number::Float(v) => format!("static_cast<{ty}>({v:?})"),
        Number::Integer(n) if n == i128::from(i64::MIN) => "(-9223372036854775807LL - 1)".into(),
        Number::Integer(n) if n > i128::from(i64::MAX) => format!("{n}ULL"),
        Number::Integer(n) if n.unsigned_abs() > i32::MAX as u128 => format!("{n}LL"),
        Number::Integer(n) => n.to_string(),
    })
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b'\n' => out.push_str("\\n"),
            // Octal escapes have at most three digits, so a following digit is never part of one.
            0x20..0x7f if byte != b'?' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// A name that is a C++ keyword gets an underscore.
fn identifier(name: &str) -> String {
    const WORDS: &str = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t \
        char32_t class compl concept const consteval constexpr constinit const_cast continue co_await co_return \
        co_yield decltype default delete do double dynamic_cast else enum explicit export extern false float for \
        friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private \
        protected public register reinterpret_cast requires return ropewalk_fields short signed sizeof static \
        static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename \
        union unsigned using virtual void volatile wchar_t while xor xor_eq ";
    if WORDS.contains(&format!(" {name} ")) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::Registry;

    fn made(flavour: Flavour, text: &str) -> String {
        let mut registry = Registry::new(flavour);
        registry.add_message("t/T", text).expect("parses");
        header(&Unit::Message(registry.schema("t/T").expect("compiles"))).text
    }

    #[test]
    fn fields_become_members() {
        let text = made(
            Flavour::Ros1,
            "bool on\nbyte b\ntime t\nstring[2] names\nfloat32[] r\nstd_msgs/Header[] h\nuint8 delete\n\
             geometry_msgs/Point[] p\nfloat64[9] m\nstd_msgs/Empty e",
        );
        for line in [
            "std::uint8_t on = 0;",
            "std::int8_t b = 0;",
            "::ropewalk::Time t;",
            "std::array<std::string, 2> names{};",
            "::ropewalk::Bulk<float> r;",
            "std::vector<::ropewalk::msg::std_msgs::Header> h;",
            "std::uint8_t delete_ = 0;",
            "::ropewalk::Bulk<::ropewalk::msg::geometry_msgs::Point> p;",
            "std::array<double, 9> m{};",
            "static constexpr ::ropewalk::msg::std_msgs::Empty e{};",
            "visit(\"delete\", self.delete_);",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("visit(\"e\""), "{text}");
    }

    #[test]
    fn constants_and_defaults_become_literals() {
        let text = made(
            Flavour::Ros2,
            "int64 LOW=-9223372036854775808\nuint64 HIGH=18446744073709551615\nfloat32 X=0.1\nbool ON=true\n\
             string S=\"a\\\"b\"\nint32 n 5\nstring s \"hello\"\nint32[<=3] a",
        );
        for line in [
            "static constexpr std::int64_t LOW = (-9223372036854775807LL - 1);",
            "static constexpr std::uint64_t HIGH = 18446744073709551615ULL;",
            "static constexpr float X = static_cast<float>(0.1);",
            "static constexpr std::uint8_t ON = 1;",
            "static constexpr const char* S = \"a\\\"b\";",
            "std::int32_t n = 5;",
            "std::string s = \"hello\";",
            "visit(\"a\", self.a, 3);",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
