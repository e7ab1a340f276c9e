//! The kinds of telemetry that a robot sends, and the latest value of each.

use super::core::Core;
use crate::clock::now;
use crate::kind::TelemetryKind;
use crate::sync::{lock, read, write};
use crate::transport::{Stream, TransportError, Wire};
use crate::{telemetry, types};
use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};

/// Maximum number of kinds that one robot may register, so that its welcome fits into every transport's frames.
const MOST: usize = 512;

/// By number, in the order of registration: the first has number 1.
#[derive(Default)]
pub(crate) struct Streams(RwLock<Vec<Arc<TelemetryStream>>>);

/// One kind of telemetry.
pub(crate) struct TelemetryStream {
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    v6: Option<u8>,
    priority: u8,
    on_request: bool,
    channels: Mutex<BTreeMap<u8, Latest>>,
}

#[derive(Default)]
struct Latest {
    /// Empty if the user gave none.
    name: String,
    sequence: u64,
    body: Option<Bytes>,
}

impl TelemetryStream {
    fn channel(&self, channel: u8) -> Stream<'static> {
        Stream {
            kind: self.name,
            channel,
            priority: self.priority,
        }
    }

    pub(crate) fn latest(&self, channel: u8) -> Option<Bytes> {
        lock(&self.channels).get(&channel)?.body.clone()
    }

    /// Returns numbers and names of the channels that have a name.
    pub(crate) fn named_channels(&self) -> Vec<(u8, String)> {
        let channels = lock(&self.channels);
        channels
            .iter()
            .filter(|c| !c.1.name.is_empty())
            .map(|(n, c)| (*n, c.name.clone()))
            .collect()
    }
}

impl Streams {
    pub(crate) fn all(&self) -> Vec<Arc<TelemetryStream>> {
        read(&self.0).clone()
    }

    pub(crate) fn get(&self, number: u32) -> Option<Arc<TelemetryStream>> {
        read(&self.0)
            .get(usize::try_from(number.checked_sub(1)?).ok()?)
            .cloned()
    }

    pub(crate) fn of_v6(&self, number: u8) -> Option<Arc<TelemetryStream>> {
        read(&self.0).iter().find(|t| t.v6 == Some(number)).cloned()
    }

    /// Registers a kind, unless it is registered already.
    pub(crate) fn register<K: TelemetryKind>(&self) -> Result<Arc<TelemetryStream>, TransportError> {
        self.register_kind(&telemetry::Entry::of::<K>())
    }

    fn register_kind(&self, kind: &telemetry::Entry) -> Result<Arc<TelemetryStream>, TransportError> {
        if let Some(stream) = read(&self.0).iter().find(|t| t.name == kind.name) {
            return Ok(stream.clone());
        }
        let mut all = write(&self.0);
        if let Some(stream) = all.iter().find(|t| t.name == kind.name) {
            return Ok(stream.clone());
        }
        if all.len() >= MOST {
            return Err(TransportError::Setup(format!(
                "{MOST} kinds of telemetry are already registered, the limit"
            )));
        }
        let stream = Arc::new(TelemetryStream {
            name: kind.name,
            number: all.len() as u32 + 1,
            v6: kind.v6,
            priority: kind.priority,
            on_request: kind.on_request,
            channels: Mutex::default(),
        });
        all.push(stream.clone());
        Ok(stream)
    }
}

impl Core {
    /// Announces a kind, to controllers that ask and to transports.
    pub(crate) fn tells<K: TelemetryKind>(&self) -> Result<(), TransportError> {
        let stream = self.streams.register::<K>()?;
        let ends = self.ends.iter().filter(|end| end.carries.telemetry());
        for end in ends.filter(|_| !stream.on_request) {
            end.end.announce(stream.channel(0))?;
        }
        Ok(())
    }

    pub(crate) fn set<K: TelemetryKind>(&self, channel: u8, body: &K::Body) -> Result<(), TransportError> {
        self.set_kind(&telemetry::Entry::of::<K>(), channel, body.encode_to_vec().into())
    }

    pub(crate) fn set_kind(
        &self,
        kind: &telemetry::Entry,
        channel: u8,
        body: Bytes,
    ) -> Result<(), TransportError> {
        let stream = self.streams.register_kind(kind)?;
        let sequence = {
            let mut channels = lock(&stream.channels);
            let latest = channels.entry(channel).or_default();
            latest.sequence += 1;
            latest.body = Some(body.clone());
            latest.sequence
        };
        if stream.on_request {
            return Ok(());
        }
        let mut ends = self.ends.iter().filter(|end| end.carries.telemetry());
        if !self.started.load(Ordering::Acquire) {
            // The robot is not visible before it starts; from then on, controllers can fetch the value.
            return ends.try_for_each(|end| end.end.announce(stream.channel(channel)));
        }
        let now = now();
        self.counters.sent(stream.name, body.len(), now);
        let (mut own, mut v6) = (None, None);
        let mut result = Ok(());
        for end in ends {
            let frame = match end.end.wire() {
                Wire::Own => &*own.get_or_insert_with(|| {
                    own_frame(self.run, now.as_nanos(), stream.number, channel, sequence, &body)
                }),
                Wire::V6 => {
                    let Some(number) = stream.v6 else { continue };
                    &*v6.get_or_insert_with(|| [&[number, channel], &body[..]].concat())
                }
            };
            if let Err(e) = end.end.publish(stream.channel(channel), frame) {
                self.counters.dropped("not_published", 1);
                result = Err(e);
            }
        }
        result
    }

    /// Returns the number of a channel by its name, and adds it if it is unknown. `None`: 255 channels have names
    /// already.
    pub(crate) fn channel<K: TelemetryKind>(&self, name: &str) -> Result<Option<u8>, TransportError> {
        let stream = self.streams.register::<K>()?;
        let free = {
            let mut channels = lock(&stream.channels);
            if let Some((number, _)) = channels.iter().find(|(_, c)| c.name == name) {
                return Ok(Some(*number));
            }
            let is_free = |n: &u8| {
                channels
                    .get(n)
                    .is_none_or(|c| c.name.is_empty() && c.sequence == 0)
            };
            let Some(free) = (1..=u8::MAX).find(is_free) else {
                return Ok(None);
            };
            channels.entry(free).or_default().name = name.to_owned();
            free
        };
        // Peers of version 6 request these definitions.
        let of = |stream: &TelemetryStream| -> Vec<types::ChannelDefinition> {
            let Some(number) = stream.v6 else {
                return Vec::new();
            };
            let definition = |(channel, name)| types::ChannelDefinition {
                name,
                messagetype: number.into(),
                channelno: u32::from(channel),
            };
            stream.named_channels().into_iter().map(definition).collect()
        };
        let channel = self.streams.all().iter().flat_map(|stream| of(stream)).collect();
        self.set::<telemetry::ChannelsDefinition>(0, &types::ChannelsDefinition { channel })?;
        Ok(Some(free))
    }
}

/// Builds a telemetry frame of Ropewalk's own wire with one copy of its body, as [`Telemetry`](crate::own::Telemetry)
/// encodes it.
fn own_frame(run: u64, stamp: u64, number: u32, channel: u8, sequence: u64, body: &Bytes) -> Vec<u8> {
    const BODY: u32 = 6;
    let head = crate::own::Telemetry {
        run,
        stamp,
        number,
        channel: channel.into(),
        sequence,
        body: Bytes::new(),
    };
    let len = head.encoded_len() + key_len(BODY) + encoded_len_varint(body.len() as u64) + body.len();
    let mut frame = Vec::with_capacity(len);
    head.encode_raw(&mut frame);
    if !body.is_empty() {
        encode_key(BODY, WireType::LengthDelimited, &mut frame);
        encode_varint(body.len() as u64, &mut frame);
        frame.extend_from_slice(body);
    }
    frame
}
