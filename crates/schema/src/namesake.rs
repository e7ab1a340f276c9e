//! Types of the same name in both versions of ROS: when they are the same message, and how to convert one into the
//! other.
//!
//! ROS 2 changed ROS 1's types little: `Header` lost `seq`, `time` and `duration` became messages, `char` became
//! `uint8`, and names of fields are lower case (`CameraInfo`'s `D` is `d`). Only `seq` changes the bytes of a control
//! part; data parts are equal, since no type with a `Header` has a fixed size (decision 316).

use crate::definition::{Arity, Primitive};
use crate::md5::{digest, hex};
use crate::types::{FieldType, MessageType, dependencies};
use crate::{CodecError, DefinitionError, Flavour, LIFTED, MAX_COUNT, Registry, Schema, Service};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

impl Schema {
    /// The common sum of this type and its counterpart in the other ROS: the MD5 sum of the fields with their types,
    /// written alike for both. Types of one name with equal sums differ at most in what a [`Conversion`] converts.
    pub fn common_sum(&self) -> [u8; 16] {
        digest(&[text(&self.inner.ty, &mut BTreeMap::new())])
    }
}

impl Schema {
    /// The counterpart of this type in a ROS: the standard definition if that is the same message, else this type's
    /// definition written for that ROS (`time` and `duration`, names of fields in lower case in ROS 2, no bounds and
    /// defaults in ROS 1).
    ///
    /// # Errors
    /// [`DefinitionError`] if that ROS cannot express it (`wstring` in ROS 1; two names that are equal in lower case).
    pub fn in_flavour(&self, flavour: Flavour) -> Result<Schema, DefinitionError> {
        if self.flavour() == flavour {
            return Ok(self.clone());
        }
        let own = &self.inner.ty;
        let registry = with_types(dependencies(own.fields.iter()).into_iter().chain([own]), flavour)?;
        Ok(registry
            .schema(&own.name.to_string())?
            .with_threshold(self.threshold))
    }
}

/// Definitions of these types for a ROS whose standard types of the same names are other messages.
fn with_types<'a>(
    types: impl Iterator<Item = &'a Arc<MessageType>>,
    flavour: Flavour,
) -> Result<Registry, DefinitionError> {
    let mut registry = Registry::new(flavour);
    let standard = Registry::new(flavour);
    for ty in types {
        let name = ty.name.to_string();
        let known = standard.schema(&name);
        let same =
            |known: &Schema| text(&known.inner.ty, &mut BTreeMap::new()) == text(ty, &mut BTreeMap::new());
        // Types of `builtin_interfaces` are not messages in ROS 1.
        if own_word(ty).is_none() && !known.is_ok_and(|known| same(&known)) {
            registry.add_message(&name, &written(ty, flavour))?;
        }
    }
    Ok(registry)
}

/// The definition of a type of the other ROS, written for `flavour`.
fn written(ty: &MessageType, flavour: Flavour) -> String {
    let mut out = String::new();
    for c in &ty.constants {
        let value = match (flavour, c.ty.starts_with("string")) {
            (Flavour::Ros2, true) => format!("\"{}\"", c.value.escape_default()),
            (Flavour::Ros1, true) => unquoted(&c.value),
            _ => c.value.clone(),
        };
        let _ = writeln!(out, "{} {}={value}", c.ty, c.name);
    }
    for f in &ty.fields {
        let of = match &f.ty {
            FieldType::Primitive(p @ (Primitive::Time | Primitive::Duration)) => {
                let short = p.name();
                let (first, rest) = short.split_at(1);
                format!("builtin_interfaces/{}{rest}", first.to_ascii_uppercase())
            }
            FieldType::Message(m) if flavour == Flavour::Ros1 => match own_word(m) {
                Some(word @ ("time" | "duration")) => word.to_owned(),
                _ => m.name.to_string(),
            },
            FieldType::String { .. } if flavour == Flavour::Ros1 => "string".to_owned(),
            ty => ty.to_string(),
        };
        let (arity, name) = match (flavour, f.arity) {
            (Flavour::Ros1, Arity::Bounded(_)) => (Arity::Unbounded, f.name.clone()),
            (Flavour::Ros1, arity) => (arity, f.name.clone()),
            (Flavour::Ros2, arity) => (arity, f.name.to_ascii_lowercase()),
        };
        let _ = writeln!(out, "{of}{arity} {name}");
    }
    out
}

/// A ROS 2 string constant without its quotes.
fn unquoted(value: &str) -> String {
    let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    quoted('"').or_else(|| quoted('\'')).unwrap_or(value).to_owned()
}

impl Service {
    /// As [`Schema::common_sum`], over both parts; `None` if one of them has a `Header`, whose bytes differ.
    pub fn common_sum(&self) -> Option<[u8; 16]> {
        let parts = [&self.request().inner.ty, &self.response().inner.ty];
        let converts = parts.iter().any(|ty| has_header(ty));
        (!converts).then(|| digest(&parts.map(|ty| text(ty, &mut BTreeMap::new()))))
    }

    /// The counterpart of this service in a ROS, as [`Schema::in_flavour`].
    ///
    /// # Errors
    /// [`DefinitionError`], as there.
    pub fn in_flavour(&self, flavour: Flavour) -> Result<Service, DefinitionError> {
        let (request, response) = (self.request(), self.response());
        if request.flavour() == flavour {
            return Ok(self.clone());
        }
        let name = self.name();
        if let Ok(standard) = Registry::new(flavour).service(&name)
            && standard
                .common_sum()
                .is_some_and(|sum| Some(sum) == self.common_sum())
        {
            return Ok(standard);
        }
        let parts = [request, response].map(|part| &part.inner.ty);
        let fields = parts.iter().flat_map(|ty| &ty.fields);
        let mut registry = with_types(dependencies(fields).into_iter(), flavour)?;
        let [request, response] = parts.map(|ty| written(ty, flavour));
        registry.add_service(&name, &format!("{request}---\n{response}"))?;
        registry.service(&name)
    }
}

fn text(ty: &MessageType, done: &mut BTreeMap<String, String>) -> String {
    let mut out = String::new();
    for f in &ty.fields {
        let written = match &f.ty {
            FieldType::Primitive(Primitive::Char) => "uint8".to_owned(),
            FieldType::String { .. } => "string".to_owned(),
            FieldType::WString { .. } => "wstring".to_owned(),
            FieldType::Message(m) => match done.get(&m.name.to_string()) {
                Some(known) => known.clone(),
                None => {
                    let known = own_word(m).map_or_else(|| hex(&digest(&[text(m, done)])), str::to_owned);
                    done.insert(m.name.to_string(), known.clone());
                    known
                }
            },
            ty => ty.to_string(),
        };
        // ROS 1 has no bounds: a message that exceeds one is refused when it is converted.
        let arity = match f.arity {
            Arity::Bounded(_) => Arity::Unbounded,
            other => other,
        };
        let _ = writeln!(out, "{written}{arity} {}", f.name.to_ascii_lowercase());
    }
    match own_word(ty) {
        Some(word) => word.to_owned(),
        None => out,
    }
}

/// Types that the two versions of ROS write differently.
fn own_word(ty: &MessageType) -> Option<&'static str> {
    match (ty.name.package(), ty.name.name()) {
        ("builtin_interfaces", "Time") => Some("time"),
        ("builtin_interfaces", "Duration") => Some("duration"),
        _ => is_header(ty).then_some("Header"),
    }
}

/// Whether this is the `std_msgs/Header` of its ROS.
fn is_header(ty: &MessageType) -> bool {
    let names: Vec<_> = ty.fields.iter().map(|f| f.name.as_str()).collect();
    let expected: &[&str] = match ty.flavour {
        Flavour::Ros1 => &["seq", "stamp", "frame_id"],
        Flavour::Ros2 => &["stamp", "frame_id"],
    };
    ty.name.package() == "std_msgs" && ty.name.name() == "Header" && names == expected
}

fn has_header(ty: &MessageType) -> bool {
    is_header(ty)
        || ty.fields.iter().any(|f| match &f.ty {
            FieldType::Message(m) => has_header(m),
            _ => false,
        })
}

/// Converts control parts of a type into those of its counterpart in the other ROS. Data parts stay unchanged.
#[derive(Clone, Debug)]
pub struct Conversion {
    steps: Box<[Step]>,
    /// Whether a `Header` loses its `seq`, or gains a `seq` of 0.
    from: Flavour,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Equal bytes.
    Copy(u32),
    /// The `seq` of a `Header`.
    Seq,
    /// A length, and that many units of this size in bytes.
    Text(u32),
    /// This many elements.
    Repeat(u32, Box<[Step]>),
    /// A count, and that many elements.
    List(Box<[Step]>),
    /// A count, and that many elements of this size in bytes, unless they are a data part.
    Lift(u32),
}

impl Conversion {
    /// Converts messages of `of`'s counterpart in the other ROS into messages of `of`. `None` if there is nothing to
    /// convert.
    ///
    /// Only for messages of a type with the same [`Schema::common_sum`]; others give an error or an invalid control
    /// part.
    pub fn new(of: &Schema) -> Option<Self> {
        let ty = &of.inner.ty;
        if !has_header(ty) {
            return None;
        }
        let mut steps = Vec::new();
        message(ty, &mut steps);
        Some(Conversion {
            steps: steps.into(),
            from: of.flavour().other(),
        })
    }

    /// Converts a control part. Uses memory in proportion to it.
    ///
    /// # Errors
    /// [`CodecError`] if the control part is too short or too long.
    pub fn control(&self, control: &[u8]) -> Result<Vec<u8>, CodecError> {
        let mut walk = Walk {
            bytes: control,
            at: 0,
            out: Vec::with_capacity(control.len() + 16),
            from: self.from,
        };
        walk.steps(&self.steps)?;
        if walk.at < control.len() {
            return Err(CodecError::Trailing {
                offset: walk.at,
                extra: control.len() - walk.at,
            });
        }
        Ok(walk.out)
    }
}

fn message(ty: &MessageType, out: &mut Vec<Step>) {
    if is_header(ty) {
        out.push(Step::Seq);
        copy(8, out);
        out.push(Step::Text(1));
        return;
    }
    for f in &ty.fields {
        let fixed = match &f.ty {
            FieldType::Primitive(p) => Some(p.size()),
            FieldType::Message(m) => m.measure.fixed.as_ref().map(|fixed| fixed.packed),
            FieldType::String { .. } | FieldType::WString { .. } => None,
        };
        match (f.arity, fixed) {
            (Arity::One, Some(size)) => copy(size, out),
            (Arity::Fixed(n), Some(size)) => copy(size.saturating_mul(n), out),
            (Arity::One, None) => one(&f.ty, out),
            (Arity::Fixed(n), None) => out.push(Step::Repeat(n, body(&f.ty))),
            (Arity::Bounded(_) | Arity::Unbounded, Some(size)) => out.push(Step::Lift(size)),
            (Arity::Bounded(_) | Arity::Unbounded, None) => out.push(Step::List(body(&f.ty))),
        }
    }
}

fn one(ty: &FieldType, out: &mut Vec<Step>) {
    match ty {
        FieldType::Primitive(p) => copy(p.size(), out),
        FieldType::String { .. } => out.push(Step::Text(1)),
        FieldType::WString { .. } => out.push(Step::Text(2)),
        FieldType::Message(m) => message(m, out),
    }
}

fn body(ty: &FieldType) -> Box<[Step]> {
    let mut out = Vec::new();
    one(ty, &mut out);
    out.into()
}

/// Merges copies of neighbouring fields.
fn copy(len: u32, out: &mut Vec<Step>) {
    match out.last_mut() {
        _ if len == 0 => {}
        Some(Step::Copy(before)) => *before = before.saturating_add(len),
        _ => out.push(Step::Copy(len)),
    }
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
    from: Flavour,
}

impl Walk<'_> {
    fn steps(&mut self, steps: &[Step]) -> Result<(), CodecError> {
        for step in steps {
            match step {
                Step::Copy(len) => self.copy((*len).into())?,
                Step::Seq => match self.from {
                    Flavour::Ros1 => drop(self.take(4)?),
                    Flavour::Ros2 => self.out.extend([0; 4]),
                },
                Step::Text(unit) => {
                    let units = self.count()?;
                    self.copy(u64::from(units) * u64::from(*unit))?;
                }
                Step::Repeat(n, body) => {
                    for _ in 0..*n {
                        self.steps(body)?;
                    }
                }
                // Every element of variable size takes some bytes, so that a forged count ends with the input.
                Step::List(body) => {
                    for _ in 0..self.count()? {
                        self.steps(body)?;
                    }
                }
                Step::Lift(size) => {
                    let count = self.count()?;
                    if count & LIFTED == 0 {
                        self.copy(u64::from(count & MAX_COUNT) * u64::from(*size))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn count(&mut self) -> Result<u32, CodecError> {
        let bytes = self.take(4)?;
        self.out.extend(bytes);
        Ok(bytes.try_into().map_or(0, u32::from_le_bytes))
    }

    fn copy(&mut self, len: u64) -> Result<(), CodecError> {
        let bytes = self.take(len)?;
        self.out.extend(bytes);
        Ok(())
    }
}

impl<'a> Walk<'a> {
    fn take(&mut self, needed: u64) -> Result<&'a [u8], CodecError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(needed).ok().and_then(|n| rest.get(..n));
        let Some(taken) = taken else {
            return Err(CodecError::Truncated {
                field: "message".into(),
                offset: self.at,
                needed,
                left: rest.len(),
            });
        };
        self.at += taken.len();
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    fn both(name: &str) -> (Schema, Schema) {
        let of = |flavour| Registry::new(flavour).schema(name).expect(name);
        (of(Flavour::Ros1), of(Flavour::Ros2))
    }

    #[test]
    fn standard_types_of_both_ros_are_the_same_message() {
        let (one, two) = (Registry::new(Flavour::Ros1), Registry::new(Flavour::Ros2));
        let mut common = 0;
        for name in one.names() {
            let name = name.to_string();
            let (Ok(a), Ok(b)) = (one.schema(&name), two.schema(&name)) else {
                continue;
            };
            common += usize::from(a.common_sum() == b.common_sum());
        }
        assert!(common > 90, "{common}");
        for name in [
            "sensor_msgs/Image",
            "sensor_msgs/CameraInfo",
            "sensor_msgs/PointCloud2",
            "tf2_msgs/TFMessage",
            "nav_msgs/Path",
            "std_msgs/Header",
            "std_msgs/String",
            "std_msgs/Char",
            "diagnostic_msgs/DiagnosticArray",
        ] {
            let (a, b) = both(name);
            assert_eq!(a.common_sum(), b.common_sum(), "{name}");
        }
        let mut other = Registry::new(Flavour::Ros2);
        other
            .add_message("std_msgs/String", "string text")
            .expect("parses");
        let other = other.schema("std_msgs/String").expect("known");
        assert_ne!(other.common_sum(), both("std_msgs/String").0.common_sum());
    }

    #[test]
    fn services_are_written_as_the_other_ros_writes_them() {
        for (from, to) in [(Flavour::Ros1, Flavour::Ros2), (Flavour::Ros2, Flavour::Ros1)] {
            let (registry, theirs) = (Registry::new(from), Registry::new(to));
            for name in ["std_srvs/SetBool", "std_srvs/Trigger", "std_srvs/Empty"] {
                let own = registry.service(name).expect("known");
                let other = own.in_flavour(to).expect("is written");
                assert_eq!(
                    other.type_hash(),
                    theirs.service(name).expect("known").type_hash()
                );
            }
            let mut registry = registry;
            let text = "time at\nt/Part[] parts\n---\nbool good\nstring why\n";
            let text = match from {
                Flavour::Ros1 => text.to_owned(),
                Flavour::Ros2 => text.replace("time at", "builtin_interfaces/Time at"),
            };
            registry.add_message("t/Part", "float64 x").expect("parses");
            registry.add_service("t/Do", &text).expect("parses");
            let own = registry.service("t/Do").expect("known");
            let other = own.in_flavour(to).expect("is written");
            assert_eq!(other.request().flavour(), to);
            assert_eq!((other.common_sum(), other.name()), (own.common_sum(), own.name()));
            let back = other.in_flavour(from).expect("is written");
            assert_eq!(back.md5(), own.md5());
        }
    }

    #[test]
    fn definitions_are_written_as_the_other_ros_writes_them() {
        let registries = [Registry::new(Flavour::Ros1), Registry::new(Flavour::Ros2)];
        let mut written = 0;
        for (from, to) in [(&registries[0], Flavour::Ros2), (&registries[1], Flavour::Ros1)] {
            for name in from.names() {
                let own = from.schema(&name.to_string()).expect("known");
                let Ok(other) = own.in_flavour(to) else { continue };
                assert_eq!(
                    (other.flavour(), other.common_sum()),
                    (to, own.common_sum()),
                    "{name}"
                );
                written += 1;
            }
        }
        assert!(written > 300, "{written}");
        // A user's type with all differences, there and back.
        let mut registry = Registry::new(Flavour::Ros1);
        let text = "string NAME=it's \"so\"\nint8 N=-3\nHeader header\ntime[] Stamps\nduration d\nt/Part[2] parts\nchar c\n";
        registry
            .add_message("t/Part", "byte B\nstring s")
            .expect("parses");
        registry.add_message("t/Whole", text).expect("parses");
        let one = registry.schema("t/Whole").expect("known");
        let two = one.in_flavour(Flavour::Ros2).expect("is written");
        assert!(
            two.definition().contains("builtin_interfaces/Time[] stamps"),
            "{}",
            two.definition()
        );
        assert_eq!(two.common_sum(), one.common_sum());
        let back = two.in_flavour(Flavour::Ros1).expect("is written");
        assert_eq!(back.common_sum(), one.common_sum());
        assert!(
            back.definition().contains("time[] stamps"),
            "{}",
            back.definition()
        );
        // The registry parses the definition again.
        let mut again = Registry::new(Flavour::Ros2);
        again.add_embedded("t/Whole", &two.definition()).expect("parses");
        assert_eq!(again.schema("t/Whole").expect("known").rihs01(), two.rihs01());
        let mut wide = Registry::new(Flavour::Ros2);
        wide.add_message("t/Wide", "wstring w").expect("parses");
        assert!(
            wide.schema("t/Wide")
                .expect("known")
                .in_flavour(Flavour::Ros1)
                .is_err()
        );
    }

    #[test]
    fn a_path_loses_and_gains_every_seq_and_nothing_else() {
        let (one, two) = both("nav_msgs/Path");
        let text = "{header: {seq: 7, stamp: {secs: 1, nsecs: 2}, frame_id: map}, poses: [{header: {seq: 8, frame_id: a}, \
                    pose: {position: {x: 1.5}}}, {pose: {orientation: {w: 1.0}}}]}";
        let value = one.value_from_yaml(text).expect("a value");
        let split = one.encode(&value).expect("a message");
        let there = Conversion::new(&two).expect("converts");
        let converted = there.control(&split.control).expect("converts");
        assert_eq!(converted.len() + 3 * 4, split.control.len());
        let read = two.decode(&converted, &split.slices()).expect("a message");
        assert!(!format!("{read:?}").contains("seq"));
        let back = Conversion::new(&one).expect("converts");
        let back = back.control(&converted).expect("converts");
        let again = one.decode(&back, &split.slices()).expect("a message");
        let without = text.replace("seq: 7, ", "").replace("seq: 8, ", "");
        assert_eq!(again, one.value_from_yaml(&without).expect("a value"));
    }
}
