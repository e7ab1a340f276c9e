//! All message types of an installed ROS 2, in C and C++, with random values. What is written and read back is the same
//! message to rmw_fastrtps, and both produce the same CDR.
//!
//! Runs if `ROS2_WHEELS` names a prefix with ROS 2's packages, such as a virtual environment with the wheels of Kilted.

use super::cxx;
use super::place::Long;
use super::plan::{Step, Text};
use super::tests::{Rng, mutate};
use crate::abi::introspection::{
    MessageMember, MessageMembers, MessageTypeSupport, ServiceTypeSupport, type_id,
};
use crate::typesupport::{Language, ServiceType, Type, introspection};
use schema::{Flavour, Registry};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

const NAME: &str = "walk::wheels::types_of_an_installed_ros_2_are_written_and_read_as_rmw_fastrtps_does";

#[test]
fn types_of_an_installed_ros_2_are_written_and_read_as_rmw_fastrtps_does() {
    let Some(prefix) = std::env::var_os("ROS2_WHEELS").map(PathBuf::from) else {
        eprintln!(
            "NOT RUN: ROS2_WHEELS does not name a prefix with ROS 2's packages, so that no type of ROS 2 was tried"
        );
        return;
    };
    let lib = prefix.join("lib");
    assert!(
        lib.join("librmw_fastrtps_cpp.so").exists(),
        "{} has no rmw_fastrtps_cpp",
        lib.display()
    );
    // The dynamic linker reads it when a process starts.
    let path = library_path(&prefix);
    if std::env::var_os("LD_LIBRARY_PATH").as_deref() != Some(&path) {
        let this = std::env::current_exe().expect("this test");
        let mut command = std::process::Command::new(this);
        command
            .args([NAME, "--exact", "--nocapture"])
            .env("LD_LIBRARY_PATH", &path);
        let status = command.status().expect("starts");
        assert!(status.success(), "{status}");
        return;
    }
    let fastrtps = Fastrtps::open(&lib);
    let mut packages = BTreeSet::new();
    let (mut types, mut lifted, mut in_place, mut files) = (0, 0, 0, 0);
    for (suffix, language) in [("c", Language::C), ("cpp", Language::Cxx)] {
        let start = format!("rosidl_typesupport_{suffix}__get_message_type_support_handle__");
        for (file, symbol) in symbols(&lib, suffix, &start) {
            let name = symbol.trim_start_matches(&start).to_owned();
            packages.insert(name.split("__").next().unwrap_or_default().to_owned());
            let handle = handle::<MessageTypeSupport>(&file, &symbol);
            // SAFETY: a type support of a library that stays loaded.
            unsafe {
                let (of_it, borrowed) = try_type(&fastrtps, handle, language, &name);
                lifted += of_it;
                in_place += borrowed;
                files += usize::from(same_as_its_file(&prefix, handle));
            }
            types += 1;
        }
        let start = format!("rosidl_typesupport_{suffix}__get_service_type_support_handle__");
        for (file, symbol) in symbols(&lib, suffix, &start) {
            let handle = handle::<ServiceTypeSupport>(&file, &symbol);
            // SAFETY: as above.
            let found = unsafe { ServiceType::new(handle) }.unwrap_or_else(|e| panic!("{symbol}: {e}"));
            assert_eq!(found.hash.text(), found.service.rihs01());
            assert_eq!(found.request.language(), language);
            assert!(found.service.definition().contains("---\n"));
            assert!(found.response.schema().name().ends_with("_Response"));
        }
    }
    println!(
        "{types} types of {packages:?} are as with rmw_fastrtps; {lifted} data parts, {in_place} of them borrowed; {files} have the text of their files"
    );
    if !packages.contains("test_msgs") {
        eprintln!("NOT ALL: test_msgs is not installed, which has every kind of field");
    }
    for package in [
        "std_msgs",
        "geometry_msgs",
        "sensor_msgs",
        "nav_msgs",
        "rcl_interfaces",
        "action_msgs",
    ] {
        assert!(
            packages.contains(package),
            "{package} is not installed in {}",
            lib.display()
        );
    }
    assert!(types > 300 && lifted > 100 && in_place > 50 && files > 200);
}

/// The packages' libraries, and the folders in which wheels keep their bundled ones.
fn library_path(prefix: &Path) -> OsString {
    let folders = |of: &Path| {
        let entries = std::fs::read_dir(of).into_iter().flatten().flatten();
        entries.map(|e| e.path()).collect::<BTreeSet<_>>()
    };
    let lib = prefix.join("lib");
    let mut out = vec![lib.clone()];
    for python in folders(&lib) {
        let packages = folders(&python.join("site-packages"));
        out.extend(
            packages
                .into_iter()
                .filter(|p| p.extension().is_some_and(|e| e == "libs")),
        );
    }
    std::env::join_paths(out).expect("no colons")
}

/// Checks that a message whose arrays lie in data parts is the same to rmw_fastrtps. Returns how many do.
///
/// # Safety
/// The type's library stays loaded.
unsafe fn lent(ty: &Type, control: &[u8], parts: &[&[u8]], look: impl FnOnce(*mut c_void)) -> usize {
    let parts: Vec<_> = parts.iter().map(|p| Part::of(p)).collect();
    let slices: Vec<&[u8]> = parts.iter().map(Part::bytes).collect();
    // SAFETY: upheld by the caller; the parts outlive what is borrowed, which is dropped before the message.
    unsafe {
        let message = ty.plan().make().expect("has functions, and there is memory");
        let borrowed = ty
            .borrow(control, &slices, message.as_ptr())
            .expect("as it was read");
        look(message.as_ptr());
        borrowed.len()
    }
}

/// Checks that what a node writes to arrays with room elsewhere is written from there, and stays there.
///
/// # Safety
/// As [`lent`], and `message` is a C++ message of the type, and `control` and `parts` are its encoding.
unsafe fn placed(ty: &Type, message: *mut c_void, control: &[u8], parts: &[&[u8]]) {
    // SAFETY: upheld by the caller; rooms outlive the arrays in them, which are taken back before the message ends.
    unsafe {
        let Some(shape) = ty.shape(message) else {
            return;
        };
        assert_eq!(shape.control, control.len());
        let long = &shape.long;
        let lens: Vec<_> = long.iter().map(|l| l.bytes).collect();
        assert_eq!(lens, parts.iter().map(|p| p.len()).collect::<Vec<_>>());
        let rooms: Vec<_> = parts.iter().map(|p| Part::of(&vec![0xaa; p.len()])).collect();
        let message = ty.plan().make().expect("has functions, and there is memory");
        let of_room = |(l, room): (&Long, &Part)| ty.place(message.as_ptr(), *l, room.start());
        let placed: Vec<_> = long.iter().zip(&rooms).filter_map(of_room).collect();
        // Arrays with default values have memory of their own.
        let all = placed.len() == long.len();
        ty.read(control, parts, message.as_ptr()).expect("as before");
        if all {
            assert!(placed.iter().all(|p| p.is_in_place()), "{:?}", ty.schema());
            assert_eq!(ty.shape(message.as_ptr()).as_ref(), Some(&shape));
            let mut again = vec![0; control.len()];
            let own = rooms.iter().map(Part::start).collect::<Vec<_>>();
            let own = own
                .iter()
                .zip(&lens)
                .map(|(start, len)| std::slice::from_raw_parts_mut(*start, *len));
            ty.write(message.as_ptr(), &mut again, own)
                .expect("as long as its room");
            assert_eq!(again, control);
            assert!(rooms.iter().zip(parts).all(|(room, part)| room.bytes() == *part));
        }
        placed.iter().for_each(|p| p.take_back());
    }
}

/// A data part, aligned for all elements.
struct Part(Vec<std::cell::UnsafeCell<u128>>, usize);

impl Part {
    fn of(bytes: &[u8]) -> Self {
        let words = bytes.chunks(16).map(|chunk| {
            let mut word = [0; 16];
            word[..chunk.len()].copy_from_slice(chunk);
            u128::from_ne_bytes(word).into()
        });
        Part(words.collect(), bytes.len())
    }

    fn start(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: this many bytes were stored there, and nothing writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.start(), self.1) }
    }
}

/// Lists the arrays that may become data parts, and whether each is one copy.
fn bulk_arrays(steps: &[Step], paths: &[String], out: &mut Vec<(String, bool)>) {
    for step in steps {
        match step {
            Step::Bulk { array, element } => {
                let path = paths.get(array.path as usize).cloned().unwrap_or_default();
                out.push((path, element.natural_in_memory() && !element.padded()));
            }
            Step::Repeat { body, .. } | Step::List { body, .. } => bulk_arrays(body, paths, out),
            _ => {}
        }
    }
}

/// Checks that bulk arrays are one copy: those of numbers, and of structures without padding.
fn copied_whole(ty: &Type) -> usize {
    let mut found = Vec::new();
    bulk_arrays(&ty.plan().steps, &ty.plan().paths, &mut found);
    let parts = ty.schema().parts();
    assert_eq!(found.len(), parts.len(), "{:?}", ty.schema());
    for ((path, whole), part) in found.iter().zip(&parts) {
        assert_eq!(format!("{path}[]"), part.path);
        // Structures that contain an empty message have a byte for it in memory.
        assert!(
            *whole != part.padded || part.element_type.contains('/'),
            "{path} of {:?}",
            ty.schema()
        );
    }
    found.iter().filter(|(_, whole)| *whole).count()
}

/// Checks that the schema of a message is that of its installed file as the project's tools find it: text and MD5.
/// Returns false if there is no such file.
///
/// # Safety
/// The handle is a type support.
unsafe fn same_as_its_file(prefix: &Path, handle: *const MessageTypeSupport) -> bool {
    // SAFETY: upheld by the caller.
    let ty = unsafe { Type::new(handle) }.expect("again");
    let name = ty.schema().ros2_name();
    let file = prefix.join("share").join(&name).with_extension("msg");
    // Types of services, actions and IDL files have none.
    let Ok(text) = std::fs::read_to_string(&file) else {
        return false;
    };
    let mut registry = Registry::new(Flavour::Ros2);
    registry.add_folder(prefix.join("share"));
    let installed = registry.schema(&name).expect("compiles");
    assert_eq!(ty.schema().md5(), installed.md5(), "{name}");
    assert_eq!(ty.schema().message_type().text(), text, "{name}");
    assert_eq!(ty.schema().definition(), installed.definition(), "{name}");
    true
}

/// Returns the numbers of data parts that were written, and of those that were borrowed.
///
/// # Safety
/// The handle is a type support.
unsafe fn try_type(
    fastrtps: &Fastrtps,
    handle: *const MessageTypeSupport,
    language: Language,
    name: &str,
) -> (usize, usize) {
    // SAFETY: upheld by the caller, for everything below: messages have the type, and only this thread uses them.
    unsafe {
        let ty = Type::new(handle).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(ty.language(), language);
        assert_eq!(ty.schema().ros2_name(), name.replace("__", "/"));
        assert_eq!(ty.hash().text(), ty.schema().rihs01());
        let whole = copied_whole(&ty);
        let expected = match name {
            "sensor_msgs__msg__LaserScan" => Some(2),
            "geometry_msgs__msg__PoseArray"
            | "nav_msgs__msg__OccupancyGrid"
            | "sensor_msgs__msg__Image"
            | "sensor_msgs__msg__PointCloud2" => Some(1),
            _ => None,
        };
        assert!(expected.is_none_or(|n| n == whole), "{name}: {whole}");
        let members = introspection(handle)
            .expect("again")
            .0
            .data
            .cast::<MessageMembers>();
        let mut rng = Rng(name.len() as u64);
        let (mut lifted, mut in_place) = (0, 0);
        let read = Owned::new(members);
        for round in 0..6 {
            let message = Owned::new(members);
            if round > 0 {
                fill(members, language, message.0, &mut rng);
            }
            let expected = fastrtps.serialize(handle, message.0);
            // rmw_fastrtps returns a buffer of its estimated size, which may exceed the message.
            let same = |ours: &[u8], what: &str| {
                let rest = expected.strip_prefix(ours);
                assert!(
                    rest.is_some_and(|rest| rest.iter().all(|b| *b == 0)),
                    "{name}: {what}\n{ours:?}\n{expected:?}"
                );
            };
            let cdr = ty.serialize(message.0).unwrap_or_else(|e| panic!("{name}: {e}"));
            same(&cdr, "our CDR differs");

            let sizes = ty.sizes(message.0).expect("again");
            let mut control = vec![0; sizes.control];
            let mut parts: Vec<_> = sizes.parts().iter().map(|n| vec![0; *n]).collect();
            ty.write(message.0, &mut control, parts.iter_mut().map(Vec::as_mut_slice))
                .expect("writes");
            lifted += parts.len();
            let slices: Vec<_> = parts.iter().map(Vec::as_slice).collect();
            ty.schema().decode(&control, &slices).expect("a message");
            // Reads into the same message again and again.
            ty.read(&control, &slices, read.0)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            same(
                &trim(&fastrtps.serialize(handle, read.0), cdr.len()),
                "what was read differs",
            );

            in_place += lent(&ty, &control, &slices, |message| {
                same(
                    &trim(&fastrtps.serialize(handle, message), cdr.len()),
                    "what was borrowed differs",
                );
            });
            if language == Language::Cxx {
                placed(&ty, message.0, &control, &slices);
            }

            let fresh = Owned::new(members);
            ty.deserialize(&expected, fresh.0)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            same(
                &trim(&fastrtps.serialize(handle, fresh.0), cdr.len()),
                "what was deserialized differs",
            );
            let theirs = Owned::new(members);
            fastrtps.deserialize(handle, &cdr, theirs.0);
            same(
                &ty.serialize(theirs.0).expect("theirs"),
                "what rmw_fastrtps deserialized differs",
            );

            for _ in 0..50 {
                let mut damaged = control.clone();
                let mut cut = slices.clone();
                match rng.below(8) {
                    0 => drop(cut.pop()),
                    1 => cut.push(&[0; 8]),
                    _ => mutate(&mut damaged, &mut rng),
                }
                let accepted = ty.read(&damaged, &cut, fresh.0).is_ok();
                assert_eq!(accepted, ty.schema().join(&damaged, &cut).is_ok(), "{name}");
                // It is still a message: it can be written, and finalized at the end of the round.
                ty.serialize(fresh.0)
                    .unwrap_or_else(|e| panic!("{name} after damage: {e}"));
            }
        }
        assert!(in_place <= lifted);
        (lifted, in_place)
    }
}

fn trim(bytes: &[u8], len: usize) -> Vec<u8> {
    bytes.get(..len).unwrap_or(bytes).to_vec()
}

/// A message in memory of its own, which the type's functions initialize and finalize.
struct Owned(*mut c_void, *const MessageMembers);

impl Owned {
    /// # Safety
    /// The tables belong to a type.
    unsafe fn new(members: *const MessageMembers) -> Self {
        // SAFETY: upheld by the caller; malloc's memory is aligned for every type.
        unsafe {
            let message = libc::calloc(1, (*members).size);
            (*members).init.expect("init")(message, 0);
            Self(message, members)
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: an initialized message of this type.
        unsafe {
            (*self.1).fini.expect("fini")(self.0);
            libc::free(self.0);
        }
    }
}

/// Gives every field a random value, through the functions of the tables where they exist.
///
/// # Safety
/// `message` is an initialized message of the type.
unsafe fn fill(members: *const MessageMembers, language: Language, message: *mut c_void, rng: &mut Rng) {
    // SAFETY: upheld by the caller.
    unsafe {
        for i in 0..(*members).count as usize {
            let member = (*members).members.add(i).read();
            if CStr::from_ptr(member.name) == c"structure_needs_at_least_one_member" {
                continue;
            }
            let at = message.byte_add(member.offset as usize);
            if !member.is_array {
                fill_one(&member, language, at, rng);
                continue;
            }
            let count = match (member.array_size, member.is_upper_bound) {
                (0, _) => {
                    let most = [3, 3, if member.type_id < type_id::STRING { 700 } else { 20 }][rng.below(3)];
                    rng.below(most)
                }
                (n, true) => rng.below(n + 1),
                (n, false) => n,
            };
            if member.array_size == 0 || member.is_upper_bound {
                let resize = member.resize.expect("resize");
                match language {
                    Language::C => assert!(resize(at, count)),
                    Language::Cxx => assert!(cxx::resize(
                        std::mem::transmute::<unsafe extern "C" fn(*mut c_void, usize) -> bool, cxx::Resize>(
                            resize
                        ),
                        at.cast(),
                        count
                    )),
                }
            }
            for i in 0..count {
                match (member.get, member.assign) {
                    (Some(get), _) => fill_one(&member, language, get(at, i), rng),
                    (None, Some(assign)) => assign(at, i, std::ptr::from_ref(&(rng.below(2) == 1)).cast()),
                    _ => panic!("no way to an element"),
                }
            }
        }
    }
}

/// # Safety
/// `at` is an initialized element of the member's type.
unsafe fn fill_one(member: &MessageMember, language: Language, at: *mut c_void, rng: &mut Rng) {
    let len = match member.type_id {
        type_id::BOOLEAN => {
            // SAFETY: upheld by the caller.
            unsafe { *at.cast::<bool>() = rng.below(2) == 1 };
            return;
        }
        type_id::MESSAGE => {
            // SAFETY: upheld by the caller.
            unsafe { fill((*member.members).data.cast(), language, at, rng) };
            return;
        }
        type_id::STRING | type_id::WSTRING => {
            let unit = if member.type_id == type_id::STRING { 1 } else { 2 };
            let most = match member.string_upper_bound {
                0 => 40,
                n => n.min(40),
            };
            let units: Vec<u16> = (0..rng.below(most + 1))
                .map(|_| 32 + rng.below(if unit == 1 { 90 } else { 0xd000 }) as u16)
                .collect();
            let bytes: Vec<u8> = match unit {
                1 => units.iter().map(|u| *u as u8).collect(),
                _ => units.iter().flat_map(|u| u.to_le_bytes()).collect(),
            };
            let text = Text {
                offset: 0,
                unit,
                bound: u32::MAX,
                path: 0,
                language,
            };
            // SAFETY: upheld by the caller.
            unsafe { text.set(at.cast(), &bytes) }.expect("memory");
            return;
        }
        type_id::UINT16 | type_id::INT16 => 2,
        type_id::UINT32 | type_id::INT32 | type_id::FLOAT => 4,
        type_id::UINT64 | type_id::INT64 | type_id::DOUBLE => 8,
        _ => 1,
    };
    for i in 0..len {
        // SAFETY: upheld by the caller.
        unsafe { *at.cast::<u8>().add(i) = rng.below(256) as u8 };
    }
}

/// `rcutils_allocator_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Allocator([*const c_void; 5]);

/// `rmw_serialized_message_t`.
#[repr(C)]
struct Serialized {
    buffer: *mut u8,
    length: usize,
    capacity: usize,
    allocator: Allocator,
}

type Serialize = unsafe extern "C" fn(*const c_void, *const MessageTypeSupport, *mut Serialized) -> c_int;
type Deserialize = unsafe extern "C" fn(*const Serialized, *const MessageTypeSupport, *mut c_void) -> c_int;

/// More bytes than a message of this test needs in CDR.
const MOST: usize = 1 << 20;

struct Fastrtps {
    allocator: Allocator,
    serialize: Serialize,
    deserialize: Deserialize,
}

impl Fastrtps {
    fn open(lib: &Path) -> Self {
        let file = lib.join("librmw_fastrtps_cpp.so");
        // SAFETY: functions with these names have these types.
        unsafe {
            let allocator: unsafe extern "C" fn() -> Allocator = std::mem::transmute(symbol(
                &lib.join("librcutils.so"),
                "rcutils_get_default_allocator",
            ));
            let serialize: Serialize = std::mem::transmute(symbol(&file, "rmw_serialize"));
            let deserialize: Deserialize = std::mem::transmute(symbol(&file, "rmw_deserialize"));
            Self {
                allocator: allocator(),
                serialize,
                deserialize,
            }
        }
    }

    /// # Safety
    /// The message has the type.
    unsafe fn serialize(&self, handle: *const MessageTypeSupport, message: *const c_void) -> Vec<u8> {
        // Fast CDR leaves the buffer's content in padding: zeroes make it comparable.
        let mut buffer = vec![0; MOST];
        let mut out = Serialized {
            buffer: buffer.as_mut_ptr(),
            length: 0,
            capacity: buffer.len(),
            allocator: self.allocator,
        };
        // SAFETY: upheld by the caller.
        assert_eq!(unsafe { (self.serialize)(message, handle, &mut out) }, 0);
        assert_eq!(
            out.buffer,
            buffer.as_mut_ptr(),
            "messages stay below {MOST} bytes"
        );
        buffer.truncate(out.length);
        buffer
    }

    /// # Safety
    /// The message has the type.
    unsafe fn deserialize(&self, handle: *const MessageTypeSupport, bytes: &[u8], message: *mut c_void) {
        let from = Serialized {
            buffer: bytes.as_ptr().cast_mut(),
            length: bytes.len(),
            capacity: bytes.len(),
            allocator: self.allocator,
        };
        // SAFETY: upheld by the caller; the bytes are only read.
        assert_eq!(unsafe { (self.deserialize)(&from, handle, message) }, 0);
    }
}

fn symbol(file: &Path, name: &str) -> *mut c_void {
    let path = CString::new(file.as_os_str().as_encoded_bytes()).expect("no zero");
    let name = CString::new(name).expect("no zero");
    // SAFETY: strings that end with a NUL byte; the library stays loaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        if library.is_null() {
            let error: *const c_char = libc::dlerror();
            panic!("{}: {}", file.display(), CStr::from_ptr(error).to_string_lossy());
        }
        let found = libc::dlsym(library, name.as_ptr());
        assert!(!found.is_null(), "{name:?} in {}", file.display());
        found
    }
}

fn handle<T>(file: &Path, name: &str) -> *const T {
    // SAFETY: functions with these names have this type.
    unsafe {
        let get: unsafe extern "C" fn() -> *const T = std::mem::transmute(symbol(file, name));
        get()
    }
}

/// Returns the functions whose names begin with `prefix`, with their library.
fn symbols(lib: &Path, suffix: &str, prefix: &str) -> BTreeSet<(PathBuf, String)> {
    let end = format!("__rosidl_typesupport_{suffix}.so");
    let mut out = BTreeSet::new();
    for entry in std::fs::read_dir(lib).expect("readable") {
        let file = entry.expect("readable").path();
        if !file.to_string_lossy().ends_with(&end) {
            continue;
        }
        let bytes = std::fs::read(&file).expect("readable");
        for text in bytes.split(|b| *b == 0) {
            if text.starts_with(prefix.as_bytes()) {
                out.insert((file.clone(), String::from_utf8_lossy(text).into_owned()));
            }
        }
    }
    assert!(!out.is_empty(), "no library in {} has {prefix}…", lib.display());
    out
}
