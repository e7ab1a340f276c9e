//! Transforms reduced to what a peer needs: the frames allowed, each at its rate, static ones kept.

use bus::TopicType;
use schema::{Flavour, Parts, Registry, Schema, Value};
use serde::{Deserialize, Deserializer, Serialize, de};
use stats::{Time, quantity};
use std::collections::BTreeMap;
use std::time::Duration;

/// The types that can be filtered.
const TYPES: [&str; 2] = ["tf2_msgs/TFMessage", "tf/tfMessage"];
/// Most frames that are remembered, with their last transform if they are static.
const MAX_FRAMES: usize = 4096;
/// Larger messages are not read: a thousand transforms take about 100 kB.
const MAX_BYTES: usize = 256 << 10;

/// What of a topic of transforms is sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TfConfig {
    /// The frames (`child_frame_id`) that are sent, where `*` stands for anything. Default: all.
    pub frames: Option<Vec<String>>,
    /// At most so many transforms a second of each frame. Default: all.
    #[serde(deserialize_with = "frequency")]
    pub rate: Option<f64>,
    /// The same for frames that match a pattern; the longest pattern counts.
    #[serde(deserialize_with = "frequencies")]
    pub rates: BTreeMap<String, f64>,
    /// Whether the transforms are static: all of them are kept and sent together, also to peers that come
    /// later. Default: if the topic is called `tf_static`.
    #[serde(rename = "static")]
    pub is_static: Option<bool>,
}

fn frequency<'de, D: Deserializer<'de>>(d: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(d)?;
    quantity::frequency(&text).map(Some).map_err(de::Error::custom)
}

fn frequencies<'de, D: Deserializer<'de>>(d: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let read = |(frame, text): (String, String)| {
        let hz = quantity::frequency(&text).map_err(|e| de::Error::custom(format!("{frame}: {e}")))?;
        Ok((frame, hz))
    };
    BTreeMap::<String, String>::deserialize(d)?
        .into_iter()
        .map(read)
        .collect()
}

/// What a filter did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TfStats {
    /// Transforms sent on.
    pub passed: u64,
    /// Transforms of frames that are not sent.
    pub other_frames: u64,
    /// Transforms that came sooner than their frame's rate lets pass.
    pub too_soon: u64,
    /// Messages of which nothing was left, so that none was sent.
    pub empty_messages: u64,
    /// Messages that could not be read, or are larger than 256 KiB.
    pub unreadable: u64,
}

/// Why a topic cannot be filtered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TfError {
    #[error("{topic} is a {type_name}; `tf` filters tf2_msgs/TFMessage and tf/tfMessage only: leave it out")]
    Type { topic: String, type_name: String },
    #[error("the definition of {topic} cannot be used: {source}")]
    Definition {
        topic: String,
        source: schema::DefinitionError,
    },
}

/// Filters one topic.
pub(crate) struct TfFilter {
    schema: Schema,
    config: TfConfig,
    is_static: bool,
    /// When each frame's next transform may pass.
    next: BTreeMap<String, Time>,
    /// The newest transform of each static frame.
    kept: BTreeMap<String, Value>,
    stats: TfStats,
}

impl TfFilter {
    /// For a topic of the bus, by what its publisher says of its type.
    pub(crate) fn new(config: &TfConfig, topic: &TopicType) -> Result<Self, TfError> {
        if !TYPES.contains(&topic.type_name.as_str()) {
            return Err(TfError::Type {
                topic: topic.topic.clone(),
                type_name: topic.type_name.clone(),
            });
        }
        let mut registry = Registry::new(Flavour::Ros1);
        let schema = registry
            .add_embedded(&topic.type_name, &topic.definition)
            .and_then(|()| registry.schema(&topic.type_name));
        let schema = schema.map_err(|source| TfError::Definition {
            topic: topic.topic.clone(),
            source,
        })?;
        Ok(TfFilter {
            schema,
            is_static: config
                .is_static
                .unwrap_or_else(|| topic.topic.ends_with("/tf_static")),
            config: config.clone(),
            next: BTreeMap::new(),
            kept: BTreeMap::new(),
            stats: TfStats::default(),
        })
    }

    /// Whether what was sent last is for peers that come later, too.
    pub(crate) fn is_static(&self) -> bool {
        self.is_static
    }

    /// What it did so far.
    pub(crate) fn stats(&self) -> &TfStats {
        &self.stats
    }

    /// What of a message is sent; `None` if nothing is.
    pub(crate) fn apply(&mut self, now: Time, control: &[u8], parts: &[&[u8]]) -> Option<Parts> {
        let len = control.len() + parts.iter().map(|p| p.len()).sum::<usize>();
        let message = Some(()).filter(|()| len <= MAX_BYTES);
        let message = message.and_then(|()| self.schema.decode(control, parts).ok());
        let Some((mut message, transforms)) = message.and_then(|m| {
            let transforms = m.get("transforms").ok()?;
            Some((m, transforms))
        }) else {
            self.stats.unreadable += 1;
            return None;
        };
        let Value::List(transforms) = transforms else {
            self.stats.unreadable += 1;
            return None;
        };
        let passing: Vec<Value> = transforms.into_iter().filter(|t| self.passes(now, t)).collect();
        if passing.is_empty() {
            self.stats.empty_messages += 1;
            return None;
        }
        self.stats.passed += passing.len() as u64;
        let sent = if self.is_static {
            for transform in passing {
                let frame = frame(&transform);
                if self.kept.len() < MAX_FRAMES || self.kept.contains_key(&frame) {
                    self.kept.insert(frame, transform);
                }
            }
            self.kept.values().cloned().collect()
        } else {
            passing
        };
        let whole = message.set("transforms", Value::List(sent)).is_ok();
        let parts = whole.then(|| self.schema.encode(&message).ok()).flatten();
        self.stats.unreadable += u64::from(parts.is_none());
        parts
    }

    fn passes(&mut self, now: Time, transform: &Value) -> bool {
        let frame = frame(transform);
        let allowed = self
            .config
            .frames
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|p| matches(p, &frame)));
        if !allowed {
            self.stats.other_frames += 1;
            return false;
        }
        let rates = self.config.rates.iter().filter(|(p, _)| matches(p, &frame));
        let rate = rates
            .max_by_key(|(p, _)| p.len())
            .map(|(_, hz)| *hz)
            .or(self.config.rate);
        let Some(hz) = rate else { return true };
        if !self.next.contains_key(&frame) && self.next.len() >= MAX_FRAMES {
            // Whoever makes up frames without end gets none of them through twice in a period.
            self.next.clear();
        }
        let period = Duration::from_secs_f64((1.0 / hz).min(1e6));
        let next = self.next.entry(frame).or_default();
        // A source that jitters by up to half a period keeps its rate.
        if now + period / 2 < *next {
            self.stats.too_soon += 1;
            return false;
        }
        *next = (*next).max(now) + period;
        true
    }
}

/// A transform's frame, without the slash that the first tf had.
fn frame(transform: &Value) -> String {
    let id = transform.get("child_frame_id").ok();
    let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
    id.trim_start_matches('/').to_owned()
}

/// Whether a pattern, in which `*` stands for anything, matches a frame.
fn matches(pattern: &str, frame: &str) -> bool {
    let mut pieces = pattern.trim_start_matches('/').split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = frame.strip_prefix(first) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn topic(name: &str) -> (TopicType, Schema) {
        let schema = Registry::new(Flavour::Ros1)
            .schema("tf2_msgs/TFMessage")
            .expect("is builtin");
        let kind = TopicType {
            topic: name.into(),
            type_name: schema.name().into(),
            type_hash: schema.md5(),
            definition: schema.definition().into(),
        };
        (kind, schema)
    }

    fn filter(config: &str, name: &str) -> (TfFilter, Schema) {
        let config: TfConfig = serde_saphyr::from_str(config).expect("is good");
        let (kind, schema) = topic(name);
        (TfFilter::new(&config, &kind).expect("filters"), schema)
    }

    /// The frames of what is sent for a message of these.
    fn sent(filter: &mut TfFilter, schema: &Schema, ms: u64, frames: &[&str]) -> Vec<String> {
        let transforms: Vec<_> = frames
            .iter()
            .map(|f| json!({ "child_frame_id": f, "header": { "frame_id": "map" } }))
            .collect();
        let value = schema
            .value_from_json(&json!({ "transforms": transforms }))
            .expect("fits");
        let parts = schema.encode(&value).expect("encodes");
        let out = filter.apply(Time::from_millis(1000 + ms), &parts.control, &parts.slices());
        let Some(out) = out else { return Vec::new() };
        let value = schema.decode(&out.control, &out.slices()).expect("decodes");
        let Ok(Value::List(transforms)) = value.get("transforms") else {
            panic!("{value:?}");
        };
        transforms.iter().map(frame).collect()
    }

    #[test]
    fn frames_that_are_allowed_pass_at_their_rates() {
        let (mut f, schema) = filter(
            "{frames: [odom, 'arm_*'], rate: 10Hz, rates: {odom: 50Hz}}",
            "/tf",
        );
        assert_eq!(
            sent(&mut f, &schema, 0, &["/odom", "arm_1", "camera"]),
            ["odom", "arm_1"]
        );
        assert_eq!(
            sent(&mut f, &schema, 20, &["odom", "arm_1", "arm_2"]),
            ["odom", "arm_2"]
        );
        assert_eq!(sent(&mut f, &schema, 24, &["odom", "camera"]), [""; 0]);
        assert_eq!(sent(&mut f, &schema, 100, &["arm_1"]), ["arm_1"]);
        assert_eq!(
            f.stats(),
            &TfStats {
                passed: 5,
                other_frames: 2,
                too_soon: 2,
                empty_messages: 1,
                unreadable: 0
            }
        );
    }

    #[test]
    fn static_transforms_are_kept_and_sent_together() {
        let (mut f, schema) = filter("{frames: ['base*', laser]}", "/robot/tf_static");
        assert!(f.is_static());
        assert_eq!(sent(&mut f, &schema, 0, &["base_link", "gps"]), ["base_link"]);
        assert_eq!(sent(&mut f, &schema, 1, &["laser"]), ["base_link", "laser"]);
        assert_eq!(sent(&mut f, &schema, 2, &["base_link"]), ["base_link", "laser"]);
        assert_eq!(sent(&mut f, &schema, 3, &["gps"]), [""; 0]);
    }

    #[test]
    fn other_types_and_broken_messages_are_told() {
        let (mut kind, _) = topic("/tf");
        kind.type_name = "std_msgs/String".into();
        let error = TfFilter::new(&TfConfig::default(), &kind)
            .err()
            .expect("is refused");
        assert!(error.to_string().contains("leave it out"), "{error}");
        let (mut f, schema) = filter("{}", "/tf");
        assert!(f.apply(Time(1), &[0xff; 9], &[]).is_none());
        assert!(f.apply(Time(1), &vec![0; MAX_BYTES + 1], &[]).is_none());
        assert_eq!(f.stats().unreadable, 2);
        // Every cut of a good message.
        let value = schema
            .value_from_json(&json!({ "transforms": [{ "child_frame_id": "odom" }] }))
            .expect("fits");
        let parts = schema.encode(&value).expect("encodes");
        for n in 0..parts.control.len() {
            assert!(
                f.apply(Time(1), &parts.control[..n], &parts.slices()).is_none(),
                "{n}"
            );
        }
        assert!(f.apply(Time(1), &parts.control, &parts.slices()).is_some());
    }

    #[test]
    fn made_up_frames_take_bounded_memory() {
        let (mut f, schema) = filter("{rate: 1Hz}", "/tf");
        for n in 0..3 {
            let names: Vec<String> = (0..2000).map(|i| format!("f{n}_{i}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            sent(&mut f, &schema, n, &names);
            assert!(f.next.len() <= MAX_FRAMES);
        }
    }

    #[test]
    fn patterns_match_as_they_look() {
        for (pattern, frame, expected) in [
            ("odom", "odom", true),
            ("odom", "odom2", false),
            ("*", "", true),
            ("arm_*", "arm_1", true),
            ("arm_*", "leg_1", false),
            ("*_link", "base_link", true),
            ("*_link", "base_link2", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*a", "a", false),
            ("", "", true),
            ("/odom", "odom", true),
        ] {
            assert_eq!(matches(pattern, frame), expected, "{pattern} {frame}");
        }
    }
}
