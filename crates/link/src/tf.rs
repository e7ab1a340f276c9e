//! Reduces transforms to what a peer needs: the permitted frames, each at its rate. Keeps static transforms.

use bridge::{Frames, Passage, TRANSFORMS, TfRule};
use bus::TopicType;
use schema::{Flavour, Parts, Registry, Schema, Value};
use serde::{Deserialize, Serialize};
use stats::Time;
use std::collections::BTreeMap;

/// Most static frames whose last transform is kept.
const MAX_FRAMES: usize = 4096;
/// Largest message that is read, in bytes. A thousand transforms take about 100 kB.
const MAX_BYTES: usize = 256 << 10;

/// Selects the transforms of a topic that are sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TfConfig {
    /// The frames (`child_frame_id`) to send; `*` matches anything. Default: all.
    pub frames: Option<Vec<String>>,
    /// Most transforms per second of each frame. Default: all.
    #[serde(deserialize_with = "bridge::maybe_frequency")]
    pub rate: Option<f64>,
    /// The same for frames that match a pattern. The longest matching pattern counts.
    #[serde(deserialize_with = "bridge::frequencies")]
    pub rates: BTreeMap<String, f64>,
    /// Whether the transforms are static: the link keeps them all and sends them together, also to late
    /// joiners. Default: true for topics named `tf_static`.
    #[serde(rename = "static")]
    pub is_static: Option<bool>,
}

/// Counts of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TfStats {
    /// Transforms sent on.
    pub passed: u64,
    /// Transforms of frames that the configuration does not select.
    pub other_frames: u64,
    /// Transforms that exceeded their frame's rate.
    pub too_soon: u64,
    /// Messages dropped because no transform was left.
    pub empty_messages: u64,
    /// Messages that could not be read, or are larger than 256 KiB.
    pub unreadable: u64,
}

/// Why a topic cannot be filtered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TfError {
    #[error(
        "{topic} has the type {type_name}, but `tf` filters only tf2_msgs/TFMessage and tf/tfMessage: \
             leave `tf` out"
    )]
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
    frames: Frames,
    is_static: bool,
    /// The newest transform of each static frame.
    kept: BTreeMap<String, Value>,
    stats: TfStats,
}

impl TfFilter {
    /// Creates the filter for a topic of the bus, from its publisher's type definition.
    pub(crate) fn new(config: &TfConfig, topic: &TopicType) -> Result<Self, TfError> {
        if !TRANSFORMS.contains(&topic.type_name.as_str()) {
            return Err(TfError::Type {
                topic: topic.topic.clone(),
                type_name: topic.type_name.clone(),
            });
        }
        let mut registry = Registry::new(match topic.flavour.ros {
            bus::Ros::Two => Flavour::Ros2,
            bus::Ros::One | bus::Ros::Unstated => Flavour::Ros1,
        });
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
            frames: Frames::new(TfRule {
                frames: config.frames.clone(),
                rate: config.rate,
                rates: config.rates.clone(),
            }),
            kept: BTreeMap::new(),
            stats: TfStats::default(),
        })
    }

    /// Returns whether late joiners get the last transforms, too.
    pub(crate) fn is_static(&self) -> bool {
        self.is_static
    }

    /// Counts so far.
    pub(crate) fn stats(&self) -> &TfStats {
        &self.stats
    }

    /// Returns the part of a message to send, or `None` if nothing is left.
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
        let (frames, stats) = (&mut self.frames, &mut self.stats);
        let mut passes = |transform: &Value| {
            let passage = frames.look(now, transform);
            match passage {
                Passage::Passes => {}
                Passage::OtherFrame => stats.other_frames += 1,
                Passage::TooSoon => stats.too_soon += 1,
            }
            passage == Passage::Passes
        };
        let passing: Vec<Value> = transforms.into_iter().filter(|t| passes(t)).collect();
        if passing.is_empty() {
            self.stats.empty_messages += 1;
            return None;
        }
        self.stats.passed += passing.len() as u64;
        let sent = if self.is_static {
            for transform in passing {
                let frame = Frames::frame(&transform);
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
            flavour: Default::default(),
            definition: schema.definition().into(),
        };
        (kind, schema)
    }

    fn filter(config: &str, name: &str) -> (TfFilter, Schema) {
        let config: TfConfig = serde_saphyr::from_str(config).expect("is good");
        let (kind, schema) = topic(name);
        (TfFilter::new(&config, &kind).expect("filters"), schema)
    }

    /// The frames that pass for a message with `frames`.
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
        transforms.iter().map(Frames::frame).collect()
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
    fn other_types_and_broken_messages_are_reported() {
        let (mut kind, _) = topic("/tf");
        kind.type_name = "std_msgs/String".into();
        let error = TfFilter::new(&TfConfig::default(), &kind)
            .err()
            .expect("is refused");
        assert!(error.to_string().contains("leave `tf` out"), "{error}");
        let (mut f, schema) = filter("{}", "/tf");
        assert!(f.apply(Time(1), &[0xff; 9], &[]).is_none());
        assert!(f.apply(Time(1), &vec![0; MAX_BYTES + 1], &[]).is_none());
        assert_eq!(f.stats().unreadable, 2);
        // Every truncation of a good message.
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
}
