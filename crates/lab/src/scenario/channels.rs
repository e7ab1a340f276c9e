//! The models of a scenario's media, and how changes reach them.

use super::settings::{Change, Effect, Place};
use super::{Kind, Medium, Scenario};
use crate::tap::frame::Header;
use medium::{
    Access, Category, Channel, ChannelConfig, Delay, Event, Mapping, MediumConfig, MediumStats, Path,
    WireConfig,
};
use stats::Time;
use std::sync::Arc;

/// All media of a lab.
pub(crate) struct Channels {
    media: Vec<(Medium, Channel<Payload>)>,
}

/// A frame under way, of which a medium may make copies.
type Payload = Arc<[u8]>;

/// The numbers of one medium.
pub(crate) struct Counts {
    pub(crate) stats: MediumStats,
    /// Frames now in each station's device queue.
    pub(crate) queues: Vec<usize>,
    /// The same by access category, in the order of [`Category::ALL`]; empty without EDCA.
    pub(crate) categories: Vec<[usize; 4]>,
}

impl Channels {
    pub(super) fn new(scenario: &Scenario) -> Result<Channels, String> {
        let make = |(index, medium): (usize, &Medium)| {
            // Each medium has a chance of its own, and all of them follow from the scenario's seed.
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
        Ok(Channels { media })
    }

    /// When [`Channels::poll`] should be called next.
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.media.iter().filter_map(|(_, c)| c.next_event()).min()
    }

    /// The next frame that arrived by `now`: medium, ideal time, station and frame. Of several media one after
    /// the other, each in order of time.
    pub(crate) fn poll(&mut self, now: Time) -> Option<(usize, Time, usize, Payload)> {
        for (index, (_, channel)) in self.media.iter_mut().enumerate() {
            while let Some(event) = channel.poll(now) {
                if let Event::Delivered {
                    at, host, payload, ..
                } = event
                {
                    return Some((index, at, host, payload));
                }
            }
        }
        None
    }

    /// Sends a frame from a station to another, or to all of its neighbours. The model counts what it drops.
    pub(crate) fn send(
        &mut self,
        now: Time,
        medium: usize,
        from: usize,
        to: Option<usize>,
        header: &Header,
        frame: &[u8],
    ) {
        let (medium, channel) = &mut self.media[medium];
        let payload: Payload = frame.into();
        let mut one = |to| {
            let _ = channel.send_dscp(now, from, to, header.ip_bytes, header.dscp, payload.clone());
        };
        match to {
            Some(to) => one(to),
            None => medium.neighbours(from).for_each(one),
        }
    }

    /// The numbers of each medium.
    pub(crate) fn counts(&self) -> Vec<Counts> {
        let counts = |(medium, channel): &(Medium, Channel<Payload>)| {
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

    /// Makes a change at `now`.
    pub(crate) fn apply(&mut self, now: Time, change: &Change) -> Result<(), String> {
        let effect = &change.effect;
        match change.place {
            Place::Medium(index) => on_medium(now, &mut self.media[index].1, effect),
            Place::Host(host) => {
                for (medium, channel) in &mut self.media {
                    if let Some(station) = medium.hosts.iter().position(|h| *h == host) {
                        on_host(now, medium, channel, station, effect)?;
                    }
                }
                Ok(())
            }
            Place::Link { from, to, both } => {
                for (medium, channel) in &mut self.media {
                    let Some((a, b)) = medium.link(from, to) else {
                        continue;
                    };
                    on_link(now, channel, a, b, effect)?;
                    if both {
                        on_link(now, channel, b, a, effect)?;
                    }
                }
                Ok(())
            }
        }
    }
}

fn channel(medium: &Medium, seed: u64) -> Result<Channel<Payload>, String> {
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

fn on_medium(now: Time, channel: &mut Channel<Payload>, effect: &Effect) -> Result<(), String> {
    if effect.rate_bits.is_some() {
        channel
            .set_rate(now, effect.rate_bits)
            .map_err(|e| e.to_string())?;
    }
    if let Some(loss) = &effect.loss {
        channel.set_loss(now, loss.clone());
    }
    let mut path = channel.path().clone();
    if effect.on_path(&mut path) {
        channel.set_path(now, path).map_err(|e| e.to_string())?;
    }
    if let Some(down) = effect.down {
        for station in 0..channel.hosts() {
            channel
                .set_host_down(now, station, down)
                .map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// A host's rate and power are the host's own; all else is about the links that end or begin there.
fn on_host(
    now: Time,
    medium: &Medium,
    channel: &mut Channel<Payload>,
    station: usize,
    effect: &Effect,
) -> Result<(), String> {
    let Effect { rate_bits, down, .. } = *effect;
    match channel {
        Channel::Radio(radio) if rate_bits.is_some() => {
            radio
                .set_host_rate(now, station, rate_bits)
                .map_err(|e| e.to_string())?;
        }
        // A wire's rate is that of both its ends.
        Channel::Wire(wire) if rate_bits.is_some() => {
            wire.set_rate(now, rate_bits).map_err(|e| e.to_string())?;
        }
        _ => {}
    }
    if let Some(down) = down {
        channel
            .set_host_down(now, station, down)
            .map_err(|e| e.to_string())?;
    }
    let links = Effect {
        rate_bits: None,
        down: None,
        ..effect.clone()
    };
    if links == Effect::default() {
        return Ok(());
    }
    for other in (0..medium.hosts.len()).filter(|s| medium.linked(station, *s)) {
        on_link(now, channel, station, other, &links)?;
        on_link(now, channel, other, station, &links)?;
    }
    Ok(())
}

fn on_link(
    now: Time,
    channel: &mut Channel<Payload>,
    from: usize,
    to: usize,
    effect: &Effect,
) -> Result<(), String> {
    let mut link = channel.link(from, to);
    link.rate_bits = effect.rate_bits.or(link.rate_bits);
    link.loss = effect.loss.clone().or(link.loss);
    link.down = effect.down.unwrap_or(link.down);
    let mut path: Path = link.path.clone().unwrap_or_else(|| channel.path().clone());
    if effect.on_path(&mut path) {
        link.path = Some(path);
    }
    channel.set_link(now, from, to, link).map_err(|e| e.to_string())
}
