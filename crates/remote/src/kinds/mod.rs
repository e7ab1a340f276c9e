//! The kinds that Robot Remote Control's version 6 has: an empty type for each, and tables of all.

pub mod command;
pub mod telemetry;

/// Whether the bytes are a message of this type.
fn check<M: prost::Message + Default>(body: &[u8]) -> Result<(), prost::DecodeError> {
    M::decode(body).map(drop)
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

    /// The numbers stand twice: in the `.proto` file and at the kinds.
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
    fn bodies_are_checked_by_their_kind() {
        let twist = command::by_name("robot_remote_control.Twist").expect("known");
        assert!((twist.check)(&[]).is_ok());
        assert!((twist.check)(&[0xff, 0xff, 0xff]).is_err());
        let name = telemetry::by_name("robot_remote_control.RobotName").expect("known");
        assert!((name.check)(b"\x0a\x09TestRobot").is_ok());
        assert!((name.check)(b"\x0a\x02\xff\xff").is_err(), "text is UTF-8");
    }

    #[test]
    fn urgencies_are_within_bounds() {
        assert!(telemetry::ALL.iter().all(|k| k.priority <= 127));
    }
}
