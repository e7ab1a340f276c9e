//! Applies settings to the models.
//!
//! A later setting applies to everything that its target covers: a medium's setting also replaces the own settings of
//! its links and hosts, and a host's setting those of the links from it.

use super::Medium;
use super::channels::Channels;
use super::settings::{Change, Effect, Target};
use medium::{Channel, Link, Path};
use stats::Time;

impl<P: Clone> Channels<P> {
    /// Makes a change at `now`.
    pub(crate) fn apply(&mut self, now: Time, change: &Change) -> Result<(), String> {
        let effect = &change.effect;
        match change.target {
            Target::Medium(index) => on_medium(now, &mut self.media[index].1, effect),
            Target::Host(host) => {
                for (medium, channel) in &mut self.media {
                    if let Some(station) = medium.hosts.iter().position(|h| *h == host) {
                        on_host(now, medium, channel, station, effect)?;
                    }
                }
                Ok(())
            }
            Target::Link { from, to, both } => {
                self.refuse_link_of_dead_host(from, to, effect)?;
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

    /// A link cannot be up while one of its ends is switched off; accepting the change would be misleading.
    fn refuse_link_of_dead_host(&self, from: usize, to: usize, effect: &Effect) -> Result<(), String> {
        if effect.down != Some(false) {
            return Ok(());
        }
        for (medium, channel) in &self.media {
            let Some((a, b)) = medium.link(from, to) else {
                continue;
            };
            let mut ends = [(a, from), (b, to)].into_iter();
            if let Some((_, host)) = ends.find(|(station, _)| channel.is_host_down(*station)) {
                let host = &self.hosts[host];
                return Err(format!(
                    "the link cannot come up while its end '{host}' is switched off: set '{host}' up first"
                ));
            }
        }
        Ok(())
    }
}

fn on_medium<P: Clone>(now: Time, channel: &mut Channel<P>, effect: &Effect) -> Result<(), String> {
    if effect.rate_bits.is_some() {
        channel
            .set_rate(now, effect.rate_bits)
            .map_err(|e| e.to_string())?;
        if let Channel::Radio(radio) = channel {
            for host in 0..radio.hosts() {
                radio.set_host_rate(now, host, None).map_err(|e| e.to_string())?;
            }
        }
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
    cover(now, channel, effect, |_| true)
}

/// A host's rate and power are its own; everything else applies to the links that end or begin there.
fn on_host<P: Clone>(
    now: Time,
    medium: &Medium,
    channel: &mut Channel<P>,
    station: usize,
    effect: &Effect,
) -> Result<(), String> {
    let Effect { rate_bits, down, .. } = *effect;
    if rate_bits.is_some() {
        match channel {
            Channel::Radio(radio) => radio.set_host_rate(now, station, rate_bits),
            // A wire's rate applies to both its ends.
            Channel::Wire(wire) => wire.set_rate(now, rate_bits),
        }
        .map_err(|e| e.to_string())?;
        let rate = Effect {
            rate_bits,
            ..Effect::default()
        };
        let is_wire = matches!(channel, Channel::Wire(_));
        cover(now, channel, &rate, |(from, _)| is_wire || from == station)?;
    }
    if let Some(down) = down {
        channel
            .set_host_down(now, station, down)
            .map_err(|e| e.to_string())?;
        let power = Effect {
            down: Some(down),
            ..Effect::default()
        };
        cover(now, channel, &power, |(from, to)| {
            from == station || to == station
        })?;
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

/// Removes the own settings of `covered` links for everything that the new setting names.
fn cover<P: Clone>(
    now: Time,
    channel: &mut Channel<P>,
    effect: &Effect,
    covered: impl Fn((usize, usize)) -> bool,
) -> Result<(), String> {
    for (from, to) in channel.own_links().into_iter().filter(|l| covered(*l)) {
        let own = channel.link(from, to);
        let mut link = Link {
            rate_bits: own.rate_bits.filter(|_| effect.rate_bits.is_none()),
            loss: own.loss.clone().filter(|_| effect.loss.is_none()),
            down: own.down && effect.down != Some(false),
            ..own.clone()
        };
        // A path is a link's own as a whole, including what the medium had when it was created.
        if let Some(path) = &mut link.path {
            effect.on_path(path);
        }
        if link != own {
            channel.set_link(now, from, to, link).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

fn on_link<P: Clone>(
    now: Time,
    channel: &mut Channel<P>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, Settings};
    use medium::{Delay, Loss};
    use std::time::Duration;

    /// A radio of three hosts, after these settings in order.
    fn after(set: &[(&str, &[&str])]) -> Result<Channels<()>, String> {
        let yaml = "hosts: [a, b, c]\nmedia:\n  - {name: air, wifi: {standard: 802.11g, rate: 6Mbit/s}}\n";
        let scenario = Scenario::parse(yaml, "f.yaml").expect("is good");
        let mut channels = scenario.channels().expect("are good");
        for (target, words) in set {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            let settings = Settings::from_words(&words).expect("is good");
            channels.apply(Time::ZERO, &scenario.change(target, settings)?)?;
        }
        Ok(channels)
    }

    fn link(set: &[(&str, &[&str])]) -> Link {
        after(set).expect("can be set").media[0].1.link(0, 1)
    }

    #[test]
    fn later_settings_apply_to_all_that_they_cover() {
        let own: (&str, &[&str]) = (
            "a-b",
            &["loss=20%", "delay=10ms", "packet_loss=5%", "rate=2Mbit/s"],
        );
        let before = link(&[own]);
        assert_eq!(
            (before.rate_bits, before.loss),
            (Some(2_000_000), Some(Loss::Uniform(0.2)))
        );
        // The medium's, key by key.
        let then = link(&[own, ("air", &["loss=0%", "delay=1s"])]);
        assert_eq!((then.rate_bits, then.loss), (Some(2_000_000), None));
        let path = then.path.expect("its own");
        assert_eq!(path.delay, Delay::Fixed(Duration::from_secs(1)));
        assert_eq!(path.loss, Loss::Uniform(0.05), "what was not named stays");
        assert_eq!(link(&[own, ("air", &["rate=11Mbit/s"])]).rate_bits, None);
        // A host's rate applies to what it sends.
        assert_eq!(link(&[own, ("a", &["rate=1Mbit/s"])]).rate_bits, None);
        assert_eq!(link(&[own, ("b", &["rate=1Mbit/s"])]).rate_bits, Some(2_000_000));
        assert_eq!(link(&[own, ("b", &["loss=1%"])]).loss, Some(Loss::Uniform(0.01)));
        // And the link's own again, if it is set last.
        let last = link(&[("air", &["loss=0%"]), own, ("air", &["loss=1%"]), own]);
        assert_eq!(last.loss, Some(Loss::Uniform(0.2)));
    }

    #[test]
    fn links_come_up_and_impossible_changes_are_refused() {
        for wider in ["a", "b", "air"] {
            assert!(!link(&[("a-b", &["down"]), (wider, &["up"])]).down, "{wider}");
        }
        assert!(link(&[("a-b", &["down"]), ("c", &["up"])]).down);
        for wider in ["a", "air"] {
            let refused = after(&[(wider, &["down"]), ("a-b", &["up"])])
                .map(|_| ())
                .expect_err("refused");
            assert_eq!(
                refused,
                "the link cannot come up while its end 'a' is switched off: set 'a' up first"
            );
        }
        assert!(!link(&[("a", &["down"]), ("a", &["up"]), ("a-b", &["up"])]).down);
    }
}
