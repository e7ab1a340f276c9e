//! Calls the functions as C does, with the setup that each test needs.

use ropewalk_c::node::*;
use ropewalk_c::options::NodeOptions;
use ropewalk_c::status::*;
use std::ffi::{CStr, CString};
use std::ptr::null_mut;

/// Long enough for any machine; it bounds hanging, not speed.
pub(crate) const LONG: i64 = 60_000_000_000;

pub(crate) fn error() -> String {
    // SAFETY: never NULL; copied before anything else is called.
    unsafe { CStr::from_ptr(ropewalk_error_message()) }
        .to_string_lossy()
        .into_owned()
}

#[track_caller]
pub(crate) fn ok(status: Status) {
    assert_eq!(status, Status::Ok, "{}", error());
}

/// Calls a function whose last argument is the output for its result.
#[track_caller]
pub(crate) fn made<T>(call: impl FnOnce(*mut *mut T) -> Status) -> *mut T {
    let mut out = null_mut();
    ok(call(&mut out));
    assert!(!out.is_null());
    out
}

pub(crate) struct Bus {
    pub(crate) node: *mut Node,
    _folder: tempfile::TempDir,
}

/// A node on its own bus.
pub(crate) fn bus() -> Bus {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = CString::new(folder.path().to_str().expect("UTF-8")).expect("no zero");
    let options = NodeOptions {
        runtime_dir: dir.as_ptr(),
        domain: 0,
    };
    // SAFETY: texts and options live until the call returns.
    let node = made(|out| unsafe { ropewalk_node_new(c"capi".as_ptr(), &options, out) });
    Bus {
        node,
        _folder: folder,
    }
}
