//! A C message with every kind of field, its hand-made tables, and the same message as the codecs encode it.

use crate::abi::introspection::{
    CString, MessageMember, MessageMembers, MessageTypeSupport, Sequence, type_id,
};
use crate::typesupport::{Type, TypeError};
use crate::walk::MessageError;
use schema::{Flavour, Parts, Registry, Schema};
use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::ptr::{from_mut, from_ref, null};

/// Has no padding that a data part lacks, but contains an empty message, which takes a byte in memory only.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Odd {
    pub(super) nothing: u8,
    pub(super) small: u8,
    pub(super) word: u16,
}

/// Padded, in memory as in a data part.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) small: u8,
    pub(super) real: f64,
    pub(super) flag: bool,
}

#[repr(C)]
pub(super) struct Child {
    pub(super) name: CString,
    pub(super) flags: Sequence<bool>,
}

#[repr(C)]
pub(super) struct All {
    pub(super) flag: bool,
    pub(super) small: i8,
    pub(super) word: u16,
    pub(super) real: f64,
    pub(super) text: CString,
    pub(super) wide: Sequence<u16>,
    pub(super) short: CString,
    pub(super) inner: Inner,
    pub(super) inners: [Inner; 2],
    pub(super) nothing: u8,
    pub(super) names: [CString; 2],
    pub(super) bytes: Sequence<u8>,
    pub(super) flags: Sequence<bool>,
    pub(super) reals: Sequence<f64>,
    pub(super) elements: Sequence<Inner>,
    pub(super) odd: Sequence<Odd>,
    pub(super) texts: Sequence<CString>,
    pub(super) children: Sequence<Child>,
    pub(super) empties: Sequence<u8>,
}

pub(super) const TEXT: &str = "bool flag\nint8 small\nuint16 word\nfloat64 real\nstring text\nwstring wide\nstring<=5 short\nInner inner\n\
    Inner[2] inners\nEmpty nothing\nstring[2] names\nuint8[] bytes\nbool[] flags\nfloat64[<=40] reals\nInner[] elements\n\
    Odd[] odd\nstring[] texts\nChild[] children\nEmpty[] empties\n";

pub(super) fn schema() -> Schema {
    let mut registry = Registry::new(Flavour::Ros2);
    for (name, text) in [
        ("t/Empty", ""),
        ("t/Odd", "Empty nothing\nuint8 small\nuint16 word"),
        ("t/Inner", "uint8 small\nfloat64 real\nbool flag"),
        ("t/Child", "string name\nbool[] flags"),
        ("t/All", TEXT),
    ] {
        registry.add_message(name, text).expect("parses");
    }
    registry.schema("t/All").expect("compiles")
}

/// As rosidl generates it: frees, and allocates zeroed memory. (The content of elements is not freed here.)
pub(super) unsafe extern "C" fn resize<T>(member: *mut c_void, size: usize) -> bool {
    let sequence = member.cast::<Sequence<T>>();
    // SAFETY: a sequence of the test's messages, whose memory comes from malloc.
    unsafe {
        libc::free((*sequence).data.cast());
        (*sequence).data = match size {
            0 => std::ptr::null_mut(),
            n => libc::calloc(n, size_of::<T>()).cast(),
        };
        (*sequence).size = size;
        (*sequence).capacity = size;
    }
    true
}

pub(super) fn member(name: &'static CStr, type_id: u8, offset: usize) -> MessageMember {
    MessageMember {
        name: name.as_ptr(),
        type_id,
        string_upper_bound: 0,
        members: null(),
        is_key: false,
        is_array: false,
        array_size: 0,
        is_upper_bound: false,
        offset: offset as u32,
        default_value: null(),
        size_function: None,
        get_const: None,
        get: None,
        fetch: None,
        assign: None,
        resize: None,
    }
}

pub(super) fn sequence<T>(name: &'static CStr, type_id: u8, offset: usize) -> MessageMember {
    MessageMember {
        is_array: true,
        resize: Some(resize::<T>),
        ..member(name, type_id, offset)
    }
}

pub(super) fn tables(size: usize, members: Vec<MessageMember>) -> *const MessageTypeSupport {
    let members = Vec::leak(members);
    let members = Box::leak(Box::new(MessageMembers {
        namespace: c"t__msg".as_ptr(),
        name: null(),
        count: members.len() as u32,
        size,
        has_any_key: false,
        members: members.as_ptr(),
        init: None,
        fini: None,
    }));
    Box::leak(Box::new(MessageTypeSupport {
        identifier: c"rosidl_typesupport_introspection_c".as_ptr(),
        data: from_ref(members).cast(),
        func: None,
        type_hash: None,
        description: None,
        sources: None,
    }))
}

/// The members of `All`.
pub(super) fn members() -> Vec<MessageMember> {
    use type_id::{BOOLEAN, DOUBLE, INT8, MESSAGE, STRING, UINT8, UINT16, WSTRING};
    let empty = tables(1, vec![member(c"structure_needs_at_least_one_member", UINT8, 0)]);
    let of = |tables, member| MessageMember {
        members: tables,
        ..member
    };
    let odd = tables(
        size_of::<Odd>(),
        vec![
            of(empty, member(c"nothing", MESSAGE, offset_of!(Odd, nothing))),
            member(c"small", UINT8, offset_of!(Odd, small)),
            member(c"word", UINT16, offset_of!(Odd, word)),
        ],
    );
    let inner = tables(
        size_of::<Inner>(),
        vec![
            member(c"small", UINT8, offset_of!(Inner, small)),
            member(c"real", DOUBLE, offset_of!(Inner, real)),
            member(c"flag", BOOLEAN, offset_of!(Inner, flag)),
        ],
    );
    let child = tables(
        size_of::<Child>(),
        vec![
            member(c"name", STRING, offset_of!(Child, name)),
            sequence::<bool>(c"flags", BOOLEAN, offset_of!(Child, flags)),
        ],
    );
    let two = |member| MessageMember {
        is_array: true,
        array_size: 2,
        ..member
    };
    vec![
        member(c"flag", BOOLEAN, offset_of!(All, flag)),
        member(c"small", INT8, offset_of!(All, small)),
        member(c"word", UINT16, offset_of!(All, word)),
        member(c"real", DOUBLE, offset_of!(All, real)),
        member(c"text", STRING, offset_of!(All, text)),
        member(c"wide", WSTRING, offset_of!(All, wide)),
        MessageMember {
            string_upper_bound: 5,
            ..member(c"short", STRING, offset_of!(All, short))
        },
        of(inner, member(c"inner", MESSAGE, offset_of!(All, inner))),
        two(of(inner, member(c"inners", MESSAGE, offset_of!(All, inners)))),
        of(empty, member(c"nothing", MESSAGE, offset_of!(All, nothing))),
        two(member(c"names", STRING, offset_of!(All, names))),
        sequence::<u8>(c"bytes", UINT8, offset_of!(All, bytes)),
        sequence::<bool>(c"flags", BOOLEAN, offset_of!(All, flags)),
        MessageMember {
            array_size: 40,
            is_upper_bound: true,
            ..sequence::<f64>(c"reals", DOUBLE, offset_of!(All, reals))
        },
        of(
            inner,
            sequence::<Inner>(c"elements", MESSAGE, offset_of!(All, elements)),
        ),
        of(odd, sequence::<Odd>(c"odd", MESSAGE, offset_of!(All, odd))),
        sequence::<CString>(c"texts", STRING, offset_of!(All, texts)),
        of(
            child,
            sequence::<Child>(c"children", MESSAGE, offset_of!(All, children)),
        ),
        of(
            empty,
            sequence::<u8>(c"empties", MESSAGE, offset_of!(All, empties)),
        ),
    ]
}

pub(super) fn try_type(members: Vec<MessageMember>) -> Result<Type, TypeError> {
    let tables = tables(size_of::<All>(), members);
    // SAFETY: tables of `All`, which are never freed.
    unsafe { Type::of_tables(schema(), (*tables).data.cast()) }
}

pub(super) fn of_threshold(bytes: usize) -> Type {
    let tables = tables(size_of::<All>(), members());
    // SAFETY: as in `try_type`.
    unsafe { Type::of_tables(schema().with_threshold(bytes), (*tables).data.cast()) }.expect("fits")
}

/// A message of zeroes, as `init` makes it.
pub(super) fn blank() -> Box<All> {
    // SAFETY: zeroes are a valid `All`: numbers, null pointers and false.
    unsafe { Box::new(std::mem::zeroed()) }
}

pub(super) fn write(ty: &Type, message: &All) -> Result<Parts, MessageError> {
    let message = from_ref(message).cast();
    // SAFETY: a message of the type that nothing changes meanwhile.
    unsafe {
        let sizes = ty.sizes(message)?;
        // Not zero, so that unwritten padding shows.
        let mut control = vec![0xaa; sizes.control];
        let mut parts: Vec<_> = sizes.parts().iter().map(|n| vec![0xaa; *n]).collect();
        ty.write(message, &mut control, parts.iter_mut().map(Vec::as_mut_slice))?;
        Ok(Parts { control, parts })
    }
}

pub(super) fn read(ty: &Type, parts: &Parts, message: &mut All) -> Result<(), MessageError> {
    // SAFETY: a message of the type that only this function uses.
    unsafe { ty.read(&parts.control, &parts.slices(), from_mut(message).cast()) }
}

pub(super) const YAML: &str =
    "{flag: true, small: -3, word: 60000, real: 2.5, text: wörter, wide: 'wïde', short: '12345',
    inner: {small: 1, real: 1.5, flag: true},
    inners: [{small: 2, real: -1.0, flag: false}, {small: 3, real: 9.0, flag: true}],
    nothing: {}, names: [one, ''], bytes: [1, 2, 3], flags: [true, false, true], reals: [0.5, 0.25],
    elements: [{small: 7, real: 7.5, flag: true}, {small: 8, real: 8.5, flag: false}],
    odd: [{nothing: {}, small: 5, word: 500}, {nothing: {}, small: 6, word: 600}],
    texts: [a, '', ccc],
    children: [{name: first, flags: [true]}, {name: second, flags: []}], empties: [{}, {}]}";

/// The message of a text, as the codecs of `schema` encode it.
pub(super) fn parts_of(ty: &Type, yaml: &str) -> Parts {
    let value = ty.schema().value_from_yaml(yaml).expect("a value");
    let bytes = ty.schema().encode_ros1(&value).expect("encodes");
    ty.schema().split_ros1(&bytes).expect("own bytes").to_parts()
}

pub(super) fn slice<T>(of: &Sequence<T>) -> &[T] {
    match of.size {
        0 => &[],
        // SAFETY: a sequence of a valid message.
        n => unsafe { std::slice::from_raw_parts(of.data, n) },
    }
}
