//! The functions of `cxx.cpp`: C++ strings and vectors, and calls of functions that may throw.

use std::ffi::{CStr, c_char, c_void};

/// `resize_function` of C++, which returns nothing. C shares the tables; its function returns a `bool`.
pub(super) type Resize = unsafe extern "C" fn(*mut c_void, usize);

/// `init_function` of both languages; the number is `ROSIDL_RUNTIME_C_MSG_INIT_ALL` or a similar constant.
pub(crate) type Init = unsafe extern "C" fn(*mut c_void, i32);

unsafe extern "C" {
    static ropewalk_cxx_string_size: usize;
    static ropewalk_cxx_u16string_size: usize;
    fn ropewalk_cxx_string(string: *const c_void, size: *mut usize) -> *const u8;
    fn ropewalk_cxx_u16string(string: *const c_void, size: *mut usize) -> *const u8;
    fn ropewalk_cxx_set_string(string: *mut c_void, data: *const u8, size: usize) -> bool;
    fn ropewalk_cxx_set_u16string(string: *mut c_void, data: *const u8, size: usize) -> bool;
    fn ropewalk_cxx_assign(type_id: u8, vector: *mut c_void, data: *const c_void, count: usize) -> bool;
    fn ropewalk_cxx_resize(resize: Resize, member: *mut c_void, count: usize) -> bool;
    fn ropewalk_cxx_init(init: Init, message: *mut c_void) -> bool;
    fn ropewalk_cxx_handle(
        find: unsafe extern "C" fn(*const c_void, *const c_char) -> *const c_void,
        handle: *const c_void,
        identifier: *const c_char,
    ) -> *const c_void;
}

/// `sizeof(std::string)`, or `sizeof(std::u16string)` if a unit has two bytes.
pub(super) fn string_size(unit: usize) -> usize {
    // SAFETY: constants of cxx.cpp.
    unsafe {
        match unit {
            1 => ropewalk_cxx_string_size,
            _ => ropewalk_cxx_u16string_size,
        }
    }
}

/// Returns content and number of units of a C++ string whose units have `unit` bytes.
///
/// # Safety
/// `string` is initialized.
pub(super) unsafe fn string(string: *const u8, unit: usize) -> (*const u8, usize) {
    let mut size = 0;
    // SAFETY: upheld by the caller.
    let data = unsafe {
        match unit {
            1 => ropewalk_cxx_string(string.cast(), &mut size),
            _ => ropewalk_cxx_u16string(string.cast(), &mut size),
        }
    };
    (data, size)
}

/// Sets the content of a C++ string, in whole units. Returns false if memory is exhausted.
///
/// # Safety
/// `string` is initialized.
pub(super) unsafe fn set_string(string: *mut u8, unit: usize, content: &[u8]) -> bool {
    // SAFETY: upheld by the caller; `content` holds that many units.
    unsafe {
        match unit {
            1 => ropewalk_cxx_set_string(string.cast(), content.as_ptr(), content.len()),
            _ => ropewalk_cxx_set_u16string(string.cast(), content.as_ptr(), content.len() / 2),
        }
    }
}

/// Sets the content of a vector of numbers in one copy. Returns false if memory is exhausted or the type is not a
/// number.
///
/// # Safety
/// `vector` is an unbounded `std::vector` of `type_id`, and `data` points to `count` aligned elements of it.
pub(super) unsafe fn assign(type_id: u8, vector: *mut u8, data: *const u8, count: usize) -> bool {
    // SAFETY: upheld by the caller.
    unsafe { ropewalk_cxx_assign(type_id, vector.cast(), data.cast(), count) }
}

/// Resizes a member. Returns false if memory is exhausted.
///
/// # Safety
/// `resize` is the member's function.
pub(super) unsafe fn resize(resize: Resize, member: *mut u8, count: usize) -> bool {
    // SAFETY: upheld by the caller.
    unsafe { ropewalk_cxx_resize(resize, member.cast(), count) }
}

/// Initializes a message. Returns false if memory is exhausted.
///
/// # Safety
/// `init` belongs to the message's type, and `message` has room for one.
pub(super) unsafe fn init(init: Init, message: *mut c_void) -> bool {
    // SAFETY: upheld by the caller.
    unsafe { ropewalk_cxx_init(init, message) }
}

/// Calls the function `find` of a type support. Returns null if it throws.
///
/// # Safety
/// `find` is the function of `handle`.
pub(crate) unsafe fn find<H>(
    find: unsafe extern "C" fn(*const H, *const c_char) -> *const H,
    handle: *const H,
    identifier: &CStr,
) -> *const H {
    // SAFETY: the same function with pointers to an unnamed type, which are equivalent in the C ABI.
    let find = unsafe {
        std::mem::transmute::<
            unsafe extern "C" fn(*const H, *const c_char) -> *const H,
            unsafe extern "C" fn(*const c_void, *const c_char) -> *const c_void,
        >(find)
    };
    // SAFETY: upheld by the caller.
    unsafe { ropewalk_cxx_handle(find, handle.cast(), identifier.as_ptr()) }.cast()
}
