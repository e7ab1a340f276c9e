//! Settings of a link, a host or a medium, before and while a lab runs (decision 055).

use super::{Medium, Scenario};
use medium::{Delay, Loss, Path, Reorder};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use stats::quantity;
use std::path::Path as File;
use std::time::Duration;

/// Settings of a link, a host or a medium; omitted ones stay unchanged.
///
/// Written as `key: value` in a scenario and as `key=value` on the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Bit rate, such as `2Mbit/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Loss of frames on the air, which the MAC repairs by retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossSetting>,
    /// Loss of IP packets, which nothing repairs (as with netem).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_loss: Option<LossSetting>,
    /// Delay of IP packets, one way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelaySetting>,
    /// Whether a packet with a shorter delay waits for those before it. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_order: Option<bool>,
    /// Packets that are held back so that later ones overtake them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<ReorderSetting>,
    /// Share of IP packets that arrive twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Share>,
    /// Whether nothing passes at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<bool>,
}

/// How frames or packets are lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a loss is a share such as 20%, {gilbert: {to_bad: 1%, to_good: 30%, good: 0%, bad: 100%}} or {trace: FILE}"
)]
pub enum LossSetting {
    /// Each with the same probability.
    Uniform(Share),
    /// In bursts.
    Gilbert {
        /// The model's four probabilities.
        gilbert: Gilbert,
    },
    /// As recorded.
    Trace {
        /// A file, next to the scenario's.
        trace: String,
    },
}

/// Gilbert–Elliott: a link is in a good or a bad state, which may change before each frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gilbert {
    /// Probability of good → bad.
    pub to_bad: Share,
    /// Probability of bad → good; its inverse is the mean length of a burst.
    pub to_good: Share,
    /// Loss in the good state.
    #[serde(default)]
    pub good: Share,
    /// Loss in the bad state.
    #[serde(default = "Share::whole")]
    pub bad: Share,
}

/// Time that packets are under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a delay is a duration such as 100ms, {uniform: [MIN, MAX]}, {normal: [MEAN, STD]} or {pareto: [MIN, MEAN, MAX]}"
)]
pub enum DelaySetting {
    /// Always the same.
    Fixed(Span),
    /// Between two bounds.
    Uniform {
        /// Least and greatest.
        uniform: (Span, Span),
    },
    /// Around a mean.
    Normal {
        /// Mean and standard deviation.
        normal: (Span, Span),
    },
    /// With a heavy tail.
    Pareto {
        /// Least, mean and greatest.
        pareto: (Span, Span, Span),
    },
}

/// Packets that are held back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderSetting {
    /// Share of the packets.
    pub share: Share,
    /// How much longer they are under way.
    pub late: Span,
}

/// A share, written `20%` or `0.2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share(pub f64);

impl Share {
    fn whole() -> Share {
        Share(1.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a share such as 20% or 0.2")]
        enum Written {
            Number(f64),
            Text(String),
        }
        let text = match Written::deserialize(d)? {
            Written::Number(n) => n.to_string(),
            Written::Text(t) => t,
        };
        quantity::share(&text).map(Share).map_err(D::Error::custom)
    }
}

/// A duration, written `250ms`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct Span(pub Duration);

impl From<Span> for String {
    fn from(span: Span) -> String {
        format!("{}ns", span.0.as_nanos())
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        quantity::duration(&text).map(Span).map_err(D::Error::custom)
    }
}

/// A change of a running lab.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) target: Target,
    pub(crate) effect: Effect,
}

/// The target of a change, by indices in the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// All of a medium.
    Medium(usize),
    /// A host's devices.
    Host(usize),
    /// From one host to another, on every medium that joins them.
    Link { from: usize, to: usize, both: bool },
}

/// [`Settings`] in the model's terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Effect {
    pub(crate) rate_bits: Option<u64>,
    pub(crate) loss: Option<Loss>,
    pub(crate) packet_loss: Option<Loss>,
    pub(crate) delay: Option<Delay>,
    pub(crate) keep_order: Option<bool>,
    pub(crate) reorder: Option<Reorder>,
    pub(crate) duplicate: Option<f64>,
    pub(crate) down: Option<bool>,
}

impl Effect {
    /// Applies the settings to a path; returns whether they changed anything.
    pub(crate) fn on_path(&self, path: &mut Path) -> bool {
        let before = path.clone();
        if let Some(loss) = &self.packet_loss {
            path.loss = loss.clone();
        }
        if let Some(delay) = &self.delay {
            path.delay = delay.clone();
        }
        path.keep_order = self.keep_order.unwrap_or(path.keep_order);
        path.reorder = self.reorder.unwrap_or(path.reorder);
        path.duplicate = self.duplicate.unwrap_or(path.duplicate);
        *path != before
    }
}

impl Settings {
    /// Parses `key=value`, `down` and `up` as given on the command line.
    ///
    /// # Errors
    /// One line that names the word and how to fix it.
    pub fn from_words(words: &[String]) -> Result<Settings, String> {
        let mut yaml = String::new();
        for word in words {
            match (word.as_str(), word.split_once('=')) {
                ("down", _) => yaml.push_str("down: true\n"),
                ("up", _) => yaml.push_str("down: false\n"),
                (_, Some((key, value))) if !word.contains('\n') => {
                    yaml.push_str(&format!("{key}: {value}\n"));
                }
                _ => {
                    return Err(format!(
                        "'{}' sets nothing: write for example loss=20%, delay=100ms, rate=2Mbit/s, down or up",
                        word.escape_debug()
                    ));
                }
            }
        }
        if yaml.is_empty() {
            return Err(
                "nothing to set: write for example loss=20%, delay=100ms, rate=2Mbit/s, down or up".into(),
            );
        }
        let settings: Settings = serde_saphyr::from_str(&yaml).map_err(|e| super::yaml::problem(&e))?;
        settings.resolve(None).map(|_| settings)
    }

    /// Resolves the settings for the model; traces are read from `folder`.
    pub(crate) fn resolve(&self, folder: Option<&File>) -> Result<Effect, String> {
        let rate = self.rate.as_deref().map(quantity::bit_rate).transpose();
        Ok(Effect {
            rate_bits: rate.map_err(|e| e.to_string())?,
            loss: self.loss.as_ref().map(|l| l.resolve(folder)).transpose()?,
            packet_loss: self.packet_loss.as_ref().map(|l| l.resolve(folder)).transpose()?,
            delay: self.delay.as_ref().map(DelaySetting::resolve).transpose()?,
            keep_order: self.keep_order,
            reorder: self.reorder.as_ref().map(|r| Reorder {
                share: r.share.0,
                late: r.late.0,
            }),
            duplicate: self.duplicate.map(|s| s.0),
            down: self.down,
        })
    }
}

impl LossSetting {
    fn resolve(&self, folder: Option<&File>) -> Result<Loss, String> {
        /// A trace of a day at a thousand frames per second fits.
        const MAX_TRACE: u64 = 256 << 20;
        match self {
            LossSetting::Uniform(share) => Ok(Loss::Uniform(share.0)),
            LossSetting::Gilbert { gilbert } => Ok(Loss::Gilbert {
                to_bad: gilbert.to_bad.0,
                to_good: gilbert.to_good.0,
                good: gilbert.good.0,
                bad: gilbert.bad.0,
            }),
            LossSetting::Trace { trace } => {
                let path = folder.unwrap_or(File::new("")).join(trace);
                let fail = |e: &dyn std::fmt::Display| format!("the trace {}: {e}", path.display());
                let size = std::fs::metadata(&path).map_err(|e| fail(&e))?.len();
                if size > MAX_TRACE {
                    return Err(fail(&format_args!("{size} bytes; at most {MAX_TRACE} are read")));
                }
                let text = std::fs::read_to_string(&path).map_err(|e| fail(&e))?;
                Loss::from_trace(&text).map_err(|e| fail(&e))
            }
        }
    }
}

impl DelaySetting {
    fn resolve(&self) -> Result<Delay, String> {
        let ascending = |spans: &[Span], what: &str| match spans.is_sorted_by_key(|s| s.0) {
            true => Ok(()),
            false => Err(format!("the values of the {what} delay must ascend: swap them")),
        };
        Ok(match self {
            DelaySetting::Fixed(span) => Delay::Fixed(span.0),
            DelaySetting::Uniform { uniform: (min, max) } => {
                ascending(&[*min, *max], "uniform")?;
                Delay::Uniform {
                    min: min.0,
                    max: max.0,
                }
            }
            DelaySetting::Normal { normal: (mean, std) } => Delay::Normal {
                mean: mean.0,
                std: std.0,
            },
            DelaySetting::Pareto {
                pareto: (min, mean, max),
            } => {
                ascending(&[*min, *mean, *max], "pareto")?;
                Delay::Pareto {
                    min: min.0,
                    mean: mean.0,
                    max: max.0,
                }
            }
        })
    }
}

impl Target {
    /// Parses `wifi` (a medium), `robot` (a host), `robot-base` (both directions) or `robot>base` (one direction).
    pub(crate) fn parse(text: &str, scenario: &Scenario) -> Result<Target, String> {
        Self::find(text, &scenario.hosts, &scenario.media)
    }

    pub(super) fn find(text: &str, hosts: &[String], media: &[Medium]) -> Result<Target, String> {
        let host = |name: &str| hosts.iter().position(|h| h == name);
        if let Some(medium) = media.iter().position(|m| m.name == text) {
            return Ok(Target::Medium(medium));
        }
        if let Some(host) = host(text) {
            return Ok(Target::Host(host));
        }
        // A host's name may contain a '-' itself.
        let mut pairs = text.match_indices(['-', '>']).filter_map(|(at, sign)| {
            let ends = (host(&text[..at])?, host(&text[at + 1..])?);
            Some((ends, sign == "-"))
        });
        if let Some(((from, to), both)) = pairs.next() {
            if media.iter().any(|m| m.link(from, to).is_some()) {
                return Ok(Target::Link { from, to, both });
            }
            return Err(format!(
                "no medium joins {} and {} directly: name two neighbours",
                hosts[from], hosts[to]
            ));
        }
        Err(format!(
            "'{text}' is neither a link (HOST-HOST both ways, HOST>HOST one way), a medium ({}) nor a host ({})",
            media
                .iter()
                .map(|m| m.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            some(hosts),
        ))
    }
}

/// The first few names.
fn some(names: &[String]) -> String {
    let shown = names
        .iter()
        .take(8)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > 8 {
        format!("{shown}, ...")
    } else {
        shown
    }
}

impl Medium {
    /// The stations of two hosts, if they are neighbours on this medium.
    pub(crate) fn link(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let station = |host| self.hosts.iter().position(|h| *h == host);
        let (from, to) = (station(from)?, station(to)?);
        self.linked(from, to).then_some((from, to))
    }
}
