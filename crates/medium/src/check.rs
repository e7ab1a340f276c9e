//! Validation of settings.

use crate::config::{ConfigError, Link, Outage, Quality};
use crate::delay::{Delay, Path};
use crate::loss::Loss;
use core::time::Duration;

type Checked = Result<(), ConfigError>;

/// Checks a rate against what a radio or a wire can carry.
pub(crate) type RateCheck<'a> = &'a dyn Fn(u64) -> Checked;

pub(crate) fn loss(setting: &str, loss: &Loss) -> Checked {
    match loss {
        Loss::Uniform(p) => probability(setting, *p),
        Loss::Gilbert {
            to_bad,
            to_good,
            good,
            bad,
        } => {
            for (name, p) in [
                ("to_bad", to_bad),
                ("to_good", to_good),
                ("good", good),
                ("bad", bad),
            ] {
                probability(&format!("{setting}: {name}"), *p)?;
            }
            Ok(())
        }
        Loss::Trace(frames) if frames.is_empty() => Err(empty(setting)),
        Loss::Trace(_) => Ok(()),
        Loss::OverTime(steps) if steps.is_empty() => Err(empty(setting)),
        Loss::OverTime(steps) => {
            ascending(setting, steps)?;
            steps.iter().try_for_each(|(_, p)| probability(setting, *p))
        }
    }
}

pub(crate) fn path(setting: &str, path: &Path) -> Checked {
    loss(&format!("{setting}: packet loss"), &path.loss)?;
    match path.delay {
        Delay::Fixed(_) | Delay::Normal { .. } => {}
        Delay::Uniform { min, max } => bounds(&format!("{setting}: delay"), min, max)?,
        Delay::Pareto { min, mean, max } => {
            bounds(&format!("{setting}: delay"), min, mean)?;
            bounds(&format!("{setting}: delay"), mean, max)?;
        }
    }
    probability(&format!("{setting}: reorder"), path.reorder.share)?;
    probability(&format!("{setting}: duplicate"), path.duplicate)
}

pub(crate) fn quality(setting: &str, table: &[(Duration, Quality)], rate: RateCheck<'_>) -> Checked {
    ascending(setting, table)?;
    for (_, q) in table {
        q.rate_bits.map_or(Ok(()), rate)?;
        probability(setting, q.loss.unwrap_or(0.0))?;
    }
    Ok(())
}

pub(crate) fn link(setting: &str, link: &Link, rate: RateCheck<'_>) -> Checked {
    link.rate_bits.map_or(Ok(()), rate)?;
    if let Some(own) = &link.loss {
        loss(&format!("{setting}: loss"), own)?;
    }
    if let Some(own) = &link.path {
        path(setting, own)?;
    }
    for o in &link.outages {
        outage(setting, o)?;
    }
    quality(&format!("{setting}: quality"), &link.quality, rate)
}

pub(crate) fn outage(setting: &str, o: &Outage) -> Checked {
    bounds(&format!("{setting}: outage"), o.from, o.until)
}

pub(crate) fn host(setting: &str, host: usize, hosts: usize) -> Checked {
    if host < hosts {
        return Ok(());
    }
    Err(ConfigError::NoSuchHost {
        setting: setting.into(),
        host,
        last: hosts.saturating_sub(1),
    })
}

fn probability(setting: &str, value: f64) -> Checked {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::Probability {
        setting: setting.into(),
        value,
    })
}

fn ascending<T>(setting: &str, steps: &[(Duration, T)]) -> Checked {
    match steps.windows(2).find(|w| w[0].0 >= w[1].0) {
        None => Ok(()),
        Some(w) => Err(ConfigError::Order {
            setting: setting.into(),
            at: w[1].0,
        }),
    }
}

fn bounds(setting: &str, low: Duration, high: Duration) -> Checked {
    if low <= high {
        return Ok(());
    }
    Err(ConfigError::Bounds {
        setting: setting.into(),
        low,
        high,
    })
}

fn empty(setting: &str) -> ConfigError {
    ConfigError::EmptyTrace {
        setting: setting.into(),
    }
}
