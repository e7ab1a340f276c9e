//! The observed state at one moment, and the difference between two moments.

use crate::{Robot, View};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Version of the picture's JSON; a reader of another one cannot rely on its fields.
pub const VERSION: u32 = 1;

/// The observed state at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Picture {
    /// [`VERSION`].
    pub version: u32,
    /// Its time, in seconds since 1970.
    pub at: f64,
    /// The links of this host, by name.
    pub links: BTreeMap<String, Link>,
    /// The bus of this host.
    pub bus: Bus,
    /// The robots that this host's bus and links reach, by name; the name of a robot without one is empty.
    pub robots: BTreeMap<String, Robot>,
}

/// A link of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Whether it answered; if not, the view is its last one.
    pub answers: bool,
    /// Its recent activity.
    pub view: View,
}

/// The bus of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bus {
    /// Its topics, by name, without hidden ones.
    pub topics: BTreeMap<String, BusTopic>,
    /// Topics that are left out because there are too many.
    pub more: u64,
}

/// A topic of the bus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusTopic {
    /// Its type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Number of publishers.
    pub publishers: u64,
    /// Number of subscribers.
    pub subscribers: u64,
    /// Messages published a second; none before the second look.
    pub hz: Option<f64>,
}

impl Picture {
    /// As JSON with peers, topics and services in objects by name instead of lists, so that [`delta`] finds changes.
    pub fn json(&self) -> Value {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        for (name, link) in &self.links {
            let view = &mut json["links"][name]["view"];
            let topics = link.view.topics.iter().map(|t| t.id());
            key(&mut view["topics"], topics);
            key(&mut view["peers"], link.view.peers.iter().map(|p| p.name.clone()));
            let services = link.view.services.iter();
            key(
                &mut view["services"],
                services.map(|s| format!("{} {} {}", s.role.as_str(), s.peer, s.service)),
            );
        }
        json
    }
}

/// Turns a list into an object with the given names.
fn key(list: &mut Value, names: impl Iterator<Item = String>) {
    let Value::Array(items) = list.take() else {
        return;
    };
    *list = Value::Object(names.zip(items).collect());
}

/// Returns the merge patch (RFC 7396) that turns `before` into `now`; null removes a member. A value that is null in
/// `now` counts as missing.
pub fn delta(before: &Value, now: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, now) else {
        return now.clone();
    };
    let mut patch = Map::new();
    for name in old
        .keys()
        .filter(|name| new.get(*name).is_none_or(Value::is_null))
    {
        if !old[name].is_null() {
            patch.insert(name.clone(), Value::Null);
        }
    }
    for (name, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        match old.get(name) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                let inner = delta(old, value);
                if inner.as_object().is_none_or(|o| !o.is_empty()) {
                    patch.insert(name.clone(), inner);
                }
            }
            _ => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::view;
    use serde_json::json;

    /// RFC 7396, section 2.
    fn merge(target: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (name, value) in patch {
            if value.is_null() {
                target.as_object_mut().unwrap().remove(name);
            } else {
                merge(&mut target[name], value);
            }
        }
    }

    fn without_nulls(value: &Value) -> Value {
        match value {
            Value::Object(o) => {
                let some = o.iter().filter(|(_, v)| !v.is_null());
                Value::Object(some.map(|(k, v)| (k.clone(), without_nulls(v))).collect())
            }
            other => other.clone(),
        }
    }

    fn picture(view: View) -> Picture {
        let link = Link { answers: true, view };
        Picture {
            version: VERSION,
            links: [(link.view.link.clone(), link)].into(),
            ..Picture::default()
        }
    }

    #[test]
    fn a_delta_turns_one_picture_into_the_next() {
        let first = picture(view());
        let mut next = view();
        next.topics.remove(0);
        next.topics[0].delay_mean_ms = None;
        next.topics[0].priority = 1;
        next.peers[0].unheard = Some("check the cable".into());
        let (a, b) = (first.json(), picture(next).json());
        for (from, to) in [(&a, &b), (&b, &a), (&a, &a)] {
            let mut reached = without_nulls(from);
            merge(&mut reached, &delta(from, to));
            assert_eq!(reached, without_nulls(to));
        }
        assert_eq!(delta(&a, &a), json!({}));
        let id = view().topics[1].id();
        let changed = delta(&a, &b);
        let topics = &changed["links"]["robot"]["view"]["topics"];
        assert_eq!(topics[&id]["priority"], 1);
        assert!(topics[&id].get("delivered_hz").is_none(), "{topics}");
    }

    #[test]
    fn a_picture_survives_json() {
        let one = picture(view());
        let text = serde_json::to_string(&one).unwrap();
        let mut read: Picture = serde_json::from_str(&text).unwrap();
        // Made for people from the other fields.
        let link = read.links.get_mut("robot").unwrap();
        for (t, of) in link.view.topics.iter_mut().zip(&one.links["robot"].view.topics) {
            t.other_end.clone_from(&of.other_end);
        }
        assert_eq!(read, one);
    }
}
