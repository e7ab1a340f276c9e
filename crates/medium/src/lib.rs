#![forbid(unsafe_code)]
//! A deterministic model of one shared half-duplex 802.11 channel.
//!
//! Hosts stand in a chain, all within hearing of each other, and contend for the same air by the
//! distributed coordination function: DIFS, binary back-off, acknowledgement, retries, collisions. Each
//! host has a bounded device queue; relays forward towards the final host and contend like any other.
//! The timing is that of 802.11a (OFDM, 5 GHz).
//!
//! It does no I/O and reads no clock: whoever drives it hands over frames with the time and asks for
//! what happened. Every event carries its *ideal* time, so a driver that wakes late adds no error to the
//! next one. It moves opaque payloads; it knows nothing of IP, sockets or the link protocol. Hidden
//! nodes, EDCA, aggregation and rate adaptation are not modelled.
//!
//! ```
//! use medium::{Event, Medium, MediumConfig};
//! use stats::Time;
//!
//! let mut air = Medium::new(MediumConfig { rate_bits: 6_000_000, ..MediumConfig::chain(1) })?;
//! air.send(Time::ZERO, 0, 1, 1028, "probe").map_err(|e| e.to_string())?;
//! let mut arrived = None;
//! while let Some(when) = air.next_event() {
//!     while let Some(event) = air.poll(when) {
//!         arrived = Some(event);
//!     }
//! }
//! // DIFS 34 µs, PLCP 20 µs and 356 symbols of 4 µs.
//! assert_eq!(arrived, Some(Event::Delivered { at: Time::from_micros(1478), host: 1, from: 0, payload: "probe" }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod air;
mod check;
mod config;
mod count;
mod delay;
mod edca;
mod event;
mod links;
mod loss;
mod medium;
mod phy;
mod power;
mod rng;
mod station;
mod topology;
mod transfer;

pub use config::{ConfigError, Link, MediumConfig, Outage, Quality};
pub use count::{CategoryStats, HostStats, MediumStats};
pub use delay::{Delay, Path, Reorder};
pub use edca::{Access, Category, Mapping};
pub use event::{Event, SendError};
pub use loss::{Loss, TraceError};
pub use medium::Medium;
pub use phy::{Phy, RateError, Standard};
pub use rng::Rng;
pub use topology::{Hearing, Topology};
