//! Types of messages and services.

use crate::options::flavour;
use crate::pointer::{self, give, handle, invalid, output, text_out};
use crate::status::{Failure, Status, free, guard};
use ropewalk::Registry;
use std::ffi::c_char;

/// A message type.
pub struct MessageType(pub(crate) ropewalk::Schema);

/// A service type.
pub struct ServiceType(pub(crate) ropewalk::Service);

/// Finds a type, such as `sensor_msgs/Image`, among the built-in standard packages, and where an installed
/// ROS keeps its definitions (`ROS_PACKAGE_PATH` and `/usr/share`; for ROS 2 `AMENT_PREFIX_PATH`).
/// `generation` is a `ropewalk_flavour`. Reads files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_type_find(
    name: *const c_char,
    generation: u32,
    out: *mut *mut MessageType,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let name = unsafe { pointer::text(name, "name of the type") }?;
        let schema = Registry::from_env(flavour(generation)?).schema(name)?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(MessageType(schema), out) };
        Ok(Status::Ok)
    })
}

/// Creates a type from its definition, with the definitions of all types that it uses, as `gendeps --cat`
/// prints it and bags contain it; those of the standard packages may be missing. If `md5` is not NULL, it
/// must be the sum of the definition, as 32 hexadecimal digits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_type_from_definition(
    name: *const c_char,
    definition: *const c_char,
    generation: u32,
    md5: *const c_char,
    out: *mut *mut MessageType,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (name, text) = unsafe { described(name, definition) }?;
        let mut registry = Registry::new(flavour(generation)?);
        registry.add_embedded(name, text)?;
        let schema = registry.schema(name)?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe {
            compare(name, md5, &schema.md5_hex())?;
            give(MessageType(schema), out);
        }
        Ok(Status::Ok)
    })
}

/// Writes the type's name to `buffer`. `len` (may be NULL) always gets its length with the zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_type_name(
    kind: *const MessageType,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { text_out(handle(kind, "type")?.0.name(), buffer, capacity, len) }
    })
}

/// Writes the type's MD5 sum, as ROS 1 computes it, as 32 hexadecimal digits and a zero byte. `len` (may be
/// NULL) always gets 33.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_type_md5(
    kind: *const MessageType,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { text_out(&handle(kind, "type")?.0.md5_hex(), buffer, capacity, len) }
    })
}

/// Frees a type. Its publishers and subscribers stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_type_free(kind: *mut MessageType) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { pointer::consume(kind, "type") }));
}

/// Like `ropewalk_type_find`, for a service such as `std_srvs/SetBool`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_service_type_find(
    name: *const c_char,
    generation: u32,
    out: *mut *mut ServiceType,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let name = unsafe { pointer::text(name, "name of the type") }?;
        let service = Registry::from_env(flavour(generation)?).service(name)?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe { give(ServiceType(service), out) };
        Ok(Status::Ok)
    })
}

/// Like `ropewalk_type_from_definition`, for a service, whose own text comes first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_service_type_from_definition(
    name: *const c_char,
    definition: *const c_char,
    generation: u32,
    md5: *const c_char,
    out: *mut *mut ServiceType,
) -> Status {
    guard(|| {
        output(out, "out")?;
        // SAFETY: the crate's contract.
        let (name, text) = unsafe { described(name, definition) }?;
        let mut registry = Registry::new(flavour(generation)?);
        registry.add_embedded_service(name, text)?;
        let service = registry.service(name)?;
        // SAFETY: the crate's contract; `out` was checked.
        unsafe {
            compare(name, md5, &service.md5_hex())?;
            give(ServiceType(service), out);
        }
        Ok(Status::Ok)
    })
}

/// Frees a service type. Its clients and servers stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ropewalk_service_type_free(kind: *mut ServiceType) {
    // SAFETY: the crate's contract.
    free(|| drop(unsafe { pointer::consume(kind, "service type") }));
}

/// # Safety
/// As for the crate.
unsafe fn described<'a>(
    name: *const c_char,
    definition: *const c_char,
) -> Result<(&'a str, &'a str), Failure> {
    // SAFETY: by this function's contract.
    unsafe {
        Ok((
            pointer::text(name, "name of the type")?,
            pointer::text(definition, "definition")?,
        ))
    }
}

/// # Safety
/// As for the crate.
unsafe fn compare(name: &str, stated: *const c_char, computed: &str) -> Result<(), Failure> {
    if stated.is_null() {
        return Ok(());
    }
    // SAFETY: by this function's contract.
    let stated = unsafe { pointer::text(stated, "MD5 sum") }?;
    if stated.len() != 32 {
        return Err(invalid(&format!(
            "an MD5 sum of {} digits: it has 32",
            stated.len()
        )));
    }
    if stated != computed {
        let text = format!(
            "{name} should have the sum {stated}, but its definition has {computed}: generate the code again"
        );
        return Err(Failure::new(Status::Type, text));
    }
    Ok(())
}
