//! Kinds of commands and telemetry, by the names that users type.

use prost::{DecodeError, Message, Name};
use remote::controller::{Info, RequestError, TelemetryQueue};
use remote::{CommandKind, Controller, Expiry, Outcome, Pending, Queue, TelemetryKind, command, telemetry};
use std::time::Duration;

/// Queue depth of a watched kind.
const WAITING: usize = 256;

/// A kind of telemetry; bodies are bytes.
pub(super) struct Telemetry {
    /// Name of the kind in the protocol.
    pub(super) name: &'static str,
    /// Name of the message type of its bodies.
    pub(super) message: fn() -> String,
    /// The newest value that arrived without a request.
    pub(super) latest: fn(&Controller, u8) -> Option<Vec<u8>>,
    /// Requests the value and waits for it, up to the given time.
    pub(super) fetch: Fetch,
    pub(super) watch: fn(&Controller, u8) -> Box<dyn Values>,
    pub(super) listen: fn(&Controller, u8, bool),
    pub(super) channels: fn(&Controller) -> Vec<(u8, String)>,
}

/// Requests the latest value of a channel: its encoding, if one was set.
type Fetch = fn(&Controller, u8, Duration) -> Result<Option<Vec<u8>>, RequestError>;
/// Sends an encoded command.
type Send = fn(&Controller, &[u8], Expiry) -> Result<Pending<Outcome>, DecodeError>;

/// Values of a kind and channel as they arrive.
pub(super) trait Values {
    fn next(&self, timeout: Duration) -> Option<(Vec<u8>, Info)>;
}

/// A kind of command.
pub(super) struct Taken {
    pub(super) name: &'static str,
    pub(super) message: fn() -> String,
    pub(super) send: Send,
}

struct Watched<K: TelemetryKind>(TelemetryQueue<K>);

impl<K: TelemetryKind> Values for Watched<K> {
    fn next(&self, timeout: Duration) -> Option<(Vec<u8>, Info)> {
        let (body, info) = self.0.take(timeout)?;
        Some((body.encode_to_vec(), info))
    }
}

const fn telemetry<K: TelemetryKind>() -> Telemetry
where
    K::Body: Name,
{
    Telemetry {
        name: K::NAME,
        message: K::Body::full_name,
        latest: |controller, channel| Some(controller.latest::<K>(channel)?.encode_to_vec()),
        fetch: |controller, channel, timeout| {
            let body = controller.fetch_within::<K>(channel, timeout).wait()?;
            Ok(body.map(|body| body.encode_to_vec()))
        },
        watch: |controller, channel| Box::new(Watched(controller.queue::<K>(channel, Queue::Fifo(WAITING)))),
        listen: |controller, channel, on| match on {
            true => controller.watch::<K>(channel),
            false => controller.unwatch::<K>(channel),
        },
        channels: Controller::channels::<K>,
    }
}

const fn taken<K: CommandKind>() -> Taken
where
    K::Body: Name,
{
    Taken {
        name: K::NAME,
        message: K::Body::full_name,
        send: |controller, body, expiry| Ok(controller.send_within::<K>(&K::Body::decode(body)?, expiry)),
    }
}

macro_rules! table {
    ($of:ident, $($module:ident::$kind:ident)+) => { &[$($of::<$module::$kind>()),+] };
}

pub(super) const TELEMETRY: &[Telemetry] = table!(telemetry,
    telemetry::CurrentPose telemetry::JointState telemetry::ControllableJoints telemetry::SimpleActions
    telemetry::ComplexActions telemetry::RobotName telemetry::RobotState telemetry::LogMessage
    telemetry::VideoStreams telemetry::SimpleSensor telemetry::WrenchState telemetry::Map telemetry::Poses
    telemetry::Transforms telemetry::PermissionRequest telemetry::PointCloud telemetry::ImuValues
    telemetry::ContactPoints telemetry::CurrentTwist telemetry::CurrentAcceleration
    telemetry::CameraInformation telemetry::Image telemetry::ImageLayers telemetry::Odometry
    telemetry::ControllableFrames telemetry::FileDefinition telemetry::RobotModelInformation
    telemetry::InterfaceOptions telemetry::ChannelsDefinition telemetry::LaserScan);

pub(super) const COMMANDS: &[Taken] = table!(taken,
    command::Permission command::TargetPose command::Twist command::Joints command::SimpleAction
    command::ComplexAction command::GoTo command::RobotTrajectory);

/// Short names that are no prefix of the kind's own name.
const ALIASES: &[(&str, &str)] = &[
    ("pose", "CurrentPose"),
    ("pose", "TargetPose"),
    ("twist", "CurrentTwist"),
    ("acceleration", "CurrentAcceleration"),
    ("joints", "JointState"),
    ("name", "RobotName"),
    ("state", "RobotState"),
    ("sensor", "SimpleSensor"),
    ("path", "Poses"),
    ("cloud", "PointCloud"),
    ("cameras", "CameraInformation"),
    ("frames", "ControllableFrames"),
    ("files", "FileDefinition"),
    ("model", "RobotModelInformation"),
    ("options", "InterfaceOptions"),
    ("action", "SimpleAction"),
    ("actions", "SimpleActions"),
    ("trajectory", "RobotTrajectory"),
];

/// Finds the kind of telemetry by a name or prefix.
pub(super) fn telemetry_named(typed: &str) -> Result<&'static Telemetry, String> {
    find(TELEMETRY, |kind| kind.name, typed, "telemetry")
}

/// Finds the kind of command by a name or prefix.
pub(super) fn command_named(typed: &str) -> Result<&'static Taken, String> {
    find(COMMANDS, |kind| kind.name, typed, "command")
}

fn find<T>(
    all: &'static [T],
    name: impl Fn(&T) -> &'static str,
    typed: &str,
    what: &str,
) -> Result<&'static T, String> {
    let wanted = plain(typed);
    let is = |kind: &&T, wanted: &str| plain(own(name(kind))) == wanted || plain(name(kind)) == wanted;
    if let Some(kind) = all.iter().find(|kind| is(kind, &wanted)) {
        return Ok(kind);
    }
    let aliases = ALIASES.iter().filter(|(alias, _)| *alias == wanted);
    if let Some(kind) = aliases
        .flat_map(|(_, of)| all.iter().find(|kind| own(name(kind)) == *of))
        .next()
    {
        return Ok(kind);
    }
    let begin: Vec<_> = all
        .iter()
        .filter(|kind| !wanted.is_empty() && plain(own(name(kind))).starts_with(&wanted))
        .collect();
    match begin.as_slice() {
        [kind] => Ok(kind),
        [] => {
            let shorts: Vec<String> = all.iter().map(|kind| short(name(kind))).collect();
            let of_these = ALIASES
                .iter()
                .filter(|(_, of)| all.iter().any(|kind| own(name(kind)) == *of));
            let known = shorts
                .iter()
                .map(String::as_str)
                .chain(of_these.map(|(alias, _)| *alias));
            let near = schema::did_you_mean(schema::nearest(&typed.to_lowercase(), known));
            Err(format!(
                "no kind of {what} is called {typed:?}{near}; `help kinds` lists all"
            ))
        }
        several => {
            let names: Vec<_> = several.iter().map(|kind| short(name(kind))).collect();
            Err(format!(
                "{typed:?} is ambiguous, it may be {}: type more of the name",
                names.join(" or ")
            ))
        }
    }
}

/// The name without its package.
pub(super) fn own(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The name as users type it: `current-pose`.
pub(super) fn short(name: &str) -> String {
    let mut short = String::new();
    for (i, c) in own(name).char_indices() {
        if c.is_uppercase() && i > 0 {
            short.push('-');
        }
        short.extend(c.to_lowercase());
    }
    short
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_whole_and_aliases_mean_something() {
        let names: Vec<_> = TELEMETRY.iter().map(|k| k.name).collect();
        assert_eq!(names, telemetry::ALL.iter().map(|k| k.name).collect::<Vec<_>>());
        let names: Vec<_> = COMMANDS.iter().map(|k| k.name).collect();
        assert_eq!(names, command::ALL.iter().map(|k| k.name).collect::<Vec<_>>());
        for (alias, _) in ALIASES {
            assert!(
                telemetry_named(alias).is_ok() || command_named(alias).is_ok(),
                "{alias}"
            );
        }
    }

    #[test]
    fn a_misspelt_kind_gets_a_suggestion() {
        for (typed, meant) in [
            ("poze", "pose"),
            ("lazer-scan", "laser-scan"),
            ("odometri", "odometry"),
        ] {
            let said = telemetry_named(typed).err().expect("is unknown");
            assert!(said.contains(&format!("(did you mean {meant}?)")), "{said}");
        }
        for (typed, meant) in [("twits", "twist"), ("poze", "pose")] {
            let said = command_named(typed).err().expect("is unknown");
            assert!(said.contains(&format!("(did you mean {meant}?)")), "{said}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for typed in [
            "pose",
            "current-pose",
            "CurrentPose",
            "current_pose",
            "robot_remote_control.CurrentPose",
        ] {
            assert_eq!(
                telemetry_named(typed).map(|k| own(k.name)),
                Ok("CurrentPose"),
                "{typed}"
            );
        }
        assert_eq!(telemetry_named("las").map(|k| own(k.name)), Ok("LaserScan"));
        assert_eq!(telemetry_named("image").map(|k| own(k.name)), Ok("Image"));
        assert_eq!(command_named("go").map(|k| own(k.name)), Ok("GoTo"));
        assert_eq!(short("robot_remote_control.GoTo"), "go-to");
        let several = telemetry_named("robot");
        assert!(
            several
                .as_ref()
                .is_err_and(|e| e.contains("robot-name or robot-state")),
            "{:?}",
            several.err()
        );
        assert!(
            telemetry_named("").is_err()
                && telemetry_named("nonsense").is_err_and(|e| e.contains("help kinds"))
        );
    }
}
