//! The models of a scenario's media.

use super::{Kind, Medium, Scenario};
use medium::{
    Access, Category, Channel, ChannelConfig, Delay, Event, Mapping, MediumConfig, MediumStats, SendError,
    WireConfig,
};
use stats::Time;
use std::time::Duration;

/// All media of a lab. `P` is the payload, of which a medium may make copies.
pub(crate) struct Channels<P> {
    pub(super) media: Vec<(Medium, Channel<P>)>,
    /// The hosts' names.
    pub(super) hosts: Vec<String>,
}

/// An IP packet on its way into a medium.
pub(crate) struct Packet<P> {
    pub(crate) ip_bytes: usize,
    /// Differentiated services code point (RFC 2474).
    pub(crate) dscp: u8,
    pub(crate) payload: P,
}

/// The counters of one medium.
pub(crate) struct Counts {
    pub(crate) stats: MediumStats,
    /// Number of frames currently in each station's device queue.
    pub(crate) queues: Vec<usize>,
    /// The same by access category, in the order of [`Category::ALL`]; empty without EDCA.
    pub(crate) categories: Vec<[usize; 4]>,
}

impl<P: Clone> Channels<P> {
    pub(super) fn new(scenario: &Scenario) -> Result<Self, String> {
        let make = |(index, medium): (usize, &Medium)| {
            // Each medium has its own random sequence; all of them follow from the scenario's seed.
            let seed = scenario.seed.wrapping_add(index as u64 * 0x9E37_79B9);
            let channel = channel(medium, seed).map_err(|e| format!("the medium '{}': {e}", medium.name))?;
            Ok((medium.clone(), channel))
        };
        let media = scenario
            .media
            .iter()
            .enumerate()
            .map(make)
            .collect::<Result<_, String>>()?;
        let hosts = scenario.hosts.clone();
        Ok(Channels { media, hosts })
    }

    /// When [`Channels::poll`] should be called next.
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.media.iter().filter_map(|(_, c)| c.next_event()).min()
    }

    /// The next event up to `now`, and its medium. Media are polled one after another, each in order of time.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(usize, Event<P>)> {
        let mut media = self.media.iter_mut().enumerate();
        media.find_map(|(index, (_, channel))| Some((index, channel.poll(now)?)))
    }

    /// Sends a packet from a station to another, or to all that hear it. The model counts what it refuses.
    pub(crate) fn send(
        &mut self,
        now: Time,
        medium: usize,
        from: usize,
        to: Option<usize>,
        packet: Packet<P>,
    ) -> Result<(), SendError<P>> {
        let channel = &mut self.media[medium].1;
        let Packet {
            ip_bytes,
            dscp,
            payload,
        } = packet;
        match to {
            Some(to) => channel.send_dscp(now, from, to, ip_bytes, dscp, payload),
            None => channel.broadcast(now, from, ip_bytes, dscp, payload),
        }
    }

    /// How long air and wires were busy, added up.
    pub(crate) fn busy(&self) -> Duration {
        self.media.iter().map(|(_, c)| c.stats().busy).sum()
    }

    /// The counters of each medium.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let counts = |(medium, channel): &(Medium, Channel<P>)| {
            let stations = 0..medium.hosts.len();
            let categories = match (channel, &medium.kind) {
                (Channel::Radio(radio), Kind::Wifi(wifi)) if wifi.edca => stations
                    .clone()
                    .map(|s| Category::ALL.map(|c| radio.category_len(s, c)))
                    .collect(),
                _ => Vec::new(),
            };
            Counts {
                stats: channel.stats().clone(),
                queues: stations.map(|s| channel.queue_len(s)).collect(),
                categories,
            }
        };
        self.media.iter().map(counts).collect()
    }
}

fn channel<P: Clone>(medium: &Medium, seed: u64) -> Result<Channel<P>, String> {
    let config = match &medium.kind {
        Kind::Wifi(wifi) => {
            let usual = MediumConfig::chain(1);
            ChannelConfig::Radio(MediumConfig {
                standard: wifi.standard,
                rate_bits: wifi.rate_bits,
                hosts: medium.hosts.len(),
                topology: wifi.topology.clone(),
                hearing: wifi.hearing.clone(),
                access: if wifi.edca {
                    Access::Edca(Mapping::default())
                } else {
                    Access::Dcf
                },
                queue_frames: medium.queue_frames.unwrap_or(usual.queue_frames),
                retries: wifi.retries,
                seed,
                ..usual
            })
        }
        Kind::Wire(wire) => {
            let usual = match (wire.rate_bits, wire.queue_bytes) {
                (Some(rate), Some(bytes)) => WireConfig::long_haul(rate, Delay::NONE, bytes),
                (Some(rate), None) => WireConfig::ethernet(rate),
                (None, _) => WireConfig::direct(),
            };
            ChannelConfig::Wire(WireConfig {
                queue_frames: medium.queue_frames.unwrap_or(usual.queue_frames),
                seed,
                ..usual
            })
        }
    };
    Channel::new(config).map_err(|e| e.to_string())
}
