//! Messages of types that a node learns at run time (`rosidl_dynamic_typesupport`). A library of ROS 2 holds their
//! values and reads CDR, so the subscription passes CDR to it.

use crate::abi::{Allocator, MessageInfo, Ret, RmwSubscription, SerializedMessage};
use crate::error::{Failure, Outcome, arg_mut, guard, text};
use crate::{host, subscription};
use std::ffi::{CStr, c_char, c_void};

type InitPart = unsafe extern "C" fn(*mut Allocator, *mut c_void) -> i32;
type Init = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut Allocator, *mut c_void) -> i32;
type Deserialize = unsafe extern "C" fn(*mut c_void, *mut SerializedMessage) -> i32;

const BASE: &CStr = c"librosidl_dynamic_typesupport.so";
const FAST: &CStr = c"librosidl_dynamic_typesupport_fastrtps.so";

/// Symbols that fill the two halves of a serialization support, and the constant that names it: Kilted's, then Jazzy's.
const PARTS: [[&CStr; 3]; 2] = [
    [
        c"rosidl_dynamic_typesupport_fastdds_init_serialization_support_impl",
        c"rosidl_dynamic_typesupport_fastdds_init_serialization_support_interface",
        c"fastdds_serialization_support_library_identifier",
    ],
    [
        c"rosidl_dynamic_typesupport_fastrtps_init_serialization_support_impl",
        c"rosidl_dynamic_typesupport_fastrtps_init_serialization_support_interface",
        c"fastrtps_serialization_support_library_identifier",
    ],
];
/// Bytes reserved for each half; the headers of Kilted need 56 and 1,536.
const ROOM: usize = 64 << 10;

/// The symbols of ROS 2's library.
struct Library {
    implementation: InitPart,
    methods: InitPart,
    init: Init,
    name: &'static CStr,
}

impl Library {
    fn find() -> Option<Self> {
        let init = host::load(BASE, c"rosidl_dynamic_typesupport_serialization_support_init")?;
        let found = |names: &[&CStr; 3]| {
            let [implementation, methods, name] = names.map(|n| host::load(FAST, n));
            Some((implementation?, methods?, name?))
        };
        let (implementation, methods, name) = PARTS.iter().find_map(found)?;
        // SAFETY: in every version that has these names, the symbols are functions of these signatures and a constant
        // that points to a literal. A library loaded this way is never unloaded.
        unsafe {
            Some(Self {
                implementation: std::mem::transmute::<*mut c_void, InitPart>(implementation),
                methods: std::mem::transmute::<*mut c_void, InitPart>(methods),
                init: std::mem::transmute::<*mut c_void, Init>(init),
                name: CStr::from_ptr(name.cast::<*const c_char>().read()),
            })
        }
    }
}

/// # Safety
/// As documented in rmw/dynamic_message_type_support.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_serialization_support_init(
    name: *const c_char,
    allocator: *mut Allocator,
    support: *mut c_void,
) -> Ret {
    guard(|| {
        // SAFETY: upheld by the caller.
        let allocator = unsafe { arg_mut(allocator, "allocator")? };
        if support.is_null() {
            return Err(Failure::argument("serialization_support argument is null"));
        }
        let library = Library::find().ok_or_else(|| {
            Failure::unsupported(
                "dynamic messages need librosidl_dynamic_typesupport_fastrtps.so: install rosidl_dynamic_typesupport_fastrtps",
            )
        })?;
        if !name.is_null() {
            // SAFETY: likewise.
            let asked = unsafe { text(name, "serialization_lib_name")? };
            let own = library.name.to_string_lossy();
            if !asked.is_empty() && asked != own {
                return Err(Failure::unsupported(format_args!(
                    "no serialization library {asked}: request {own}, or leave the name empty"
                )));
            }
        }
        // Both halves are plain structures of functions and pointers; all-zero means that nothing is set.
        let mut halves = vec![0u128; 2 * ROOM / size_of::<u128>()];
        let (implementation, methods) = halves.split_at_mut(ROOM / size_of::<u128>());
        let (implementation, methods) = (implementation.as_mut_ptr().cast(), methods.as_mut_ptr().cast());
        // SAFETY: the functions fill structures that are smaller than ROOM, and copy them into the caller's.
        unsafe {
            made((library.implementation)(allocator, implementation), "made")?;
            made((library.methods)(allocator, methods), "made")?;
            made(
                (library.init)(implementation, methods, allocator, support),
                "made",
            )
        }
    })
}

/// Turns a return code of rcutils into an outcome.
fn made(code: i32, what: &str) -> Outcome {
    match code {
        0 => Ok(()),
        _ => Err(Failure::error(format_args!(
            "the support of a dynamic message was not {what}: rcutils error {code}"
        ))),
    }
}

/// # Safety
/// The arguments are null or as rmw/dynamic_message_type_support.h documents them.
unsafe fn take(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    info: Option<*mut MessageInfo>,
) -> Outcome {
    if message.is_null() {
        return Err(Failure::argument("dynamic_message argument is null"));
    }
    // SAFETY: upheld by the caller.
    let from = unsafe { subscription::take_any(subscription, taken, info)? };
    let Some(from) = from else { return Ok(()) };
    let deserialize = host::load(BASE, c"rosidl_dynamic_typesupport_dynamic_data_deserialize")
        .ok_or_else(|| Failure::unsupported("librosidl_dynamic_typesupport.so is not loaded"))?;
    // SAFETY: the symbol is the function with this name.
    let deserialize = unsafe { std::mem::transmute::<*mut c_void, Deserialize>(deserialize) };
    let mut bytes = from.cdr().map_err(Failure::error)?;
    let mut serialized = SerializedMessage {
        buffer: bytes.as_mut_ptr(),
        length: bytes.len(),
        capacity: bytes.len(),
        allocator: Allocator::none(),
    };
    // SAFETY: only the caller uses `message`, and the bytes outlive the call that reads them.
    made(unsafe { deserialize(message, &mut serialized) }, "filled")?;
    // SAFETY: upheld by the caller; `take_any` checked the pointer.
    unsafe { taken.write(true) };
    Ok(())
}

/// # Safety
/// As documented in rmw/dynamic_message_type_support.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_dynamic_message(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take(subscription, message, taken, None) })
}

/// # Safety
/// As documented in rmw/dynamic_message_type_support.h.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rmw_take_dynamic_message_with_info(
    subscription: *const RmwSubscription,
    message: *mut c_void,
    taken: *mut bool,
    info: *mut MessageInfo,
    _: *mut c_void,
) -> Ret {
    // SAFETY: upheld by the caller.
    guard(|| unsafe { take(subscription, message, taken, Some(info)) })
}
