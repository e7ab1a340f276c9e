//! Entry points of the fuzz targets. Not part of the interface.

use crate::convert::{self, Ros};
use crate::v6::{self, Ack, Request, Telemetry};
use crate::{command, telemetry, types};
use prost::Message;
use schema::{Flavour, Registry, Schema};
use std::sync::LazyLock;

/// A frame of version 6, as either end would receive it. Any frame is read or refused; a frame that is read is written
/// back unchanged.
pub fn v6(frame: &[u8]) {
    match Request::parse(frame) {
        Ok(request) => {
            let again = request.encode();
            if let Request::Command { number, body } = request {
                assert_eq!(again, frame);
                if let Some(kind) = command::by_v6(number) {
                    let _ = (kind.check)(body);
                }
            }
            // A file's name may have been encoded differently, with unknown fields.
            assert_eq!(Request::parse(&again).as_ref(), Ok(&request));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    if let Ok(telemetry) = Telemetry::parse(frame) {
        assert_eq!(telemetry.encode(), frame);
        if let Some(kind) = telemetry::by_v6(telemetry.number) {
            let _ = (kind.check)(telemetry.body);
        }
    }
    for sent in [4, 11] {
        match Ack::parse(sent, frame) {
            Ok(Ack::Taken) => assert_eq!(frame, v6::ack(sent)),
            Ok(Ack::Refused) => assert_eq!(frame, v6::nak()),
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        }
    }
    let _ = v6::latest(frame);
    let _ = v6::version(frame);
    const MOST: u64 = 1 << 20;
    match v6::parse_files(frame, MOST) {
        Ok(files) => {
            assert!(files.values().map(|data| data.len() as u64).sum::<u64>() <= MOST);
            for path in files.keys() {
                assert_eq!(v6::confined(path).as_ref(), Ok(path));
            }
            // Files that were read can be sent on, and read back unchanged.
            let entries = files.iter().map(|(path, data)| (path.as_str(), &data[..]));
            let again = v6::files(entries, true).expect("as many as were read");
            assert_eq!(v6::parse_files(&again, MOST), Ok(files));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}

/// A conversion of each type, with the schemas that the target chooses from.
static CONVERSIONS: LazyLock<Vec<(Schema, Conversion)>> = LazyLock::new(|| {
    fn of<M: Ros + Message + Default>() -> impl Iterator<Item = (Schema, Conversion)> {
        let flavours = [Flavour::Ros1, Flavour::Ros2].map(Registry::new);
        flavours.into_iter().flat_map(|registry| {
            let schemas = M::TYPES.iter().filter_map(move |ty| registry.schema(ty).ok());
            schemas.map(|schema| (schema, conversion::<M> as Conversion))
        })
    }
    of::<types::Twist>()
        .chain(of::<types::Pose>())
        .chain(of::<types::Odometry>())
        .chain(of::<types::Transforms>())
        .chain(of::<types::JointState>())
        .chain(of::<types::JointCommand>())
        .chain(of::<types::Imu>())
        .chain(of::<types::LaserScan>())
        .chain(of::<types::Image>())
        .chain(of::<types::PointCloud>())
        .chain(of::<types::LogMessage>())
        .collect()
});

type Conversion = fn(&Schema, bool, &[u8]);

/// Conversions to and from ROS. The first byte selects the type; the second selects whether the rest is protobuf or a
/// ROS message. A ROS message begins with the length of its control part in two bytes; the bytes after the control part
/// are its data part, unless there are none.
///
/// Any bytes are converted or refused. A result in ROS form is a valid message of its type, and converts back to
/// itself.
pub fn convert(data: &[u8]) {
    let [which, from_ros, rest @ ..] = data else {
        return;
    };
    let all = &*CONVERSIONS;
    if let Some((schema, conversion)) = all.get(usize::from(*which) % all.len()) {
        conversion(schema, from_ros & 1 == 1, rest);
    }
}

fn conversion<M: Ros + Message + Default>(schema: &Schema, from_ros: bool, data: &[u8]) {
    let message = if from_ros {
        let Some((len, rest)) = data.split_first_chunk::<2>() else {
            return;
        };
        let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
        let (control, part) = rest.split_at(len);
        let parts = if part.is_empty() { &[][..] } else { &[part][..] };
        convert::from_ros::<M>(schema, control, parts).inspect(|_| {
            schema.decode(control, parts).expect("what was read is a message");
        })
    } else {
        match M::decode(data) {
            Ok(message) => Ok(message),
            Err(_) => return,
        }
    };
    let message = match message {
        Ok(message) => message,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    let ros = match convert::to_ros(&message, schema) {
        Ok(ros) => ros,
        Err(error) => return assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    };
    schema
        .decode(&ros.control, &ros.slices())
        .expect("what was written is a message");
    let again: M = match convert::from_ros(schema, &ros.control, &ros.slices()) {
        Ok(again) => again,
        Err(error) => panic!("what was written is read: {error}"),
    };
    let ros_again = convert::to_ros(&again, schema).expect("what was read is written");
    // A scan's speed becomes times and is computed from them again, with rounding each time.
    if M::NAME != types::LaserScan::NAME {
        assert_eq!(ros_again, ros);
    }
}

/// Bytes from unauthenticated peers to the ZeroMQ sockets that this crate implements itself, and the envelopes that a
/// peer of Ropewalk's own wire puts around its frames.
#[cfg(feature = "zmq")]
pub fn zmq(bytes: &[u8]) {
    crate::transport::zmq::fuzz(bytes);
}

/// Frames to both ends, on either wire. The first byte selects the wire. Each frame follows its length in two bytes. A
/// robot's run and stamps are random, so frames cannot contain them; a request with an expiry of zero never expires and
/// needs neither.
///
/// Whatever the frames are, the robot answers each one once and carries no command out twice, and all the controller's
/// requests end.
pub fn ends(data: &[u8]) {
    // Frames can also come in blocks.
    crate::transport::link::fuzz(data);
    let [language, rest @ ..] = data else { return };
    let wire = if language & 1 == 0 {
        crate::transport::Wire::Own
    } else {
        crate::transport::Wire::V6
    };
    let mut frames = Vec::new();
    let mut rest = rest;
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let (frame, after) = after.split_at(usize::from(u16::from_le_bytes(*len)).min(after.len()));
        frames.push(frame);
        rest = after;
    }
    crate::robot::fuzzing::serve(&frames, wire);
    crate::controller::fuzzing::hear(&frames, wire);
}

#[cfg(test)]
mod tests {
    use crate::own::{self, request, response};
    use prost::Message;
    use proto::fuzzing::Chance;
    use std::path::Path;

    /// Runs each seed, cut at every byte, and mutants of all: some thousands, or as many as `PACKETS` says.
    fn replay(target: &str, run: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let entries = std::fs::read_dir(folder).expect("the corpus is there");
        let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
        files.sort();
        assert!(files.len() >= 2);
        let seeds: Vec<_> = files.iter().map(|f| std::fs::read(f).expect("reads")).collect();
        for seed in &seeds {
            (0..=seed.len()).for_each(|cut| run(&seed[..cut]));
        }
        let mut chance = Chance(0x0F00_D5EE);
        let mutants: u64 =
            std::env::var("PACKETS").map_or(4_000, |n| n.parse().expect("PACKETS is a number"));
        for _ in 0..mutants {
            run(&chance.mutant(&seeds));
        }
    }

    #[test]
    fn frames_of_version_6_whole_cut_and_mutated_are_read_or_refused() {
        replay("remote_v6", super::v6);
    }

    #[test]
    fn conversions_whole_cut_and_mutated_are_made_or_refused() {
        replay("remote_convert", super::convert);
    }

    fn sequence(language: u8, frames: &[Vec<u8>]) -> Vec<u8> {
        let mut data = vec![language];
        for frame in frames {
            data.extend((frame.len() as u16).to_le_bytes());
            data.extend(frame);
        }
        data
    }

    /// The corpus of [`super::ends`]; `BLESS=1` writes it.
    fn seeds() -> Vec<(&'static str, Vec<u8>)> {
        let request = |sequence, what| {
            own::Request {
                controller: 7,
                sequence,
                what: Some(what),
                ..Default::default()
            }
            .encode_to_vec()
        };
        let hello = request(
            1,
            request::What::Hello(own::Hello {
                name: "c".into(),
                version: 1,
            }),
        );
        let twist = crate::types::Twist::default().encode_to_vec();
        let command = |sequence, number| {
            request(
                sequence,
                request::What::Command(own::Command {
                    number,
                    body: twist.clone().into(),
                }),
            )
        };
        let wish = |sequence, wish: own::Wish, to| {
            let subsystem = "base".into();
            let wish = own::AuthorityRequest {
                subsystem,
                wish: wish.into(),
                to,
            };
            request(sequence, request::What::Authority(wish))
        };
        let file = own::FileRequest {
            identifier: "a".into(),
            path: "../b".into(),
            offset: 1,
            length: 9,
        };
        let robot = [
            hello.clone(),
            command(2, 2),
            command(4, 2),
            command(3, 2),
            command(4, 2),
            command(5, 3),
            command(6, 9),
            request(
                7,
                request::What::Fetch(own::Fetch {
                    number: 1,
                    channel: 0,
                }),
            ),
            request(8, request::What::Heartbeat(own::Heartbeat { period_ms: 100 })),
            request(9, request::What::File(file)),
            request(10, request::What::LogLevel(own::LogLevel { level: 5 })),
        ];
        let rights = [
            hello,
            wish(2, own::Wish::Ask, 0),
            wish(3, own::Wish::Request, 0),
            wish(4, own::Wish::HandOver, 7),
            wish(5, own::Wish::TakeOver, 0),
            wish(6, own::Wish::Release, 0),
        ];
        let kind = |number, name: &str| own::Kind {
            number,
            name: name.into(),
        };
        let welcome = own::Welcome {
            robot: "r".into(),
            commands: vec![kind(1, "robot_remote_control.Twist")],
            telemetry: vec![kind(1, "robot_remote_control.CurrentPose")],
            ..Default::default()
        };
        let response = |sequence, outcome: own::Outcome, what| {
            own::Response {
                sequence,
                run: 9,
                stamp: 5,
                outcome: outcome.into(),
                what,
                ..Default::default()
            }
            .encode_to_vec()
        };
        let fetched = response::What::Fetched(own::Fetched {
            set: true,
            body: Default::default(),
        });
        let telemetry = own::Telemetry {
            run: 9,
            stamp: 6,
            number: 1,
            sequence: 1,
            ..Default::default()
        };
        let controller = [
            response(1, own::Outcome::Executed, Some(response::What::Welcome(welcome))),
            response(2, own::Outcome::UnknownController, None),
            response(3, own::Outcome::Executed, Some(fetched)),
            telemetry.encode_to_vec(),
        ];
        let v6: Vec<Vec<u8>> = [
            "01",
            "0b",
            "040d0000803f",
            "050100",
            "070a0161",
            "0805",
            "0912017518",
            "0d",
            "0100",
        ]
        .iter()
        .map(|hex| {
            (0..hex.len())
                .step_by(2)
                .map(|n| u8::from_str_radix(&hex[n..n + 2], 16).expect("hex"))
                .collect()
        })
        .collect();
        vec![
            ("commands", sequence(0, &robot)),
            ("rights", sequence(0, &rights)),
            ("answers", sequence(0, &controller)),
            ("version_6", sequence(1, &v6)),
        ]
    }

    #[test]
    fn both_ends_bear_whatever_is_said() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/remote_ends");
        for (name, seed) in seeds() {
            if std::env::var_os("BLESS").is_some() {
                std::fs::create_dir_all(&folder).expect("made");
                std::fs::write(folder.join(name), &seed).expect("written");
            }
            let kept = std::fs::read(folder.join(name)).expect("in the corpus");
            assert!(kept == seed, "{name} has another form: run with BLESS=1");
        }
        replay("remote_ends", super::ends);
    }

    #[cfg(feature = "zmq")]
    #[test]
    fn zeromq_input_from_unknown_peers_is_validated_and_little_is_kept() {
        replay("remote_zmq", super::zmq);
    }
}
