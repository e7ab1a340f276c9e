//! Type supports built by hand.

use super::*;
use crate::abi::introspection::{
    CString, Field, FieldType, IndividualTypeDescription, MessageMember, type_id,
};
use std::ptr::{from_ref, null, null_mut};

/// The hash of `std_msgs/msg/Int32` (`schema/src/rihs.rs`).
const INT32: [u8; 32] = [
    0xb6, 0x57, 0x8d, 0xed, 0x3c, 0x58, 0xc6, 0x26, 0xcf, 0xe8, 0xd1, 0xa6, 0xfb, 0x6e, 0x04, 0xf7, 0x06,
    0xf9, 0x7e, 0x9f, 0x03, 0xd2, 0x72, 0x7c, 0x9f, 0xf4, 0xe7, 0x4b, 0x1c, 0xef, 0x0d, 0xeb,
];

/// Ends with a NUL byte that its size does not count.
fn string(text: &'static str) -> CString {
    let bytes = Vec::leak([text.as_bytes(), &[0]].concat());
    Sequence {
        data: bytes.as_mut_ptr(),
        size: text.len(),
        capacity: text.len(),
    }
}

fn items<T>(items: Vec<T>) -> Sequence<T> {
    let items = Vec::leak(items);
    Sequence {
        data: items.as_mut_ptr(),
        size: items.len(),
        capacity: items.len(),
    }
}

unsafe extern "C" fn hash(_: *const MessageTypeSupport) -> *const TypeHash {
    const {
        &TypeHash {
            version: 1,
            value: INT32,
        }
    }
}

unsafe extern "C" fn other_hash(_: *const MessageTypeSupport) -> *const TypeHash {
    const {
        &TypeHash {
            version: 1,
            value: [0; 32],
        }
    }
}

unsafe extern "C" fn no_hash(_: *const MessageTypeSupport) -> *const TypeHash {
    null()
}

fn description_of(type_id: u8) -> *const TypeDescription {
    let field = Field {
        name: string("data"),
        ty: FieldType {
            type_id,
            capacity: 0,
            string_capacity: 0,
            nested_type_name: string(""),
        },
        default_value: string(""),
    };
    Box::leak(Box::new(TypeDescription {
        own: IndividualTypeDescription {
            type_name: string("std_msgs/msg/Int32"),
            fields: items(vec![field]),
        },
        referenced: items(vec![]),
    }))
}

unsafe extern "C" fn description(_: *const MessageTypeSupport) -> *const TypeDescription {
    description_of(6)
}

unsafe extern "C" fn a_long_double(_: *const MessageTypeSupport) -> *const TypeDescription {
    description_of(12)
}

unsafe extern "C" fn no_description(_: *const MessageTypeSupport) -> *const TypeDescription {
    null()
}

fn source_of(encoding: &'static str, text: &'static str) -> *const Sequence<TypeSource> {
    Box::leak(Box::new(items(vec![TypeSource {
        type_name: string("std_msgs/msg/Int32"),
        encoding: string(encoding),
        raw_file_contents: string(text),
    }])))
}

unsafe extern "C" fn sources(_: *const MessageTypeSupport) -> *const Sequence<TypeSource> {
    // As rosidl writes it: with a NUL byte in place of the last line end, which the size counts.
    source_of("msg", "# A number.\nint32 data\nint32 MOST=7\0")
}

/// As rosidl writes a line that has both kinds of quotes, or a backslash.
unsafe extern "C" fn escaped(_: *const MessageTypeSupport) -> *const Sequence<TypeSource> {
    let sources = source_of(
        "msg",
        r#"int32 data
string A="W\xc3\xb6rter"
string B=\'Hello"world!\'
string C='Hello\\'world!'"#,
    );
    // SAFETY: made above, for this call.
    unsafe { (*(*sources).data).raw_file_contents.size = ESCAPED.len() };
    sources
}

/// The text that it stands for.
const ESCAPED: &str = r#"int32 data
string A="Wörter"
string B='Hello"world!'
string C='Hello\'world!'
"#;

unsafe extern "C" fn other_sources(_: *const MessageTypeSupport) -> *const Sequence<TypeSource> {
    source_of("msg", "int64 data\n")
}

unsafe extern "C" fn idl(_: *const MessageTypeSupport) -> *const Sequence<TypeSource> {
    source_of("idl", "module std_msgs {};\n")
}

unsafe extern "C" fn same(
    handle: *const MessageTypeSupport,
    identifier: *const c_char,
) -> *const MessageTypeSupport {
    // SAFETY: valid handles and identifiers.
    unsafe {
        match CStr::from_ptr((*handle).identifier) == CStr::from_ptr(identifier) {
            true => handle,
            false => null(),
        }
    }
}

unsafe extern "C" fn nothing(_: *const MessageTypeSupport, _: *const c_char) -> *const MessageTypeSupport {
    null()
}

/// A dispatcher, whose data is the handle that it finds.
unsafe extern "C" fn dispatch(
    handle: *const MessageTypeSupport,
    identifier: *const c_char,
) -> *const MessageTypeSupport {
    // SAFETY: as documented above.
    unsafe { same((*handle).data.cast(), identifier) }
}

fn handle() -> MessageTypeSupport {
    let member = Box::leak(Box::new(MessageMember {
        name: c"data".as_ptr(),
        type_id: type_id::INT32,
        string_upper_bound: 0,
        members: null(),
        is_key: false,
        is_array: false,
        array_size: 0,
        is_upper_bound: false,
        offset: 0,
        default_value: null(),
        size_function: None,
        get_const: None,
        get: None,
        fetch: None,
        assign: None,
        resize: None,
    }));
    let members = Box::leak(Box::new(MessageMembers {
        namespace: c"std_msgs__msg".as_ptr(),
        name: c"Int32".as_ptr(),
        count: 1,
        size: 4,
        has_any_key: false,
        members: member,
        init: None,
        fini: None,
    }));
    MessageTypeSupport {
        identifier: Language::C.identifier().as_ptr(),
        data: from_ref(members).cast(),
        func: Some(same),
        type_hash: Some(hash),
        description: Some(description),
        sources: Some(sources),
    }
}

fn of(handle: &MessageTypeSupport) -> Result<Type, TypeError> {
    // SAFETY: a handle of this test, whose tables are never freed.
    unsafe { Type::new(handle) }
}

#[test]
fn a_type_has_its_own_text_or_one_of_its_description() {
    let own = of(&handle()).expect("a type");
    assert_eq!(own.schema().ros2_name(), "std_msgs/msg/Int32");
    assert_eq!(
        own.schema().definition(),
        "# A number.\nint32 data\nint32 MOST=7\n"
    );
    assert_eq!((own.language(), own.size()), (Language::C, 4));
    assert_eq!(own.hash().text(), own.schema().rihs01());
    let own = of(&MessageTypeSupport {
        sources: Some(escaped),
        ..handle()
    });
    assert_eq!(own.expect("a type").schema().definition(), ESCAPED);
    for sources in [None, Some(idl as _), Some(other_sources as _)] {
        let written = of(&MessageTypeSupport { sources, ..handle() }).expect("a type");
        assert_eq!(written.schema().definition(), "int32 data\n");
    }
}

#[test]
fn a_dispatcher_is_asked_for_introspection() {
    let inner = handle();
    let dispatcher = MessageTypeSupport {
        identifier: c"rosidl_typesupport_c".as_ptr(),
        data: from_ref(&inner).cast(),
        func: Some(dispatch),
        ..handle()
    };
    assert_eq!(of(&dispatcher).expect("a type").schema().name(), "std_msgs/Int32");
    for func in [None, Some(nothing as _)] {
        let error = of(&MessageTypeSupport { func, ..dispatcher }).expect_err("finds nothing");
        assert!(
            error.to_string().contains("rosidl_typesupport_c has no"),
            "{error}"
        );
    }
}

#[test]
fn null_pointers_and_contradictions_are_errors() {
    // SAFETY: null is allowed.
    unsafe {
        assert!(matches!(Type::new(null()), Err(TypeError::Incomplete { .. })));
        assert!(matches!(
            ServiceType::new(null()),
            Err(TypeError::Incomplete { .. })
        ));
    }
    let refused = |handle: MessageTypeSupport| of(&handle).expect_err("incomplete").to_string();
    for handle in [
        MessageTypeSupport {
            identifier: null(),
            ..handle()
        },
        MessageTypeSupport {
            type_hash: None,
            ..handle()
        },
        MessageTypeSupport {
            type_hash: Some(no_hash),
            ..handle()
        },
        MessageTypeSupport {
            description: None,
            ..handle()
        },
        MessageTypeSupport {
            description: Some(no_description),
            ..handle()
        },
    ] {
        assert!(refused(handle).contains(" has no "));
    }
    let error = refused(MessageTypeSupport {
        data: null(),
        ..handle()
    });
    assert!(
        error.starts_with("std_msgs/msg/Int32: the introspection tables say no tables"),
        "{error}"
    );
    let error = refused(MessageTypeSupport {
        type_hash: Some(other_hash),
        ..handle()
    });
    assert!(
        error.starts_with("std_msgs/msg/Int32: its type support states RIHS01_0000"),
        "{error}"
    );
    let error = refused(MessageTypeSupport {
        description: Some(a_long_double),
        sources: None,
        ..handle()
    });
    assert_eq!(error, "std_msgs/msg/Int32.data: a long double is not supported");
}

#[test]
fn a_service_without_functions_is_an_error() {
    let empty = ServiceTypeSupport {
        identifier: Language::Cxx.identifier().as_ptr(),
        data: null(),
        func: None,
        request: null(),
        response: null(),
        event: null(),
        create_event: null_mut::<c_void>(),
        destroy_event: null_mut::<c_void>(),
        type_hash: None,
        description: None,
        sources: None,
    };
    // SAFETY: a handle of this test.
    let error = unsafe { ServiceType::new(&empty) }.expect_err("incomplete");
    assert!(error.to_string().contains("no type description"), "{error}");
}
