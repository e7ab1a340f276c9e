//! Compiles a schema and the introspection tables of its type into a [`Plan`]. The two must agree in every field.

use super::Plan;
use super::layout::Element;
use super::memory::Access;
use super::plan::{Array, Life, Step, Text};
use crate::abi::introspection::{MessageMember, MessageMembers, type_id};
use crate::typesupport::{Language, TypeError};
use schema::{Arity, Field, FieldType, MessageType, Primitive, Schema};
use std::ffi::CStr;

impl Plan {
    /// # Safety
    /// `members` is null or points to introspection tables of `language`, whose functions have the types that they
    /// claim.
    pub(crate) unsafe fn compile(
        schema: &Schema,
        language: Language,
        members: *const MessageMembers,
    ) -> Result<Self, TypeError> {
        let mut compiler = Compiler {
            language,
            root: schema.ros2_name(),
            paths: Vec::new(),
        };
        let mut steps = Vec::new();
        // SAFETY: upheld by the caller.
        let (size, life) = unsafe {
            let root = Submessage {
                members,
                offset: 0,
                path: "",
            };
            compiler.message(schema.message_type(), root, &mut steps)?;
            let functions = (*members).init.zip((*members).fini);
            ((*members).size, functions.map(|(init, fini)| Life { init, fini }))
        };
        Ok(Self {
            steps: steps.into(),
            paths: compiler.paths,
            size,
            life,
        })
    }
}

struct Compiler {
    language: Language,
    /// The type's name, for errors.
    root: String,
    paths: Vec<String>,
}

/// A message inside the structure that the steps belong to.
#[derive(Clone, Copy)]
struct Submessage<'a> {
    members: *const MessageMembers,
    offset: usize,
    path: &'a str,
}

impl Compiler {
    /// Appends the steps of a message. Returns the minimum number of bytes in a control part.
    ///
    /// # Safety
    /// As [`Plan::compile`], for this message.
    unsafe fn message(
        &mut self,
        ty: &MessageType,
        at: Submessage<'_>,
        out: &mut Vec<Step>,
    ) -> Result<usize, TypeError> {
        let mut min = 0;
        // SAFETY: upheld by the caller.
        for (field, member) in unsafe { self.fields(ty, at) }? {
            let path = join(at.path, field.name());
            let offset = at.offset + member.offset as usize;
            // SAFETY: the tables of a member are as valid as those of its message.
            min += unsafe {
                match field.arity() {
                    Arity::One => self.one(field.ty(), &member, offset, &path, out)?,
                    Arity::Fixed(n) => self.fixed_array(field, &member, n as usize, offset, &path, out)?,
                    Arity::Bounded(n) => self.variable_array(field, &member, n, offset, &path, out)?,
                    Arity::Unbounded => self.variable_array(field, &member, u32::MAX, offset, &path, out)?,
                }
            };
        }
        Ok(min)
    }

    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn one(
        &mut self,
        ty: &FieldType,
        member: &MessageMember,
        offset: usize,
        path: &str,
        out: &mut Vec<Step>,
    ) -> Result<usize, TypeError> {
        let (unit, bound) = match ty {
            FieldType::String { bound } => (1, bound),
            FieldType::WString { bound } => (2, bound),
            FieldType::Message(inner) => {
                // SAFETY: upheld by the caller.
                let members = unsafe { self.nested(member, path) }?;
                let at = Submessage {
                    members,
                    offset,
                    path,
                };
                // SAFETY: as above.
                return unsafe { self.message(inner, at, out) };
            }
            FieldType::Primitive(p) => {
                let len = p.size() as usize;
                self.copy(offset, len, *p == Primitive::Bool, path, out);
                return Ok(len);
            }
            _ => return Err(self.table(path, "another type", &ty.to_string())),
        };
        let text = Text {
            offset,
            unit,
            bound: bound.unwrap_or(u32::MAX),
            path: self.path(path),
            language: self.language,
        };
        out.push(Step::Text(text));
        Ok(4)
    }

    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn fixed_array(
        &mut self,
        field: &Field,
        member: &MessageMember,
        n: usize,
        offset: usize,
        path: &str,
        out: &mut Vec<Step>,
    ) -> Result<usize, TypeError> {
        let inside = format!("{path}[]");
        // SAFETY: upheld by the caller.
        if let Some(element) = unsafe { self.element(field.ty(), member, path) }? {
            for i in 0..n {
                if matches!(element.runs.as_slice(), [run] if run.len == element.stride) {
                    let bools = element.has_bools();
                    self.copy(offset, n * element.stride, bools, path, out);
                    break;
                }
                for run in &element.runs {
                    let at = offset + i * element.stride + run.memory;
                    self.copy(at, run.len, run.bools, path, out);
                }
            }
            return Ok(n * element.packed);
        }
        // SAFETY: as above.
        let stride = unsafe { self.stride(field.ty(), member, path) }?;
        let mut body = Vec::new();
        // SAFETY: as above.
        let min = unsafe { self.one(field.ty(), member, 0, &inside, &mut body) }?;
        out.push(Step::Repeat {
            offset,
            count: n,
            stride,
            body: body.into(),
        });
        Ok(n * min)
    }

    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn variable_array(
        &mut self,
        field: &Field,
        member: &MessageMember,
        bound: u32,
        offset: usize,
        path: &str,
        out: &mut Vec<Step>,
    ) -> Result<usize, TypeError> {
        // SAFETY: upheld by the caller.
        let element = unsafe { self.element(field.ty(), member, path) }?;
        // SAFETY: as above.
        let stride = unsafe { self.stride(field.ty(), member, path) }?;
        let array = Array {
            offset,
            stride,
            bound,
            path: self.path(path),
            // SAFETY: as above.
            access: unsafe { self.access(field, member, path) }?,
        };
        match element {
            Some(element) if element.packed > 0 => out.push(Step::Bulk { array, element }),
            _ => {
                let mut body = Vec::new();
                // SAFETY: as above.
                let min = unsafe { self.one(field.ty(), member, 0, &format!("{path}[]"), &mut body) }?;
                let body = body.into();
                out.push(Step::List { array, min, body });
            }
        }
        Ok(4)
    }

    /// Returns the functions that access a variable array.
    ///
    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn access(&self, field: &Field, member: &MessageMember, path: &str) -> Result<Access, TypeError> {
        let missing = || self.table(path, "no functions for it", &field.type_text());
        let resize = member.resize.ok_or_else(missing)?;
        if self.language == Language::C {
            return Ok(Access::C { resize });
        }
        // SAFETY: C++ tables have a function there that differs only in its return type.
        let resize = unsafe {
            std::mem::transmute::<
                unsafe extern "C" fn(*mut std::ffi::c_void, usize) -> bool,
                super::cxx::Resize,
            >(resize)
        };
        let size = member.size_function.ok_or_else(missing)?;
        if member.type_id == type_id::BOOLEAN {
            return Ok(Access::Bits {
                size,
                fetch: member.fetch.ok_or_else(missing)?,
                assign: member.assign.ok_or_else(missing)?,
                resize,
            });
        }
        let number = matches!(field.ty(), FieldType::Primitive(_)) && field.arity() == Arity::Unbounded;
        Ok(Access::Cxx {
            size,
            get_const: member.get_const.ok_or_else(missing)?,
            get: member.get.ok_or_else(missing)?,
            resize,
            numbers: number.then_some(member.type_id),
        })
    }

    /// Bytes from one element of an array to the next.
    ///
    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn stride(&self, ty: &FieldType, member: &MessageMember, path: &str) -> Result<usize, TypeError> {
        Ok(match ty {
            FieldType::Primitive(p) => p.size() as usize,
            FieldType::WString { .. } => Text::size(self.language, 2),
            FieldType::Message(_) => {
                // SAFETY: upheld by the caller.
                unsafe { (*self.nested(member, path)?).size }
            }
            _ => Text::size(self.language, 1),
        })
    }

    /// Returns the layout of a type of fixed size.
    ///
    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn element(
        &self,
        ty: &FieldType,
        member: &MessageMember,
        path: &str,
    ) -> Result<Option<Element>, TypeError> {
        let inner = match ty {
            FieldType::Primitive(p) => {
                return Ok(Some(Element::word(p.size() as usize, *p == Primitive::Bool)));
            }
            FieldType::Message(inner) if inner.fixed_size().is_some() => inner,
            _ => return Ok(None),
        };
        // SAFETY: upheld by the caller.
        let members = unsafe { self.nested(member, path) }?;
        let at = Submessage {
            members,
            offset: 0,
            path,
        };
        // SAFETY: `nested` returns valid tables.
        let mut out = Element::structure(unsafe { (*members).size });
        // SAFETY: as above.
        for (field, member) in unsafe { self.fields(inner, at) }? {
            let path = join(path, field.name());
            // SAFETY: as above.
            let Some(part) = (unsafe { self.element(field.ty(), &member, &path) })? else {
                return Err(self.table(&path, "a size that varies", &field.type_text()));
            };
            let count = match field.arity() {
                Arity::Fixed(n) => n as usize,
                _ => 1,
            };
            for i in 0..count {
                out.append(&part, member.offset as usize + i * part.stride);
            }
        }
        out.end();
        let (packed, layout) = (inner.fixed_size().unwrap_or(0), inner.c_layout());
        if packed != out.packed || layout != Some((out.natural, out.align)) {
            let found = format!("{} bytes", out.natural);
            return Err(self.table(path, &found, &format!("{layout:?}")));
        }
        Ok(Some(out))
    }

    /// Returns the fields of a message with their members, after comparing them.
    ///
    /// # Safety
    /// As [`Plan::compile`], for this message.
    unsafe fn fields<'t>(
        &self,
        ty: &'t MessageType,
        at: Submessage<'_>,
    ) -> Result<Vec<(&'t Field, MessageMember)>, TypeError> {
        // SAFETY: upheld by the caller.
        let Some(members) = (unsafe { at.members.as_ref() }) else {
            return Err(self.table(at.path, "no tables", &ty.ros2_name()));
        };
        let fields = ty.fields();
        if fields.is_empty() {
            // The structure has a byte that IDL requires and that none of this project's encodings has.
            return Ok(Vec::new());
        }
        if members.count as usize != fields.len() || members.members.is_null() {
            let found = format!("{} fields", members.count);
            return Err(self.table(at.path, &found, &fields.len().to_string()));
        }
        let mut out = Vec::with_capacity(fields.len());
        for (i, field) in fields.iter().enumerate() {
            // SAFETY: there are `count` members. Read the whole structure: C's getters write to the tables of nested
            // types whenever they are called, always the same values.
            let member = unsafe { members.members.add(i).read() };
            let path = join(at.path, field.name());
            // SAFETY: names are strings in static memory, or null.
            let name = unsafe { (!member.name.is_null()).then(|| CStr::from_ptr(member.name)) };
            if name.is_none_or(|n| n.to_bytes() != field.name().as_bytes()) {
                return Err(self.table(&path, &format!("{name:?}"), field.name()));
            }
            self.compare(field, &member, &path)?;
            // SAFETY: as above.
            let size = unsafe { self.size_in_memory(field, &member, &path) }?;
            let end = (member.offset as usize).checked_add(size);
            if end.is_none_or(|end| end > members.size) {
                let found = format!("{size} bytes at {} of {}", member.offset, members.size);
                return Err(self.table(&path, &found, &field.type_text()));
            }
            out.push((field, member));
        }
        Ok(out)
    }

    /// Compares type, bounds and alignment of a field.
    fn compare(&self, field: &Field, member: &MessageMember, path: &str) -> Result<(), TypeError> {
        let id = member.type_id;
        let (same, word) = match field.ty() {
            FieldType::Primitive(p) => (is_primitive(id, *p), p.size() as usize),
            FieldType::String { bound } => (
                id == type_id::STRING && member.string_upper_bound == bound.unwrap_or(0) as usize,
                align_of::<usize>(),
            ),
            FieldType::WString { bound } => (
                id == type_id::WSTRING && member.string_upper_bound == bound.unwrap_or(0) as usize,
                align_of::<usize>(),
            ),
            FieldType::Message(_) => (id == type_id::MESSAGE, 1),
            _ => (false, 1),
        };
        let (arity, size) = (field.arity(), member.array_size);
        let array = match (member.is_array, member.is_upper_bound) {
            (false, _) => arity == Arity::One,
            (true, true) => matches!(arity, Arity::Bounded(n) if n as usize == size),
            (true, false) if size == 0 => matches!(arity, Arity::Unbounded | Arity::Fixed(0)),
            (true, false) => matches!(arity, Arity::Fixed(n) if n as usize == size),
        };
        let word = match arity {
            Arity::Bounded(_) | Arity::Unbounded => align_of::<usize>(),
            _ => word,
        };
        if !same || !array || !(member.offset as usize).is_multiple_of(word) {
            let found = format!(
                "type {id}, bound {}, array {} of {size}, at most {}, at byte {}",
                member.string_upper_bound, member.is_array, member.is_upper_bound, member.offset
            );
            return Err(self.table(path, &found, &field.type_text()));
        }
        Ok(())
    }

    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn size_in_memory(
        &self,
        field: &Field,
        member: &MessageMember,
        path: &str,
    ) -> Result<usize, TypeError> {
        Ok(match field.arity() {
            // SAFETY: upheld by the caller.
            Arity::One => unsafe { self.stride(field.ty(), member, path) }?,
            Arity::Fixed(n) => {
                // SAFETY: as above.
                let stride = unsafe { self.stride(field.ty(), member, path) }?;
                stride.saturating_mul(n as usize)
            }
            // A C++ vector is at least as large.
            Arity::Bounded(_) | Arity::Unbounded => size_of::<[usize; 3]>(),
        })
    }

    /// Returns the tables of a member that is a message.
    ///
    /// # Safety
    /// As [`Plan::compile`], for this member.
    unsafe fn nested(&self, member: &MessageMember, path: &str) -> Result<*const MessageMembers, TypeError> {
        // SAFETY: upheld by the caller.
        let handle = unsafe { member.members.as_ref() };
        match handle.map(|h| h.data.cast::<MessageMembers>()) {
            Some(members) if !members.is_null() => Ok(members),
            _ => Err(self.table(path, "no tables", "a message")),
        }
    }

    /// Appends bytes that are the same in memory and control part. Extends the previous copy if they follow it.
    fn copy(&mut self, offset: usize, len: usize, bools: bool, path: &str, out: &mut Vec<Step>) {
        if len == 0 {
            return;
        }
        let path = self.path(path);
        if let Some(Step::Copy {
            offset: start,
            len: before,
            bools: same,
            fields,
        }) = out.last_mut()
            && *same == bools
            && *start + *before == offset
        {
            if fields.last().is_none_or(|(_, last)| *last != path) {
                fields.push((*before, path));
            }
            *before += len;
            return;
        }
        out.push(Step::Copy {
            offset,
            len,
            bools,
            fields: vec![(0, path)],
        });
    }

    fn path(&mut self, path: &str) -> u32 {
        if self.paths.last().is_none_or(|last| last != path) {
            self.paths.push(path.to_owned());
        }
        // The schema limits the fields of a type to far fewer.
        u32::try_from(self.paths.len() - 1).unwrap_or(super::fault::WHOLE)
    }

    fn table(&self, path: &str, found: &str, expected: &str) -> TypeError {
        TypeError::Table {
            field: join(&self.root, path),
            found: found.into(),
            expected: expected.into(),
        }
    }
}

/// Whether a type number of the tables is a primitive type of the definition. To rosidl, `char` is a `uint8`.
fn is_primitive(id: u8, p: Primitive) -> bool {
    match p {
        Primitive::Bool => id == type_id::BOOLEAN,
        Primitive::Byte | Primitive::Char | Primitive::Uint8 => {
            matches!(id, type_id::OCTET | type_id::CHAR | type_id::UINT8)
        }
        Primitive::Int8 => id == type_id::INT8,
        Primitive::Int16 => id == type_id::INT16,
        Primitive::Uint16 => id == type_id::UINT16,
        Primitive::Int32 => id == type_id::INT32,
        Primitive::Uint32 => id == type_id::UINT32,
        Primitive::Int64 => id == type_id::INT64,
        Primitive::Uint64 => id == type_id::UINT64,
        Primitive::Float32 => id == type_id::FLOAT,
        Primitive::Float64 => id == type_id::DOUBLE,
        Primitive::Time | Primitive::Duration => false,
    }
}

fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.is_empty()) {
        (true, _) => name.into(),
        (_, true) => path.into(),
        _ => format!("{path}.{name}"),
    }
}
