//! rosidl's type support: handles (`rosidl_runtime_c`), the layout of messages (`rosidl_typesupport_introspection_c`
//! and `_cpp`), and type descriptions (`type_description`).
//!
//! Checked against the headers of rosidl 4.9 (Kilted). `is_key` and `has_any_key` exist since rosidl 4.6 (Jazzy).

use std::ffi::{c_char, c_void};

/// `rosidl_message_type_support_t`.
#[repr(C)]
pub(crate) struct MessageTypeSupport {
    pub(crate) identifier: *const c_char,
    pub(crate) data: *const c_void,
    pub(crate) func:
        Option<unsafe extern "C" fn(*const MessageTypeSupport, *const c_char) -> *const MessageTypeSupport>,
    pub(crate) type_hash: Option<unsafe extern "C" fn(*const MessageTypeSupport) -> *const TypeHash>,
    pub(crate) description: Option<unsafe extern "C" fn(*const MessageTypeSupport) -> *const TypeDescription>,
    pub(crate) sources:
        Option<unsafe extern "C" fn(*const MessageTypeSupport) -> *const Sequence<TypeSource>>,
}

/// `rosidl_service_type_support_t`.
#[repr(C)]
pub(crate) struct ServiceTypeSupport {
    pub(crate) identifier: *const c_char,
    pub(crate) data: *const c_void,
    pub(crate) func:
        Option<unsafe extern "C" fn(*const ServiceTypeSupport, *const c_char) -> *const ServiceTypeSupport>,
    pub(crate) request: *const MessageTypeSupport,
    pub(crate) response: *const MessageTypeSupport,
    pub(crate) event: *const MessageTypeSupport,
    pub(crate) create_event: *const c_void,
    pub(crate) destroy_event: *const c_void,
    pub(crate) type_hash: Option<unsafe extern "C" fn(*const ServiceTypeSupport) -> *const TypeHash>,
    pub(crate) description: Option<unsafe extern "C" fn(*const ServiceTypeSupport) -> *const TypeDescription>,
    pub(crate) sources:
        Option<unsafe extern "C" fn(*const ServiceTypeSupport) -> *const Sequence<TypeSource>>,
}

/// `rosidl_type_hash_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TypeHash {
    pub(crate) version: u8,
    pub(crate) value: [u8; 32],
}

/// Any of rosidl's C sequences, `rosidl_runtime_c__String` (of `c_char`) among them.
#[repr(C)]
pub(crate) struct Sequence<T> {
    pub(crate) data: *mut T,
    pub(crate) size: usize,
    pub(crate) capacity: usize,
}

/// `rosidl_runtime_c__String`. Ends with a NUL byte that `size` does not count.
pub(crate) type CString = Sequence<u8>;

/// `rosidl_runtime_c__type_description__TypeSource`.
#[repr(C)]
pub(crate) struct TypeSource {
    pub(crate) type_name: CString,
    pub(crate) encoding: CString,
    pub(crate) raw_file_contents: CString,
}

/// `rosidl_runtime_c__type_description__TypeDescription`.
#[repr(C)]
pub(crate) struct TypeDescription {
    pub(crate) own: IndividualTypeDescription,
    pub(crate) referenced: Sequence<IndividualTypeDescription>,
}

/// `rosidl_runtime_c__type_description__IndividualTypeDescription`.
#[repr(C)]
pub(crate) struct IndividualTypeDescription {
    pub(crate) type_name: CString,
    pub(crate) fields: Sequence<Field>,
}

/// `rosidl_runtime_c__type_description__Field`.
#[repr(C)]
pub(crate) struct Field {
    pub(crate) name: CString,
    pub(crate) ty: FieldType,
    pub(crate) default_value: CString,
}

/// `rosidl_runtime_c__type_description__FieldType`.
#[repr(C)]
pub(crate) struct FieldType {
    pub(crate) type_id: u8,
    pub(crate) capacity: u64,
    pub(crate) string_capacity: u64,
    pub(crate) nested_type_name: CString,
}

/// `rosidl_typesupport_introspection_c__MessageMembers` and its C++ counterpart.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MessageMembers {
    pub(crate) namespace: *const c_char,
    pub(crate) name: *const c_char,
    pub(crate) count: u32,
    pub(crate) size: usize,
    pub(crate) has_any_key: bool,
    pub(crate) members: *const MessageMember,
    pub(crate) init: Option<unsafe extern "C" fn(*mut c_void, i32)>,
    pub(crate) fini: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// `rosidl_typesupport_introspection_c__MessageMember` and its C++ counterpart, whose `resize` returns nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MessageMember {
    pub(crate) name: *const c_char,
    pub(crate) type_id: u8,
    pub(crate) string_upper_bound: usize,
    pub(crate) members: *const MessageTypeSupport,
    pub(crate) is_key: bool,
    pub(crate) is_array: bool,
    pub(crate) array_size: usize,
    pub(crate) is_upper_bound: bool,
    pub(crate) offset: u32,
    pub(crate) default_value: *const c_void,
    pub(crate) size_function: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    pub(crate) get_const: Option<unsafe extern "C" fn(*const c_void, usize) -> *const c_void>,
    pub(crate) get: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    pub(crate) fetch: Option<unsafe extern "C" fn(*const c_void, usize, *mut c_void)>,
    pub(crate) assign: Option<unsafe extern "C" fn(*mut c_void, usize, *const c_void)>,
    pub(crate) resize: Option<unsafe extern "C" fn(*mut c_void, usize) -> bool>,
}

/// The constants of `rosidl_typesupport_introspection_c/field_types.h`.
pub(crate) mod type_id {
    pub(crate) const FLOAT: u8 = 1;
    pub(crate) const DOUBLE: u8 = 2;
    pub(crate) const CHAR: u8 = 4;
    pub(crate) const BOOLEAN: u8 = 6;
    pub(crate) const OCTET: u8 = 7;
    pub(crate) const UINT8: u8 = 8;
    pub(crate) const INT8: u8 = 9;
    pub(crate) const UINT16: u8 = 10;
    pub(crate) const INT16: u8 = 11;
    pub(crate) const UINT32: u8 = 12;
    pub(crate) const INT32: u8 = 13;
    pub(crate) const UINT64: u8 = 14;
    pub(crate) const INT64: u8 = 15;
    pub(crate) const STRING: u8 = 16;
    pub(crate) const WSTRING: u8 = 17;
    pub(crate) const MESSAGE: u8 = 18;
}

/// Sizes and offsets that the C compiler computes from the headers of Kilted on 64-bit Linux.
#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn structures_lie_as_in_c() {
        assert_eq!(
            (size_of::<MessageTypeSupport>(), size_of::<ServiceTypeSupport>()),
            (48, 88)
        );
        assert_eq!((size_of::<TypeHash>(), size_of::<CString>()), (33, 24));
        assert_eq!((size_of::<TypeSource>(), size_of::<TypeDescription>()), (72, 72));
        assert_eq!((size_of::<Field>(), size_of::<FieldType>()), (96, 48));
        assert_eq!(
            (size_of::<MessageMembers>(), offset_of!(MessageMembers, members)),
            (64, 40)
        );
        assert_eq!(size_of::<MessageMember>(), 112);
        assert_eq!(
            (
                offset_of!(MessageMember, is_array),
                offset_of!(MessageMember, offset)
            ),
            (33, 52)
        );
        assert_eq!(offset_of!(MessageMember, resize), 104);
    }
}
