//! Files that are not recordings, and their error messages.

use recording::{OpenError, ReadError, Recording};

use crate::support::{fixture, open, read, replace};

fn refused(bytes: &[u8]) -> String {
    open(bytes.to_vec()).expect_err("refused").to_string()
}

#[test]
fn missing_files_directories_and_pipes_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing.bag");
    let error = Recording::open(&missing).expect_err("missing");
    assert!(matches!(error, OpenError::Io { .. }));
    assert!(error.to_string().contains("missing.bag: No such file"), "{error}");
    let error = Recording::open(folder.path()).expect_err("a folder");
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");
    let error = Recording::open("/dev/null").expect_err("a device");
    assert!(matches!(error, OpenError::NotAFile { .. }), "{error}");
}

#[test]
fn a_file_without_permission_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root may read everything");
        return;
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o000)).expect("chmod");
    let error = Recording::open(file.path()).expect_err("no permission");
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[test]
fn empty_garbage_and_old_bags_are_named() {
    assert!(matches!(open(Vec::new()), Err(OpenError::Empty { .. })));
    let garbage = refused(b"\x7fELF\x02\x01 garbage");
    assert!(garbage.contains("neither a ROS 1 bag nor MCAP"), "{garbage}");
    assert!(
        garbage.contains("7f 45 4c 46") && garbage.contains(".ELF"),
        "{garbage}"
    );
    assert!(refused(b"#ROSBAG V1.2\nrest").contains("version 1.2"));
    assert!(refused(b"#ROSRECORD V1.1\nrest").contains("version 1.1"));
    assert!(refused(b"#ROSLOG V1.0").contains("version 1.0"));
    assert!(refused(b"#ROSBAG V3.0\n").contains("version 3.0"));
}

#[test]
fn an_encrypted_bag_is_refused_and_its_plugin_named() {
    let header = |encryptor: &str| {
        let mut fields = Vec::new();
        let mut field = |bytes: &[u8]| {
            fields.extend((bytes.len() as u32).to_le_bytes());
            fields.extend(bytes);
        };
        field(b"op=\x03");
        field(b"index_pos=\0\0\0\0\0\0\0\0");
        field(b"conn_count=\0\0\0\0");
        field(b"chunk_count=\0\0\0\0");
        field(format!("encryptor={encryptor}").as_bytes());
        let mut bag = b"#ROSBAG V2.0\n".to_vec();
        bag.extend((fields.len() as u32).to_le_bytes());
        bag.extend(fields);
        bag.extend([0; 4]);
        bag
    };
    let error = open(header("rosbag/AesCbcEncryptor")).expect_err("encrypted");
    assert!(
        matches!(&error, OpenError::Encrypted { encryptor, .. } if encryptor == "rosbag/AesCbcEncryptor")
    );
    assert!(error.to_string().contains("rosbag decrypt"), "{error}");
    for plain in ["", "rosbag/NoEncryptor"] {
        let recording = open(header(plain)).expect("not encrypted");
        assert_eq!(recording.messages().count(), 0);
        assert_eq!(recording.summary().start, None);
    }
}

#[test]
fn unknown_compressions_are_named_with_the_chunks_offset() {
    for (name, from, to) in [
        (
            "lz4.bag",
            b"compression=lz4".as_slice(),
            b"compression=zzz".as_slice(),
        ),
        ("zstd.mcap", b"\x04\0\0\0zstd", b"\x04\0\0\0brot"),
    ] {
        let mut bytes = fixture(name);
        replace(&mut bytes, from, to);
        let (messages, errors) = read(&open(bytes.clone()).expect("opens"));
        assert!(messages.is_empty(), "{name}");
        assert!(!errors.is_empty(), "{name}");
        for error in &errors {
            let text = error.to_string();
            match error {
                ReadError::UnknownCompression {
                    name: compression,
                    offset,
                    ..
                } => {
                    assert!(to.ends_with(compression.as_bytes()), "{text}");
                    let head = &bytes[*offset as usize..];
                    assert!(head[..120].windows(to.len()).any(|window| window == to), "{text}");
                    assert!(text.contains("unknown compression"), "{text}");
                }
                // The MCAP summary's own checksum no longer fits.
                ReadError::Index { .. } if name == "zstd.mcap" => {
                    assert!(text.contains("summary") && !error.is_loss(), "{text}");
                }
                _ => panic!("{name}: {text}"),
            }
        }
    }
}
