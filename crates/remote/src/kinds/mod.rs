//! The kinds of Robot Remote Control's version 6: an empty type for each, and tables of all (decision 220).

pub mod command;
pub mod telemetry;

use crate::decode;
use crate::kind::{CommandKind, TelemetryKind};
use crate::sync::lock;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Checks that the bytes are a body of this kind.
fn check_command<K: CommandKind>(body: &[u8]) -> Result<(), prost::DecodeError> {
    decode::body::<K::Body>(K::NAME, body).map(drop)
}

/// Checks that the bytes are a body of this kind.
fn check_telemetry<K: TelemetryKind>(body: &[u8]) -> Result<(), prost::DecodeError> {
    decode::body::<K::Body>(K::NAME, body).map(drop)
}

/// Accepts any bytes.
fn any(_: &[u8]) -> Result<(), prost::DecodeError> {
    Ok(())
}

/// Maximum number of names that a process may make up. Names are never freed; this is more than one robot and many
/// controllers may register.
const MOST_NAMES: usize = 8192;

/// Returns a copy of the name that lives as long as the process: the same copy for the same text.
fn interned(name: &str) -> Option<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = lock(&NAMES);
    if let Some(known) = names.get(name) {
        return Some(known);
    }
    if names.len() >= MOST_NAMES {
        return None;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::{command, telemetry};
    use crate::types;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_numbers_are_unique() {
        let names: BTreeSet<_> = command::ALL.iter().map(|k| k.name).collect();
        assert_eq!(names.len(), command::ALL.len());
        let numbers: BTreeSet<_> = command::ALL.iter().map(|k| k.v6).collect();
        assert_eq!(numbers.len(), command::ALL.len());
        let names: BTreeSet<_> = telemetry::ALL.iter().map(|k| k.name).collect();
        assert_eq!(names.len(), telemetry::ALL.len());
        let numbers: BTreeSet<_> = telemetry::ALL.iter().map(|k| k.v6).collect();
        assert_eq!(numbers.len(), telemetry::ALL.len());
    }

    /// The numbers are in two places: the `.proto` file and the kinds.
    #[test]
    fn every_number_of_the_enumerations_has_its_kind() {
        use types::{ControlMessageType as Control, TelemetryMessageType as Telemetry};
        let first = Control::Permission as u8;
        let end = Control::Number as u8;
        let numbers: BTreeSet<u8> = command::ALL.iter().filter_map(|k| k.v6).collect();
        assert_eq!(numbers, (first..end).collect());
        let end = Telemetry::TelemetryMessageTypesNumber as u8;
        let numbers: BTreeSet<u8> = telemetry::ALL.iter().filter_map(|k| k.v6).collect();
        assert_eq!(numbers, (1..end).collect());

        let plain = |s: &str| s.replace('_', "").to_lowercase();
        for kind in telemetry::ALL {
            let number = i32::from(kind.v6.expect("a number"));
            let name = Telemetry::try_from(number).expect("known").as_str_name();
            let own = kind.name.rsplit('.').next().expect("a name");
            assert!(
                plain(name).starts_with(&plain(own)),
                "{own} is {number}, which is {name}"
            );
        }
        assert_eq!(
            command::by_v6(11).map(|k| k.name),
            Some("robot_remote_control.Twist")
        );
        assert_eq!(command::by_v6(200).map(|k| k.name), None);
        assert_eq!(telemetry::by_v6(31).map(|k| k.name), None);
    }

    #[test]
    fn every_kind_has_its_constant_in_the_cpp_header() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../cpp/include/ropewalk/remote.hpp"
        );
        let header = std::fs::read_to_string(path).expect("reads");
        let commands = command::ALL.iter().map(|k| ("CommandKind<", k.name));
        for (class, name) in commands.chain(telemetry::ALL.iter().map(|k| ("TelemetryKind<", k.name))) {
            let own = name.rsplit('.').next().expect("a name");
            let constant = format!("> {own}{{\"{name}\"}};");
            let found = header.lines().find(|l| l.ends_with(&constant));
            assert!(found.is_some_and(|l| l.contains(class)), "{path} lacks {name}");
        }
    }

    #[test]
    fn bodies_are_checked_by_their_kind() {
        let twist = command::by_name("robot_remote_control.Twist").expect("known");
        assert!((twist.check)(&[]).is_ok());
        assert!((twist.check)(&[0xff, 0xff, 0xff]).is_err());
        let name = telemetry::by_name("robot_remote_control.RobotName").expect("known");
        assert!((name.check)(b"\x0a\x09TestRobot").is_ok());
        assert!((name.check)(b"\x0a\x02\xff\xff").is_err(), "text is UTF-8");
    }

    #[test]
    fn kinds_are_named_at_run_time_and_each_name_is_kept_once() {
        let twist = command::Entry::named("robot_remote_control.Twist", None).expect("known");
        assert_eq!((twist.v6, twist.moves), (Some(11), Some("base")));
        let arm = command::Entry::named("robot_remote_control.Twist", Some("arm")).expect("known");
        assert_eq!((arm.v6, arm.moves), (Some(11), Some("arm")));
        let own = |moves| command::Entry::named("acme.Spray", moves).expect("room");
        assert!(std::ptr::eq(own(None).name, own(Some("nozzle")).name));
        assert_eq!(
            (own(None).moves, own(Some("nozzle")).moves),
            (None, Some("nozzle"))
        );
        assert!((own(None).check)(&[0xff, 0xff]).is_ok());
        let tank = telemetry::Entry::named("acme.Tank").expect("room");
        assert_eq!((tank.name, tank.v6, tank.priority), ("acme.Tank", None, 50));
        assert_eq!(command::ALL.len(), command::BODIES.len());
        assert_eq!(telemetry::ALL.len(), telemetry::BODIES.len());
        let imu = telemetry::ALL.iter().position(|k| k.name.ends_with(".ImuValues"));
        assert_eq!(telemetry::BODIES[imu.expect("known")], "IMU");
    }

    #[test]
    fn urgencies_are_within_bounds() {
        assert!(telemetry::ALL.iter().all(|k| k.priority <= 127));
    }
}
