//! Ten minutes of rates for each topic, bounded in bytes.

use crate::{Topic, View};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};

/// How many pictures are remembered: ten minutes at one a second.
const SAMPLES: usize = 600;
/// Bytes of all series together.
const BYTES: usize = 8 << 20;
/// Memory of a series in bytes, without its samples and its name.
const OVERHEAD: usize = 256;
/// The longest JSON of a history, in bytes; series that use the most air come first.
const SHOWN: usize = 2 << 20;

/// Rates of topics over time.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Times of the pictures, in seconds since 1970.
    times: VecDeque<f64>,
    /// How many pictures were forgotten.
    forgotten: u64,
    series: BTreeMap<String, Series>,
    bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Series {
    /// Number of the picture of the first sample.
    first: u64,
    samples: VecDeque<Sample>,
}

/// One topic in one picture; a missing number is NaN.
#[derive(Clone, Copy, Debug)]
struct Sample {
    hz: f32,
    air: f32,
    lost_hz: f32,
    delay_ms: f32,
}

impl Sample {
    const NONE: Sample = Sample {
        hz: f32::NAN,
        air: f32::NAN,
        lost_hz: f32::NAN,
        delay_ms: f32::NAN,
    };

    fn of(t: &Topic) -> Self {
        let hz = t.delivered_hz.or(t.sent_hz);
        Sample {
            hz: hz.map_or(f32::NAN, |v| v as f32),
            air: t.air_share as f32,
            lost_hz: t.lost_hz as f32,
            delay_ms: t.delay_mean_ms.map_or(f32::NAN, |v| v as f32),
        }
    }
}

/// Memory of a series of maximum length, in bytes.
fn cost(name: &str) -> usize {
    SAMPLES * size_of::<Sample>() + name.len() + OVERHEAD
}

impl History {
    /// Adds a picture of all links.
    pub fn add<'a>(&mut self, at: f64, views: impl Iterator<Item = &'a View>) {
        if self.times.len() >= SAMPLES {
            self.times.pop_front();
            self.forgotten += 1;
        }
        self.times.push_back(at);
        let number = self.forgotten + self.times.len() as u64 - 1;
        for view in views {
            for topic in &view.topics {
                let name = format!("{} {}", view.link, topic.id());
                self.sample(number, name, Sample::of(topic));
            }
        }
        let forgotten = self.forgotten;
        let mut freed = 0;
        self.series.retain(|name, series| {
            while series.first < forgotten && series.samples.pop_front().is_some() {
                series.first += 1;
            }
            let keep = !series.samples.is_empty();
            freed += if keep { 0 } else { cost(name) };
            keep
        });
        self.bytes -= freed;
    }

    fn sample(&mut self, number: u64, name: String, sample: Sample) {
        if !self.series.contains_key(&name) && !self.make_room(number, cost(&name)) {
            return;
        }
        let cost = cost(&name);
        let series = self.series.entry(name).or_insert_with(|| {
            self.bytes += cost;
            Series {
                first: number,
                samples: VecDeque::new(),
            }
        });
        while series.end() < number {
            series.samples.push_back(Sample::NONE);
        }
        if series.end() == number {
            series.samples.push_back(sample);
        }
    }

    /// Forgets topics that have ended, the longest ended first, until `needed` bytes fit.
    fn make_room(&mut self, number: u64, needed: usize) -> bool {
        while self.bytes + needed > BYTES {
            let oldest = self.series.iter().min_by_key(|(_, s)| s.end());
            let Some((name, _)) = oldest.filter(|(_, s)| s.end() + 1 < number) else {
                return false;
            };
            let name = name.clone();
            self.series.remove(&name);
            self.bytes -= cost(&name);
        }
        true
    }

    /// All of it: `times`, and for each series the index of its `first` sample in them, and its samples.
    pub fn json(&self) -> Value {
        let mut order: Vec<_> = self.series.iter().collect();
        let air = |s: &Series| {
            s.samples
                .iter()
                .map(|s| s.air)
                .filter(|a| a.is_finite())
                .sum::<f32>()
        };
        order.sort_by(|a, b| air(b.1).total_cmp(&air(a.1)));
        let (mut series, mut size) = (serde_json::Map::new(), 0);
        for (name, one) in order {
            let column =
                |of: fn(&Sample) -> f32| one.samples.iter().map(|s| short(of(s))).collect::<Vec<_>>();
            let shown = json!({
                "first": one.first - self.forgotten,
                "hz": column(|s| s.hz),
                "air": column(|s| s.air),
                "lost_hz": column(|s| s.lost_hz),
                "delay_ms": column(|s| s.delay_ms),
            });
            size += name.len() + shown.to_string().len();
            if size > SHOWN {
                break;
            }
            series.insert(name.clone(), shown);
        }
        json!({ "times": self.times, "series": series })
    }
}

impl Series {
    /// Number of the picture after its last sample.
    fn end(&self) -> u64 {
        self.first + self.samples.len() as u64
    }
}

/// Four digits, or null.
fn short(value: f32) -> Value {
    let value = f64::from(value);
    if !value.is_finite() {
        return Value::Null;
    }
    let digits = if value.abs() < 1.0 { 1e4 } else { 1e2 };
    json!((value * digits).round() / digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::view;

    #[test]
    fn ten_minutes_are_kept_and_gaps_are_gaps() {
        let (mut history, full) = (History::default(), view());
        let mut half = full.clone();
        half.topics.truncate(1);
        for n in 0..1000_u32 {
            let view = if n % 2 == 0 { &full } else { &half };
            history.add(f64::from(n), [view].into_iter());
        }
        let json = history.json();
        assert_eq!(json["times"].as_array().unwrap().len(), SAMPLES);
        assert_eq!(json["times"][0], 400.0);
        let of = |n: usize| &json["series"][format!("robot {}", full.topics[n].id())];
        assert_eq!(of(0)["hz"].as_array().unwrap().len(), SAMPLES);
        assert_eq!((&of(0)["first"], &of(0)["hz"][7]), (&json!(0), &json!(50.0)));
        assert_eq!((&of(1)["hz"][0], &of(1)["hz"][1]), (&json!(45.0), &Value::Null));
        // Ten minutes later nothing is left of them.
        (0..SAMPLES).for_each(|n| history.add(n as f64, [].into_iter()));
        assert!(history.series.is_empty());
        assert_eq!(history.bytes, 0);
    }

    #[test]
    fn topics_without_number_stay_within_the_budget() {
        let (mut history, mut view) = (History::default(), view());
        view.topics.truncate(1);
        for n in 0..5000 {
            view.topics[0].topic = format!("/t{n}");
            history.add(f64::from(n), [&view].into_iter());
            assert!(history.bytes <= BYTES);
        }
        let sum: usize = history.series.keys().map(|name| cost(name)).sum();
        assert_eq!(history.bytes, sum);
        assert!(
            history
                .series
                .contains_key(&format!("robot {}", view.topics[0].id()))
        );
        // Those that are there keep their place.
        let one = view.topics[0].clone();
        view.topics = (0..5000)
            .map(|n| Topic {
                topic: format!("/x{n}"),
                ..one.clone()
            })
            .collect();
        (0..3).for_each(|n| history.add(f64::from(n), [&view].into_iter()));
        assert!(history.bytes <= BYTES && history.series.len() > 500);
        assert!(history.json().to_string().len() < SHOWN + (1 << 16));
    }
}
