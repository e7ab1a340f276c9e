#![forbid(unsafe_code)]
//! The state of this host's links and bus and of the robots that they reach, in one typed and versioned structure that every view shows alike.
//!
//! A [`View`] has the activity of a link between two of its states: `ropewalk top` and its JSON show it. A [`Picture`]
//! has the views of all links, the topics of the bus and the robots; [`delta`] returns the changes since another picture. The
//! [`Journal`] records events, the [`History`] keeps ten minutes of rates, both within bounds. An [`Observer`] asks the
//! links once a second and keeps all of these.
//!
//! This crate shows and serves nothing.
//!
//! ```no_run
//! let node = ropewalk::Node::new("watch")?;
//! let observer = observe::Observer::start(node)?;
//! while let Some((number, picture)) = observer.wait(0, std::time::Duration::from_secs(5)) {
//!     println!("{number}: {picture}");
//! #   break;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asking;
mod history;
mod journal;
mod observer;
mod picture;
mod robots;
#[doc(hidden)]
pub mod sample;
mod state;
mod view;
mod words;

pub use asking::{AskError, Asked, Links};
pub use history::History;
pub use journal::{Event, Happened, Journal, Name};
pub use observer::{Observer, unix_time};
pub use picture::{Bus, BusTopic, Link, Picture, VERSION, delta};
pub use robots::Robot;
pub use state::{
    AccountState, BulkState, ClockState, DelayState, LinkState, PeerState, RadioState, ReceivedState,
    RecentState, RelayState, ReportState, SentState, ServiceCounts, SpreadState, StateError, UnheardState,
    WayState, YieldsState,
};
pub use view::{Clock, Direction, Peer, Service, Settings, Topic, View, Way};
pub use words::{RateSource, ServiceRole, ServiceState, TopicState};

/// Counts by reason. Reasons are those of [`stats::DropReason::name`], or of a link of another version.
pub type Drops = std::collections::BTreeMap<String, u64>;
