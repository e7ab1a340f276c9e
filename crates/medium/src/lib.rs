#![forbid(unsafe_code)]
//! A deterministic model of the networks between robots, above all of one shared half-duplex 802.11 channel.
//!
//! [`Medium`] is a radio: hosts contend for the same air by the distributed coordination function, or by access
//! categories ([`Access::Edca`]) that a packet's DSCP selects. It has the timing of 802.11 a, b and g, back-off,
//! acknowledgement, retries, collisions, and a bounded device queue per host. [`Topology`] defines which hosts decode
//! each other; relays and access points forward, and contend like any other host. [`Hearing`] defines which hosts hear
//! each other, so hosts may be hidden from each other. A frame to everyone ([`Medium::broadcast`]) is sent once, at the
//! lowest basic rate, without acknowledgement. [`Loss`] loses frames, which retries repair; behind the air a [`Path`]
//! delays, loses, reorders and duplicates packets, which nothing repairs. Rates, losses and outages follow tables over
//! time, and may be changed at any instant.
//!
//! [`Wire`] is a full-duplex line between two hosts, and [`Channel`] is either of them. [`theory`] has the closed forms
//! that the radio is compared with.
//!
//! It does no I/O and reads no clock: the driver hands over packets with the time and polls for events. Every event
//! carries its *ideal* time, so a driver that wakes up late adds no error to the next one. Payloads are opaque; the
//! model does not know about IP, sockets or the link protocol.
//!
//! Not modelled: propagation (signals take no time, and a host that hears a second transmission loses both: there is no
//! capture effect), RTS/CTS and the protection of OFDM frames from 802.11b stations, aggregation and block
//! acknowledgements, TXOP bursts of EDCA, rate adaptation, power saving, association, 802.11n and later. A station that
//! heard a collision waits as long as the exchange would have taken, which stands for EIFS and the acknowledgement's
//! timeout. Acknowledgements are lost only to hidden hosts, never by chance, and an outage of one direction does not
//! affect those of the other. Routes are fixed by the topology and do not follow outages.
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
mod channel;
mod check;
mod config;
mod count;
mod delay;
mod edca;
mod event;
mod horizon;
mod links;
mod loss;
mod medium;
mod phy;
mod power;
mod rng;
mod station;
pub mod theory;
mod topology;
mod transfer;
mod wire;

pub use channel::{Channel, ChannelConfig};
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
pub use wire::{Wire, WireConfig};
