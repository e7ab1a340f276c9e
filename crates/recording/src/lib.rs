#![forbid(unsafe_code)]
//! Recordings of robots: reads ROS 1 bags (format 2.0), MCAP files and rosbag2's folders and databases, writes MCAP
//! files and folders of rosbag2, and plays all of them in real time. A [`simulation`] of a robot in a room yields the
//! same stream of messages without any file.
//!
//! This crate does not interpret messages: it returns the recorded bytes with their type's name, checksum and
//! definition. It does not publish; the caller decides where messages go. It writes no ROS 1 bags and no databases,
//! reads no bags older than format 2.0, and decrypts nothing.
//!
//! ```
//! use recording::{Recording, simulation, write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("room.mcap");
//! simulation::write(&path, 0.2, 1, &write::Options::default())?;
//!
//! let recording = Recording::open(&path)?;
//! for message in recording.messages() {
//!     let message = message?;
//!     let channel = recording.channel(message.channel);
//!     println!("{} {} {} bytes", message.log_time, channel.topic, message.data.len());
//! }
//! # Ok(())
//! # }
//! ```

mod error;
#[doc(hidden)]
pub mod fuzzing;
mod model;
mod playback;
pub mod qos;
mod reader;
mod rosbag2;
mod schedule;
mod set;
pub mod simulation;
pub mod write;

pub use error::{OpenError, ReadError, WriteError};
pub use model::{Channel, ChannelId, Encoding, Message, Summary, TopicSummary};
pub use playback::{Playback, PlaybackError, Played, Stop, Tick};
pub use qos::Qos;
pub use reader::{Limits, Messages, Recording};
pub use rosbag2::MAX_FILES;
pub use schedule::{Due, Pace, PaceError, Player, Schedule};
pub use set::{Set, SetMessages};
pub use write::Writer;
