//! Pointers from C, checked for NULL and turned into references.

use crate::status::{Failure, Status};
use std::borrow::Cow;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Refuses an argument.
pub(crate) fn invalid(what: &str) -> Failure {
    Failure::new(Status::InvalidArgument, what)
}

/// Returns the object of a handle.
///
/// # Safety
/// `handle` is NULL or a handle of a `T`, and stays one for 'a (the crate's contract).
pub(crate) unsafe fn handle<'a, T>(handle: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: by this function's contract.
    unsafe { handle.as_ref() }.ok_or_else(|| invalid(&format!("the {name} is NULL")))
}

/// Takes an object back from its handle.
///
/// # Safety
/// `handle` is NULL or a handle of a `T`, which is not used any more (the crate's contract).
pub(crate) unsafe fn consume<T>(handle: *mut T, name: &str) -> Result<Box<T>, Failure> {
    if handle.is_null() {
        return Err(invalid(&format!("the {name} is NULL")));
    }
    // SAFETY: only `give` creates handles, from a box; by this function's contract this is the handle's last
    // use.
    Ok(unsafe { Box::from_raw(handle) })
}

/// Writes a new handle to the caller's output.
///
/// # Safety
/// `out` was checked by [`output`].
pub(crate) unsafe fn give<T>(object: T, out: *mut *mut T) {
    // SAFETY: by this function's contract.
    unsafe { set(out, Box::into_raw(Box::new(object))) };
}

/// Like [`give`], if there is an object.
///
/// # Safety
/// As for [`give`].
pub(crate) unsafe fn give_if<T>(object: Option<T>, out: *mut *mut T) -> Status {
    let came = object.is_some();
    if let Some(object) = object {
        // SAFETY: by this function's contract.
        unsafe { give(object, out) };
    }
    Status::of(came)
}

/// Refuses a NULL output before anything is done.
pub(crate) fn output<T>(out: *mut T, name: &str) -> Result<(), Failure> {
    if out.is_null() {
        return Err(invalid(&format!(
            "{name} is NULL: there is no place for the result"
        )));
    }
    Ok(())
}

/// Writes an output, unless it is NULL.
///
/// # Safety
/// `out` is NULL or may be written (the crate's contract).
pub(crate) unsafe fn set<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: by this function's contract.
        unsafe { out.write(value) };
    }
}

/// Returns a text.
///
/// # Safety
/// `text` is NULL or ends with a zero byte, and stays valid for 'a (the crate's contract).
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid(&format!("the {name} is NULL")));
    }
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|e| invalid(&format!("the {name} is not UTF-8: {e}")))
}

/// Returns a text for people that may contain anything: bytes that are not UTF-8 are replaced.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn any_text<'a>(text: *const c_char, name: &str) -> Result<Cow<'a, str>, Failure> {
    if text.is_null() {
        return Err(invalid(&format!("the {name} is NULL")));
    }
    // SAFETY: by this function's contract.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Returns a file name, which need not be UTF-8.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn file<'a>(path: *const c_char, name: &str) -> Result<&'a Path, Failure> {
    if path.is_null() {
        return Err(invalid(&format!("the {name} is NULL")));
    }
    // SAFETY: by this function's contract.
    let path = unsafe { CStr::from_ptr(path) };
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}

/// Returns an array; NULL is allowed if it has no elements.
///
/// # Safety
/// `start` is NULL or has `len` elements, which stay valid for 'a (the crate's contract).
pub(crate) unsafe fn array<'a, T>(start: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if start.is_null() || !start.is_aligned() || len > isize::MAX as usize / size_of::<T>() {
        return Err(invalid(&format!("the {name} is NULL, misaligned or too long")));
    }
    // SAFETY: by this function's contract; not NULL, aligned, and no longer than memory can be.
    Ok(unsafe { std::slice::from_raw_parts(start, len) })
}

/// Converts a timeout in nanoseconds; negative means forever.
pub(crate) fn timeout(ns: i64) -> Duration {
    u64::try_from(ns).map_or(Duration::MAX, Duration::from_nanos)
}

/// Copies `bytes` to the caller's buffer; `len` always gets their number.
///
/// # Safety
/// `buffer` is NULL or may be written for `capacity` bytes, and `len` is NULL or may be written (the crate's contract).
pub(crate) unsafe fn copy_out(
    bytes: &[u8],
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
) -> Result<Status, Failure> {
    // SAFETY: by this function's contract.
    unsafe { set(len, bytes.len()) };
    if buffer.is_null() || capacity < bytes.len() {
        let text = format!("{} bytes do not fit a buffer of {capacity}", bytes.len());
        return Err(Failure::new(Status::BufferTooSmall, text));
    }
    // SAFETY: by this function's contract, the length was just compared, and memory that the caller may write
    // to does not overlap memory of this process.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
    Ok(Status::Ok)
}

/// Writes `n` places to the caller's array; `count` always gets their number.
///
/// # Safety
/// `out` is NULL or may be written for `capacity` elements, and `count` is NULL or may be written (the crate's contract).
pub(crate) unsafe fn places<T>(
    out: *mut T,
    capacity: usize,
    count: *mut usize,
    n: usize,
    place: impl Fn(usize) -> T,
) -> Result<Status, Failure> {
    // SAFETY: by this function's contract.
    unsafe { set(count, n) };
    if n > capacity || (n > 0 && out.is_null()) {
        let text = format!("{n} data parts do not fit an array of {capacity}");
        return Err(Failure::new(Status::BufferTooSmall, text));
    }
    for i in 0..n {
        // SAFETY: by this function's contract, and `i` is below `capacity`.
        unsafe { out.add(i).write(place(i)) };
    }
    Ok(Status::Ok)
}

/// Like [`copy_out`], for a text with its zero byte.
///
/// # Safety
/// As for [`copy_out`].
pub(crate) unsafe fn text_out(
    text: &str,
    buffer: *mut c_char,
    capacity: usize,
    len: *mut usize,
) -> Result<Status, Failure> {
    let mut bytes: Vec<u8> = text.bytes().filter(|b| *b != 0).collect();
    bytes.push(0);
    // SAFETY: by this function's contract.
    unsafe { copy_out(&bytes, buffer.cast(), capacity, len) }
}
