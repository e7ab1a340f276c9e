//! Log messages.

use super::read::Reader;
use super::write::Writer;
use super::{ConvertError, Ros};
use crate::types::{Header, LogLevel, LogMessage};
use schema::Flavour;

/// The levels with their numbers in ROS 1 and ROS 2, the most urgent first.
const LEVELS: [(LogLevel, u8, u8); 5] = [
    (LogLevel::Fatal, 16, 50),
    (LogLevel::Error, 8, 40),
    (LogLevel::Warn, 4, 30),
    (LogLevel::Info, 2, 20),
    (LogLevel::Debug, 1, 10),
];

fn of_flavour((_, ros1, ros2): (LogLevel, u8, u8), flavour: Flavour) -> u8 {
    match flavour {
        Flavour::Ros1 => ros1,
        Flavour::Ros2 => ros2,
    }
}

/// Levels have different numbers: a level between two of ROS's becomes the lower one, and an unknown level or a robot's
/// own goes to ROS as INFO. Not converted: the node's name, file, function, line and topics; ROS 2 has no frame.
impl Ros for LogMessage {
    const NAME: &'static str = "LogMessage";
    const TYPES: &'static [&'static str] = &["rosgraph_msgs/Log", "rcl_interfaces/Log"];

    fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        let header = match from.flavour {
            Flavour::Ros1 => from.header()?,
            Flavour::Ros2 => Header {
                timestamp: Some(from.stamp()?),
                ..Default::default()
            },
        };
        let number: u8 = from.word("level")?;
        let level = LEVELS
            .into_iter()
            .find(|l| of_flavour(*l, from.flavour) <= number);
        from.text("name")?;
        let message = from.text("msg")?;
        from.text("file")?;
        from.text("function")?;
        from.word::<u32>("line")?;
        if from.flavour == Flavour::Ros1 {
            from.texts("topics")?;
        }
        Ok(LogMessage {
            header: Some(header),
            level: level.map_or(LogLevel::Debug, |l| l.0) as u32,
            message,
        })
    }

    fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
        match to.flavour {
            Flavour::Ros1 => to.header(self.header.as_ref()),
            Flavour::Ros2 => to.stamp(self.header.as_ref().and_then(|h| h.timestamp.as_ref())),
        }
        let level = LEVELS.into_iter().find(|l| l.0 as u32 == self.level);
        let level = level.unwrap_or(LEVELS[3]);
        to.byte(of_flavour(level, to.flavour));
        to.text("name", "");
        to.text("msg", &self.message);
        to.text("file", "");
        to.text("function", "");
        to.word(0);
        if to.flavour == Flavour::Ros1 {
            to.texts("topics", &[]);
        }
    }
}
