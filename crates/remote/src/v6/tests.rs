//! The golden frames of `tests/vectors/remote/v6.txt`, hostile ones, and any bytes.

use super::*;
use crate::types;
use crate::{command as commands, telemetry as kinds};
use proptest::prelude::*;
use std::fmt::Write;
use std::time::Duration;

fn bytes(hex: &str) -> Vec<u8> {
    let hex = if hex == "-" { "" } else { hex };
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// Decodes a body by its kind's number, and checks that encoding it gives the same bytes.
fn meaning_of<M: Message + Default + std::fmt::Debug>(bytes: &[u8]) -> String {
    match body::<M>(bytes) {
        Ok(message) => {
            assert_eq!(message.encode_to_vec(), bytes);
            format!("{message:?}")
        }
        Err(error) => error.to_string(),
    }
}

fn request(frame: &[u8]) -> String {
    let request = match Request::parse(frame) {
        Ok(request) => request,
        Err(error) => return format!("error: {error}"),
    };
    assert_eq!(request.encode(), frame);
    match request {
        Request::Command { number, body } => match commands::by_v6(number).map(|k| k.name) {
            Some("robot_remote_control.Twist") => format!("Twist: {}", meaning_of::<types::Twist>(body)),
            Some("robot_remote_control.Permission") => {
                format!("Permission: {}", meaning_of::<types::Permission>(body))
            }
            Some(name) => format!("{name}: {request:?}"),
            None => format!("of no kind: {request:?}"),
        },
        request => format!("{request:?}"),
    }
}

fn telemetry_frame(frame: &[u8]) -> String {
    let telemetry = match Telemetry::parse(frame) {
        Ok(telemetry) => telemetry,
        Err(error) => return format!("error: {error}"),
    };
    assert_eq!(telemetry.encode(), frame);
    let Telemetry {
        number,
        channel,
        body,
    } = telemetry;
    match kinds::by_v6(number).map(|k| k.name) {
        Some("robot_remote_control.RobotState") => {
            format!(
                "RobotState, channel {channel}: {}",
                meaning_of::<types::RobotState>(body)
            )
        }
        Some("robot_remote_control.SimpleSensor") => {
            format!(
                "SimpleSensor, channel {channel}: {}",
                meaning_of::<types::SimpleSensor>(body)
            )
        }
        Some(name) => format!("{name}: {telemetry:?}"),
        None => format!("of no kind: {telemetry:?}"),
    }
}

/// The first byte of an acknowledgement's line is the request's number, the rest the reply.
fn acknowledgement(line: &[u8]) -> String {
    let (sent, reply) = line.split_first().expect("a number");
    let read = Ack::parse(*sent, reply).expect("an acknowledgement");
    let written = match read {
        Ack::Taken => ack(*sent),
        Ack::Refused => nak(),
    };
    assert_eq!(written, reply);
    format!("{read:?}")
}

fn folder(reply: &[u8]) -> String {
    match parse_files(reply, 1 << 20) {
        Ok(files) => {
            let text = |data: &Vec<u8>| String::from_utf8_lossy(data).into_owned();
            let files: Vec<_> = files.iter().map(|(path, data)| (path, text(data))).collect();
            format!("{files:?}")
        }
        Err(error) => format!("error: {error}"),
    }
}

/// The frames were captured from upstream's 6.0.0, or follow its form. The meanings are this project's, and other
/// implementations must read the same. BLESS=1 rewrites the meanings.
#[test]
fn golden_frames_mean_what_they_should_and_are_written_alike() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/remote/v6.txt");
    let file = std::fs::read_to_string(path).expect("reads");
    let mut lines = String::new();
    for line in file.lines() {
        if line.starts_with('#') {
            writeln!(lines, "{line}").expect("memory");
            continue;
        }
        let mut words = line.splitn(3, ' ');
        let (what, hex) = (words.next().expect("a word"), words.next().expect("hexadecimal"));
        let frame = bytes(hex);
        let meaning = match what {
            "request" => request(&frame),
            "ack" => acknowledgement(&frame),
            "version" => version(&frame).expect("a version").to_owned(),
            "latest" => match latest(&frame).expect("a value or none") {
                Some(body) => meaning_of::<types::RobotName>(body),
                None => "nothing was set".into(),
            },
            "telemetry" => telemetry_frame(&frame),
            "files" => folder(&frame),
            other => panic!("{other}?"),
        };
        writeln!(lines, "{what} {hex} {meaning}").expect("memory");
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &lines).expect("a writable file");
    }
    assert_eq!(std::fs::read_to_string(path).expect("reads"), lines);
    assert!(lines.lines().count() >= 37);
    let (command, telemetry) = (
        types::ControlMessageType::Number as u8,
        types::TelemetryMessageType::TelemetryMessageTypesNumber as u8,
    );
    for (what, first_free) in [("request", command), ("telemetry", telemetry)] {
        let frame = format!("{what} {first_free:02x}");
        let of_none = |l: &str| l.starts_with(&frame) && l.contains(" of no kind: ");
        assert!(lines.lines().any(of_none), "no frame {frame}");
    }
    assert!(lines.contains(PROTOCOL_VERSION));
}

/// Frames that crashed upstream's robots: each is an error here, has a number without a kind, or is a request that a
/// robot answers without effect.
#[test]
fn hostile_requests_are_errors_or_name_unknown_kinds() {
    assert_eq!(Request::parse(&[]), Err(Malformed::Empty));
    let Ok(Request::Command {
        number: 0xc8,
        body: [],
    }) = Request::parse(&[0xc8])
    else {
        panic!("a command of a number that nobody has");
    };
    assert!(commands::by_v6(0xc8).is_none());
    let length = |len| Malformed::Length {
        what: "TELEMETRY_REQUEST",
        len,
    };
    assert_eq!(Request::parse(&[5]), Err(length(1)));
    assert_eq!(Request::parse(&[5, 6]), Err(length(2)));
    assert_eq!(Request::parse(&[5, 6, 0, 0]), Err(length(4)));
    assert_eq!(Request::parse(&[5, 0, 0]), Err(Malformed::Zero("telemetry")));
    let of = |number, channel| Ok(Request::Telemetry { number, channel });
    assert_eq!(Request::parse(&[5, 0xc8, 0]), of(0xc8, 0));
    assert!(kinds::by_v6(0xc8).is_none());
    assert_eq!(Request::parse(&[5, 1, 9]), of(1, 9));
    assert_eq!(Request::parse(&[0]), Err(Malformed::Zero("a request")));
    assert!(matches!(
        Request::parse(&[1, 0]),
        Err(Malformed::Length { len: 2, .. })
    ));
    assert!(matches!(
        Request::parse(&[8]),
        Err(Malformed::Length { len: 1, .. })
    ));
    assert!(matches!(Request::parse(&[7, 0xff]), Err(Malformed::Body { .. })));
    assert!(matches!(Request::parse(&[4, 0xff]), Err(Malformed::Body { .. })));
}

/// Frames that crashed upstream's controllers.
#[test]
fn hostile_telemetry_is_an_error_or_names_unknown_kinds() {
    assert_eq!(Telemetry::parse(&[]), Err(Malformed::Empty));
    assert!(matches!(Telemetry::parse(&[1]), Err(Malformed::Length { .. })));
    assert_eq!(Telemetry::parse(&[0, 0]), Err(Malformed::Zero("telemetry")));
    for number in [0x1f, 0xc8] {
        let frame = [number, 0, 0x0a, 0];
        assert_eq!(Telemetry::parse(&frame).map(|t| t.number), Ok(number));
        assert!(kinds::by_v6(number).is_none());
    }
}

#[test]
fn heartbeats_have_a_period() {
    let frame = |seconds: f32| [&[4, 0x0d], &seconds.to_le_bytes()[..]].concat();
    let period = |seconds| Request::parse(&frame(seconds)).map(|r| r.encode());
    for good in [0.1, 1.0, 86_400.0] {
        assert_eq!(period(good), Ok(frame(good)));
    }
    // A default value is not encoded.
    let none = Request::Heartbeat {
        period: Duration::ZERO,
    };
    assert_eq!(Request::parse(&[4]), Ok(none.clone()));
    assert_eq!(none.encode(), [4]);
    for bad in [-1.0, f32::NAN, f32::INFINITY, f32::MAX, 86_401.0] {
        assert!(matches!(period(bad), Err(Malformed::Period(_))), "{bad}");
    }
}

#[test]
fn mismatched_replies_are_errors() {
    assert_eq!(Ack::parse(11, &[]), Err(Malformed::Empty));
    assert!(matches!(Ack::parse(11, &[12]), Err(Malformed::NotAnAck { .. })));
    let error = Ack::parse(11, b"a long reply").expect_err("not an acknowledgement");
    assert!(error.to_string().contains("61206c6f6e672072"), "{error}");
    assert!(matches!(latest(&[0]), Err(Malformed::Zero(_))));
    assert_eq!(version(&[0xff]), Err(Malformed::Version));
    assert_eq!(version(b"6.0.0\n"), Err(Malformed::Version));
    assert_eq!(version(&[b'6'; 257]), Err(Malformed::Version));
}

#[test]
fn kinds_without_a_number_have_no_frame() {
    struct Spray;
    impl crate::CommandKind for Spray {
        type Body = types::RobotName;
        const NAME: &'static str = "acme.Spray";
    }
    impl crate::TelemetryKind for Spray {
        type Body = types::RobotName;
        const NAME: &'static str = "acme.Spray";
    }
    assert_eq!(command::<Spray>(&types::RobotName::default()), None);
    assert_eq!(telemetry::<Spray>(0, &types::RobotName::default()), None);
    let state = types::RobotState {
        state: vec!["RUNNING".into()],
        ..Default::default()
    };
    let frame = telemetry::<kinds::RobotState>(0, &state);
    assert_eq!(frame.as_deref(), Some(&b"\x07\x00\x12\x07RUNNING"[..]));
}

#[test]
fn files_come_as_they_went() {
    let (model, mesh) = ("model.urdf", "meshes/arm.stl");
    let entries = [(model, &b"<robot/>"[..]), (mesh, &[7; 5000][..]), ("empty", b"")];
    for compressed in [false, true] {
        let reply = files(entries, compressed).expect("a reply");
        let read = parse_files(&reply, 5008).expect("files");
        assert_eq!(read.len(), 3);
        assert!(entries.iter().all(|(path, data)| read[*path] == *data));
        assert_eq!(reply.len() < 500, compressed);
        assert_eq!(parse_files(&reply, 5007), Err(FilesError::TooLong(5007)));
    }
    let why = no_files("no model here");
    assert_eq!(
        parse_files(&why, 1),
        Err(FilesError::Refused("no model here".into()))
    );
    assert_eq!(parse_files(&[], 0), Ok(Files::new()));
}

#[test]
fn absolute_paths_count_from_the_folder_that_files_are_put_into() {
    let file = |path: &str, data: &[u8]| types::FileTransfer {
        path: path.into(),
        data: data.to_vec(),
    };
    let reply = |file| {
        let folder = types::FolderTransfer {
            file,
            ..Default::default()
        };
        parse_files(&folder.encode_to_vec(), 1 << 20)
    };
    // A folder as upstream's robot lists it: with its folders, and with a doubled slash if the user wrote one at the
    // end.
    let read = reply(vec![
        file("/home/robot/logs/sub", b""),
        file("/home/robot/logs//sub/a.txt", b"hello"),
        file("//b.txt", b"there"),
    ]);
    let read = read.expect("files");
    let names: Vec<&str> = read.keys().map(String::as_str).collect();
    assert_eq!(names, ["b.txt", "home/robot/logs/sub/a.txt"]);
    for bad in ["/../a", "/", "//", "/a\\b"] {
        assert!(
            matches!(reply(vec![file(bad, b"x")]), Err(FilesError::Path { .. })),
            "{bad}"
        );
    }
    let twice = reply(vec![file("/a", b"1"), file("a", b"2")]);
    assert_eq!(twice, Err(FilesError::Twice("a".into())));
}

#[test]
fn paths_stay_in_their_folder() {
    for (path, good) in [
        ("a", "a"),
        ("./a/./b", "a/b"),
        ("..a/b..", "..a/b.."),
        ("ä/日本", "ä/日本"),
    ] {
        assert_eq!(confined(path).as_deref(), Ok(good));
    }
    let long = "a".repeat(4097);
    let deep = ["a"; 101].join("/");
    for path in [
        "",
        ".",
        "./",
        "/",
        "/etc/passwd",
        "..",
        "../a",
        "a/../../b",
        "a/..",
        "a//b",
        "a/",
        "a\\..\\b",
        "C:\\a",
        "a\0b",
        &long,
        &deep,
    ] {
        assert!(matches!(confined(path), Err(FilesError::Path { .. })), "{path:?}");
        assert!(files([(path, &b""[..])], false).is_err());
        let folder = types::FolderTransfer {
            file: vec![types::FileTransfer {
                path: path.into(),
                data: vec![1],
            }],
            ..Default::default()
        };
        let read = parse_files(&folder.encode_to_vec(), 10);
        if path == "/etc/passwd" {
            // A file's path as upstream's robots send it: it goes below the destination folder.
            assert_eq!(
                read.expect("a path").keys().next().map(String::as_str),
                Some("etc/passwd")
            );
            continue;
        }
        let error = read.expect_err("a bad path");
        assert!(error.to_string().len() < 1000);
    }
}

#[test]
fn a_path_is_there_once() {
    let both = |a, b| files([(a, &b"x"[..]), (b, b"x")], false).expect("a reply");
    assert_eq!(
        parse_files(&both("a", "./a"), 10),
        Err(FilesError::Twice("a".into()))
    );
    assert_eq!(
        parse_files(&both("a/b", "a"), 10),
        Err(FilesError::Twice("a".into()))
    );
    assert!(parse_files(&both("a-b", "a/b"), 10).is_ok());
    // Folders, which have no data.
    let nested = files(
        [("a", &b""[..]), ("a/b", b""), ("a/b/c", b"x"), ("a/d", b"x")],
        false,
    );
    let read = parse_files(&nested.expect("a reply"), 10).expect("files");
    assert_eq!(read.into_keys().collect::<Vec<_>>(), ["a/b/c", "a/d"]);
}

#[test]
fn bombs_in_a_folder_are_refused() {
    let zeros = vec![0; 600_000];
    let names: Vec<String> = (0..4).map(|n| n.to_string()).collect();
    let bomb = files(names.iter().map(|n| (n.as_str(), &zeros[..])), true).expect("a reply");
    assert!(bomb.len() < 5_000);
    assert_eq!(parse_files(&bomb, 2_399_999), Err(FilesError::TooLong(2_399_999)));
    assert!(parse_files(&bomb, 2_400_000).is_ok());
    let broken = types::FolderTransfer {
        compressed: true,
        file: vec![types::FileTransfer {
            path: "a".into(),
            data: vec![0, 0, 0, 1, 2, 3],
        }],
        ..Default::default()
    };
    assert!(matches!(
        parse_files(&broken.encode_to_vec(), 10),
        Err(FilesError::Zlib { .. })
    ));
    let many = types::FolderTransfer {
        file: vec![types::FileTransfer::default(); MAX_ENTRIES + 1],
        ..Default::default()
    };
    assert_eq!(
        parse_files(&many.encode_to_vec(), 10),
        Err(FilesError::TooMany(MAX_ENTRIES + 1))
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        crate::fuzzing::v6(&data);
    }

    #[test]
    fn any_body_behind_a_head_is_read_or_refused(
        number in 0u8..40,
        body in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        crate::fuzzing::v6(&[&[number, 0], &body[..]].concat());
    }

    #[test]
    fn commands_come_as_they_went(x in any::<f32>(), yaw in any::<f32>(), frame in ".{0,20}") {
        let twist = types::Twist {
            header: Some(types::Header { frame, ..Default::default() }),
            linear: Some(types::Vector3 { x, ..Default::default() }),
            angular: Some(types::Vector3 { z: yaw, ..Default::default() }),
        };
        let frame = command::<commands::Twist>(&twist).expect("a number");
        let Ok(Request::Command { number: 11, body }) = Request::parse(&frame) else { panic!("a command") };
        // NaN is not equal to itself, but its bytes are.
        prop_assert_eq!(super::body::<types::Twist>(body).expect("a twist").encode_to_vec(), twist.encode_to_vec());
    }
}
