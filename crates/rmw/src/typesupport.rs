//! Makes types from type supports. The handle that rcl or rclcpp passes becomes a [`Type`], which has a schema and can
//! write and read messages in memory.

#[cfg(test)]
mod tests;
mod text;

use crate::abi::introspection::{
    MessageMembers, MessageTypeSupport, Sequence, ServiceTypeSupport, TypeDescription, TypeHash, TypeSource,
};
use crate::graph::lock;
use crate::walk::{Plan, cxx};
use schema::{DefinitionError, Schema, Service};
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Arc, Mutex};
use text::Described;

/// Identifier of types that a node learned at run time.
const DYNAMIC: &str = "rosidl_dynamic_typesupport_c";
/// Maximum number of types that [`Type::cached`] remembers; beyond it, it forgets all.
const MAX_KNOWN: usize = 256;

/// Language of a node, which decides how its messages lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// C, which includes Python and everything else built on rcl alone.
    C,
    /// C++ with libstdc++.
    Cxx,
}

impl Language {
    fn identifier(self) -> &'static CStr {
        match self {
            Language::C => c"rosidl_typesupport_introspection_c",
            Language::Cxx => c"rosidl_typesupport_introspection_cpp",
        }
    }
}

/// A message type of a node: its schema, and how its messages lie in the node's memory.
///
/// It holds functions of the library that its type support came from, so it must not outlive that library. rcl requires
/// the same of the type support itself while an entity uses it.
#[derive(Debug)]
pub(crate) struct Type {
    schema: Schema,
    hash: TypeHash,
    language: Language,
    plan: Plan,
    /// Introspection tables; null for a type that the node learned at run time.
    tables: *const MessageMembers,
}

// SAFETY: the tables are constant.
unsafe impl Send for Type {}
// SAFETY: likewise.
unsafe impl Sync for Type {}

/// A service type of a node.
#[derive(Debug)]
pub(crate) struct ServiceType {
    /// The service as the project's tools know it.
    pub(crate) service: Service,
    /// The hash that the type support states.
    pub(crate) hash: TypeHash,
    /// The request's type.
    pub(crate) request: Type,
    /// The response's type.
    pub(crate) response: Type,
}

/// Why a type support cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TypeError {
    /// A null pointer, or a handle that lacks what every generator writes.
    #[error("the type support of {name} has no {what}: is it a rosidl type support of Jazzy or later?")]
    Incomplete {
        /// The type, or the handle's identifier if the type is not known yet.
        name: String,
        /// What is missing.
        what: &'static str,
    },
    /// The message package was built without introspection.
    #[error(
        "the type support {identifier} has no rosidl_typesupport_introspection_c or _cpp: build the message package with \
         rosidl_default_generators, which has both"
    )]
    NoIntrospection {
        /// The handle's identifier.
        identifier: String,
    },
    /// A type that definitions in ROS 2's `.msg` form cannot express.
    #[error("{name}.{field}: {what} is not supported")]
    Unsupported {
        /// The type.
        name: String,
        /// The field.
        field: String,
        /// Its type.
        what: String,
    },
    /// The definition cannot be read.
    #[error("{name}: {reason}")]
    Definition {
        /// The type.
        name: String,
        /// What is wrong.
        reason: DefinitionError,
    },
    /// The type support's description does not match its hash.
    #[error("{name}: its type support states {stated}, but its definition has {computed}")]
    Hash {
        /// The type.
        name: String,
        /// The type support's hash.
        stated: String,
        /// The hash of its definition.
        computed: String,
    },
    /// The introspection tables contradict the definition.
    #[error("{field}: the introspection tables say {found}, the definition says {expected}")]
    Table {
        /// Path of the field, from the type's name.
        field: String,
        /// What the tables say.
        found: String,
        /// What the definition says.
        expected: String,
    },
}

impl Type {
    /// Returns the type of a message type support of any kind: a dispatcher's (`rosidl_typesupport_c`, `_cpp`) or
    /// introspection's own.
    ///
    /// If a dispatcher lacks introspection, it sets rcutils' error. The caller resets it.
    ///
    /// # Safety
    /// `handle` is null or points to a type support whose tables and functions live as long as the result, as those of
    /// a loaded library do.
    pub(crate) unsafe fn new(handle: *const MessageTypeSupport) -> Result<Self, TypeError> {
        // SAFETY: upheld by the caller.
        let (handle, language) = unsafe { introspection(handle) }?;
        // SAFETY: `introspection` returns a valid handle.
        let (described, hash) = unsafe { describe_message(handle) }?;
        let schema = described.message(hash)?;
        // SAFETY: as above, and the handle belongs to the language's introspection.
        unsafe { Self::with_schema(handle, language, schema, hash) }
    }

    /// As [`new`](Self::new), but also accepts a type that the node learned at run time (`rosidl_dynamic_typesupport`),
    /// whose messages do not lie in memory as structures.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub(crate) unsafe fn of_subscription(handle: *const MessageTypeSupport) -> Result<Self, TypeError> {
        // SAFETY: upheld by the caller.
        match unsafe { Self::new(handle) } {
            Err(TypeError::NoIntrospection { identifier }) if identifier == DYNAMIC => {}
            made => return made,
        }
        // SAFETY: upheld by the caller; a null pointer has no identifier.
        let (described, hash) = unsafe { describe_message(&*handle) }?;
        Ok(Self {
            schema: described.message(hash)?,
            hash,
            language: Language::C,
            plan: Plan::default(),
            tables: std::ptr::null(),
        })
    }

    /// Whether messages of this type lie in memory as structures.
    pub(crate) fn is_in_memory(&self) -> bool {
        !self.tables.is_null()
    }

    /// As [`new`](Self::new), but remembers types, for functions that receive a type support with each message.
    ///
    /// # Safety
    /// As [`new`](Self::new). A library that is loaded in place of another has the same type if tables and hash are the
    /// same.
    pub(crate) unsafe fn cached(handle: *const MessageTypeSupport) -> Result<Arc<Self>, TypeError> {
        static KNOWN: Mutex<BTreeMap<(usize, TypeHash), Arc<Type>>> = Mutex::new(BTreeMap::new());
        // SAFETY: upheld by the caller.
        let (found, _) = unsafe { introspection(handle) }?;
        // SAFETY: a function of a valid handle, called with that handle as rosidl requires.
        let hash = unsafe { stated_hash("a message", found.type_hash.map(|f| f(found))) }?;
        let key = (found.data.addr(), hash);
        if let Some(known) = lock(&KNOWN).get(&key) {
            return Ok(known.clone());
        }
        // SAFETY: upheld by the caller.
        let ty = Arc::new(unsafe { Self::new(handle) }?);
        let mut known = lock(&KNOWN);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, ty.clone());
        Ok(ty)
    }

    /// # Safety
    /// `handle` is valid and belongs to the introspection of `language`.
    unsafe fn with_schema(
        handle: &MessageTypeSupport,
        language: Language,
        schema: Schema,
        hash: TypeHash,
    ) -> Result<Self, TypeError> {
        // The data of an introspection handle is its members.
        let tables = handle.data.cast::<MessageMembers>();
        // SAFETY: upheld by the caller.
        let plan = unsafe { Plan::compile(&schema, language, tables) }?;
        Ok(Self {
            schema,
            hash,
            language,
            plan,
            tables,
        })
    }

    /// A type without a type support.
    ///
    /// # Safety
    /// As [`Plan::compile`].
    #[cfg(test)]
    pub(crate) unsafe fn of_tables(
        schema: Schema,
        members: *const MessageMembers,
    ) -> Result<Self, TypeError> {
        // SAFETY: upheld by the caller.
        let plan = unsafe { Plan::compile(&schema, Language::C, members) }?;
        let (hash, language) = (TypeHash::default(), Language::C);
        Ok(Self {
            schema,
            hash,
            language,
            plan,
            tables: members,
        })
    }

    /// Whether a type support has this type, and its messages the same layout in memory.
    ///
    /// # Safety
    /// As [`Type::new`].
    pub(crate) unsafe fn is_of(&self, handle: *const MessageTypeSupport) -> bool {
        // SAFETY: upheld by the caller.
        let found = unsafe { introspection(handle) };
        found.is_ok_and(|(found, _)| std::ptr::eq(found.data.cast(), self.tables))
    }

    /// The type as the project's tools know it: name, fields, definition, MD5.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The hash that the type support states, which equals the schema's.
    pub(crate) fn hash(&self) -> TypeHash {
        self.hash
    }

    /// The language of the node.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests ask for it"))]
    pub(crate) fn language(&self) -> Language {
        self.language
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Size of a message's structure in bytes, without the content of its strings and sequences.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests ask for it"))]
    pub(crate) fn size(&self) -> usize {
        self.plan.size
    }
}

impl ServiceType {
    /// Returns the type of a service type support of any kind.
    ///
    /// # Safety
    /// As [`Type::new`].
    pub(crate) unsafe fn new(handle: *const ServiceTypeSupport) -> Result<Self, TypeError> {
        // SAFETY: upheld by the caller.
        let (handle, _) = unsafe { service_introspection(handle) }?;
        let name = || "a service".to_owned();
        // SAFETY: functions of a valid handle, called with that handle as rosidl requires.
        let (hash, description, sources) = unsafe {
            (
                handle.type_hash.map(|f| f(handle)),
                handle.description.map(|f| f(handle)),
                handle.sources.map(|f| f(handle)),
            )
        };
        // SAFETY: these functions return static pointers or null.
        let (described, hash) = unsafe { describe(name(), hash, description, sources) }?;
        let service = described.service(hash)?;
        // SAFETY: the handles of its messages are as valid as it is.
        let part = |handle: *const MessageTypeSupport, schema: &Schema| unsafe {
            let (handle, language) = introspection(handle)?;
            let hash = stated_hash(&schema.ros2_name(), handle.type_hash.map(|f| f(handle)))?;
            check(&schema.ros2_name(), hash, schema.rihs01())?;
            Type::with_schema(handle, language, schema.clone(), hash)
        };
        let request = part(handle.request, service.request())?;
        let response = part(handle.response, service.response())?;
        Ok(Self {
            service,
            hash,
            request,
            response,
        })
    }
}

impl TypeHash {
    /// Text in ROS 2's notation: `RIHS01_` and 64 hexadecimal digits.
    pub(crate) fn text(&self) -> String {
        let digits: String = self.value.iter().map(|b| format!("{b:02x}")).collect();
        format!("RIHS{:02}_{digits}", self.version)
    }
}

/// Finds the introspection handle behind `handle`, and its language.
///
/// # Safety
/// As [`Type::new`].
pub(crate) unsafe fn introspection<'a>(
    handle: *const MessageTypeSupport,
) -> Result<(&'a MessageTypeSupport, Language), TypeError> {
    // SAFETY: upheld by the caller; null becomes `None`.
    let own = unsafe { handle.as_ref() }.ok_or_else(|| incomplete("a message", "handle"))?;
    // SAFETY: the handle's own function, with the handle and an identifier.
    let find = |identifier: &CStr| unsafe {
        match own.func {
            Some(f) => cxx::find(f, handle, identifier),
            None => std::ptr::null(),
        }
    };
    // SAFETY: the handle found is as valid as the first.
    unsafe { choose(own.identifier, handle, find, |h| (*h).identifier) }
}

/// As [`introspection`], for a service.
///
/// # Safety
/// As [`Type::new`].
unsafe fn service_introspection<'a>(
    handle: *const ServiceTypeSupport,
) -> Result<(&'a ServiceTypeSupport, Language), TypeError> {
    // SAFETY: as in `introspection`.
    let own = unsafe { handle.as_ref() }.ok_or_else(|| incomplete("a service", "handle"))?;
    // SAFETY: as in `introspection`.
    let find = |identifier: &CStr| unsafe {
        match own.func {
            Some(f) => cxx::find(f, handle, identifier),
            None => std::ptr::null(),
        }
    };
    // SAFETY: as in `introspection`.
    unsafe { choose(own.identifier, handle, find, |h| (*h).identifier) }
}

/// Requests the introspection of the handle's own language first: a dispatcher that is asked for what it lacks sets an
/// error.
///
/// # Safety
/// `own` is the identifier of `handle`, which is valid, and `find` returns null or such handles.
unsafe fn choose<'a, H>(
    own: *const c_char,
    handle: *const H,
    find: impl Fn(&CStr) -> *const H,
    identifier: impl Fn(*const H) -> *const c_char,
) -> Result<(&'a H, Language), TypeError> {
    if own.is_null() {
        return Err(incomplete("a type", "identifier"));
    }
    // SAFETY: identifiers are strings in static memory.
    let own = unsafe { CStr::from_ptr(own) };
    let order = match own.to_bytes().ends_with(b"_cpp") {
        true => [Language::Cxx, Language::C],
        false => [Language::C, Language::Cxx],
    };
    for language in order {
        let wanted = language.identifier();
        let found = if own == wanted { handle } else { find(wanted) };
        if found.is_null() {
            continue;
        }
        let named = identifier(found);
        // SAFETY: as above; `found` is not null.
        if !named.is_null() && unsafe { CStr::from_ptr(named) } == wanted {
            // SAFETY: `find` returns valid handles.
            return Ok((unsafe { &*found }, language));
        }
    }
    Err(TypeError::NoIntrospection {
        identifier: own.to_string_lossy().into_owned(),
    })
}

/// # Safety
/// `handle` is valid.
unsafe fn describe_message(handle: &MessageTypeSupport) -> Result<(Described, TypeHash), TypeError> {
    // SAFETY: functions of a valid handle, called with that handle as rosidl requires; they return static pointers or
    // null.
    unsafe {
        describe(
            "a message".into(),
            handle.type_hash.map(|f| f(handle)),
            handle.description.map(|f| f(handle)),
            handle.sources.map(|f| f(handle)),
        )
    }
}

/// # Safety
/// The pointers are null or point to data that rosidl generated.
unsafe fn describe(
    name: String,
    hash: Option<*const TypeHash>,
    description: Option<*const TypeDescription>,
    sources: Option<*const Sequence<TypeSource>>,
) -> Result<(Described, TypeHash), TypeError> {
    // SAFETY: upheld by the caller.
    let description = unsafe { description.and_then(|p| p.as_ref()) };
    let description = description.ok_or_else(|| incomplete(&name, "type description"))?;
    // SAFETY: upheld by the caller.
    let sources = unsafe { sources.and_then(|p| p.as_ref()) };
    // SAFETY: a generated description and its sources.
    let described = unsafe { Described::read(description, sources) }?;
    // SAFETY: upheld by the caller.
    let hash = unsafe { stated_hash(described.name(), hash) }?;
    Ok((described, hash))
}

/// # Safety
/// The pointer is null or points to a hash.
unsafe fn stated_hash(name: &str, hash: Option<*const TypeHash>) -> Result<TypeHash, TypeError> {
    // SAFETY: upheld by the caller.
    let hash = unsafe { hash.and_then(|p| p.as_ref()) };
    hash.copied().ok_or_else(|| incomplete(name, "type hash"))
}

fn check(name: &str, stated: TypeHash, computed: String) -> Result<(), TypeError> {
    let stated = stated.text();
    if stated == computed {
        return Ok(());
    }
    Err(TypeError::Hash {
        name: name.into(),
        stated,
        computed,
    })
}

fn incomplete(name: &str, what: &'static str) -> TypeError {
    TypeError::Incomplete {
        name: name.into(),
        what,
    }
}

/// A pointer to a message, as rmw passes it.
pub(crate) type Message = *const c_void;
