//! Messages of a client of the Foxglove protocol. No I/O.

use crate::{JsonError, parse_json};
use serde_json::Value as Json;

/// Items of one message of a client.
const MAX_ITEMS: usize = 1024;
/// Length of a name or a text in bytes, except definitions.
const MAX_NAME: usize = 1024;

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    Subscribe(Vec<Wanted>),
    Unsubscribe(Vec<u32>),
    Advertise(Vec<ClientChannel>),
    Unadvertise(Vec<u32>),
    Publish {
        channel: u32,
        payload: Vec<u8>,
    },
    Call(Call),
    GetParameters {
        names: Vec<String>,
        id: Option<String>,
    },
    SetParameters {
        values: Vec<(String, Json)>,
        id: Option<String>,
    },
    WatchParameters(Vec<String>),
    UnwatchParameters(Vec<String>),
    WatchGraph(bool),
    FetchAsset {
        uri: String,
        request: u32,
    },
}

/// A topic that a client subscribes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) id: u32,
    pub(crate) channel: u32,
    /// Whether each message comes with the times at which the server handled it; an addition to the protocol.
    pub(crate) timed: bool,
}

/// A topic that a client wants to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientChannel {
    pub(crate) id: u32,
    pub(crate) topic: String,
    pub(crate) encoding: String,
    pub(crate) type_name: String,
    pub(crate) definition: Option<String>,
}

/// A request to a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) service: u32,
    pub(crate) id: u32,
    pub(crate) encoding: String,
    pub(crate) payload: Vec<u8>,
}

/// Why a message is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("the operation {0:?} is unknown")]
    Operation(String),
    #[error("the binary operation {0:?} is unknown")]
    Binary(Option<u8>),
    #[error("`{0}` is missing or has the wrong type")]
    Field(&'static str),
    #[error("more than {MAX_ITEMS} items in one message")]
    Many,
    #[error("a binary message is too short")]
    Short,
}

impl Message {
    pub(crate) fn text(text: &str) -> Result<Self, MessageError> {
        let json = parse_json(text.as_bytes())?;
        let id = || {
            json["id"]
                .as_str()
                .filter(|id| id.len() <= MAX_NAME)
                .map(str::to_owned)
        };
        Ok(match json["op"].as_str().unwrap_or_default() {
            "subscribe" => Message::Subscribe(list(&json, "subscriptions", |item| {
                Some(Wanted {
                    id: number(&item["id"])?,
                    channel: number(&item["channelId"])?,
                    timed: item["ropewalkTimes"] == true,
                })
            })?),
            "unsubscribe" => Message::Unsubscribe(list(&json, "subscriptionIds", number)?),
            "advertise" => Message::Advertise(list(&json, "channels", channel)?),
            "unadvertise" => Message::Unadvertise(list(&json, "channelIds", number)?),
            "getParameters" => Message::GetParameters {
                names: list(&json, "parameterNames", name)?,
                id: id(),
            },
            "setParameters" => Message::SetParameters {
                values: list(&json, "parameters", |item| {
                    Some((name(&item["name"])?, item["value"].clone()))
                })?,
                id: id(),
            },
            "subscribeParameterUpdates" => Message::WatchParameters(list(&json, "parameterNames", name)?),
            "unsubscribeParameterUpdates" => Message::UnwatchParameters(list(&json, "parameterNames", name)?),
            "subscribeConnectionGraph" => Message::WatchGraph(true),
            "unsubscribeConnectionGraph" => Message::WatchGraph(false),
            "fetchAsset" => Message::FetchAsset {
                uri: name(&json["uri"]).ok_or(MessageError::Field("uri"))?,
                request: number(&json["requestId"]).ok_or(MessageError::Field("requestId"))?,
            },
            other => return Err(MessageError::Operation(other.chars().take(40).collect())),
        })
    }

    pub(crate) fn binary(bytes: &[u8]) -> Result<Self, MessageError> {
        let (op, rest) = bytes.split_first().ok_or(MessageError::Binary(None))?;
        match op {
            1 => {
                let (channel, payload) = word(rest)?;
                let payload = payload.to_vec();
                Ok(Message::Publish { channel, payload })
            }
            2 => {
                let (service, rest) = word(rest)?;
                let (id, rest) = word(rest)?;
                let (len, rest) = word(rest)?;
                let (encoding, payload) = rest.split_at_checked(len as usize).ok_or(MessageError::Short)?;
                let encoding = std::str::from_utf8(encoding).map_err(|_| MessageError::Field("encoding"))?;
                Ok(Message::Call(Call {
                    service,
                    id,
                    encoding: encoding.chars().take(MAX_NAME).collect(),
                    payload: payload.to_vec(),
                }))
            }
            other => Err(MessageError::Binary(Some(*other))),
        }
    }
}

fn word(bytes: &[u8]) -> Result<(u32, &[u8]), MessageError> {
    let (word, rest) = bytes.split_first_chunk::<4>().ok_or(MessageError::Short)?;
    Ok((u32::from_le_bytes(*word), rest))
}

fn list<T>(
    json: &Json,
    field: &'static str,
    of: impl Fn(&Json) -> Option<T>,
) -> Result<Vec<T>, MessageError> {
    let items = json[field].as_array().ok_or(MessageError::Field(field))?;
    if items.len() > MAX_ITEMS {
        return Err(MessageError::Many);
    }
    items
        .iter()
        .map(|item| of(item).ok_or(MessageError::Field(field)))
        .collect()
}

fn number(json: &Json) -> Option<u32> {
    json.as_u64().and_then(|n| u32::try_from(n).ok())
}

fn name(json: &Json) -> Option<String> {
    json.as_str()
        .filter(|text| text.len() <= MAX_NAME)
        .map(str::to_owned)
}

fn channel(json: &Json) -> Option<ClientChannel> {
    Some(ClientChannel {
        id: number(&json["id"])?,
        topic: name(&json["topic"])?,
        encoding: name(&json["encoding"])?,
        type_name: name(&json["schemaName"])?,
        definition: json["schema"]
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        for (more, timed) in [("", false), (r#","ropewalkTimes":true"#, true)] {
            let text = format!(r#"{{"op":"subscribe","subscriptions":[{{"id":3,"channelId":7{more}}}]}}"#);
            let (id, channel) = (3, 7);
            let wanted = vec![Wanted { id, channel, timed }];
            assert_eq!(Message::text(&text).unwrap(), Message::Subscribe(wanted));
        }
        let text = r#"{"op":"fetchAsset","uri":"package://a/b","requestId":1}"#;
        assert!(matches!(
            Message::text(text),
            Ok(Message::FetchAsset { request: 1, .. })
        ));
        let call = Message::binary(&[2, 1, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, b'r', b'o', b's', b'1', 5]);
        let expected = Call {
            service: 1,
            id: 9,
            encoding: "ros1".into(),
            payload: vec![5],
        };
        assert_eq!(call.unwrap(), Message::Call(expected));
        let publish = Message::binary(&[1, 2, 0, 0, 0, 7, 8]).unwrap();
        let payload = vec![7, 8];
        assert_eq!(publish, Message::Publish { channel: 2, payload });
    }

    #[test]
    fn malformed_messages_are_refused_in_one_line() {
        let many = vec!["1"; MAX_ITEMS + 1].join(",");
        for text in [
            "",
            "[]",
            r#"{"op":"nonsense\n"}"#,
            r#"{"op":"subscribe","subscriptions":[{"id":-1,"channelId":7}]}"#,
            r#"{"op":"unsubscribe"}"#,
            &format!(r#"{{"op":"unsubscribe","subscriptionIds":[{many}]}}"#),
            &"[".repeat(100_000),
        ] {
            let error = Message::text(text).unwrap_err().to_string();
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        for bytes in [
            &[][..],
            &[9],
            &[1, 2],
            &[2, 1, 0, 0, 0, 9, 0, 0, 0, 255, 255, 255, 255, 1],
        ] {
            assert!(Message::binary(bytes).is_err());
        }
    }
}
