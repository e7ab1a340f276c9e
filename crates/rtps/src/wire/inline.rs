//! The inline QoS of a sample (DDSI-RTPS 2.5, sections 8.7.4 and 9.6.4).

use super::bytes::Reader;
use super::error::WireError;
use super::ids::{Guid, SampleIdentity};
use super::parameters::{Parameters, pid, put, put_sentinel, unknown};

/// The parameters read from a sample's inline QoS. The rest are policies, which discovery has already announced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InlineQos {
    /// The instance is disposed of, unregistered by its writer, or both.
    pub(crate) gone: bool,
    pub(crate) key_hash: Option<[u8; 16]>,
    /// The request that this answers.
    pub(crate) related: Option<SampleIdentity>,
    /// The sample has an unknown parameter that must be understood, so it is skipped.
    pub(crate) foreign: bool,
}

/// `PID_STATUS_INFO`: disposed and unregistered.
const GONE: u8 = 0x03;

impl InlineQos {
    /// Reads parameters up to their sentinel. An unknown one that must be understood makes the sample unreadable.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut out = InlineQos::default();
        let mut parameters = Parameters::new(r);
        while let Some((id, mut value)) = parameters.next()? {
            match id {
                // Four octets in this order, regardless of the byte order (section 9.6.4.9).
                pid::STATUS_INFO => out.gone = value.array::<4>()?[3] & GONE != 0,
                pid::KEY_HASH => out.key_hash = Some(value.array()?),
                pid::RELATED_SAMPLE_IDENTITY | pid::FAST_DDS_RELATED_SAMPLE_IDENTITY => {
                    let related = SampleIdentity::read(&mut value)?;
                    out.related = Some(related).filter(|r| r.writer != Guid::default());
                }
                _ => out.foreign |= unknown(id).is_err(),
            }
        }
        Ok(out)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == InlineQos::default()
    }

    /// Writes the related identity under both of its parameter IDs: older versions of Fast DDS know only their own.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        if let Some(hash) = self.key_hash {
            put(out, pid::KEY_HASH, |out| out.extend_from_slice(&hash));
        }
        if self.gone {
            put(out, pid::STATUS_INFO, |out| {
                out.extend_from_slice(&[0, 0, 0, GONE])
            });
        }
        if let Some(related) = self.related {
            for id in [
                pid::RELATED_SAMPLE_IDENTITY,
                pid::FAST_DDS_RELATED_SAMPLE_IDENTITY,
            ] {
                put(out, id, |out| related.put(out));
            }
        }
        put_sentinel(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_key_and_request_make_the_round_trip() {
        let related = Some(SampleIdentity {
            writer: Guid::from_bytes([7; 16]),
            sequence: 1 << 33,
        });
        for inline in [
            InlineQos::default(),
            InlineQos {
                gone: true,
                key_hash: Some([9; 16]),
                related,
                foreign: false,
            },
            InlineQos {
                related,
                ..InlineQos::default()
            },
        ] {
            let mut out = Vec::new();
            inline.put(&mut out);
            let read = |bytes: &[u8]| InlineQos::read(&mut Reader::new(bytes, true));
            assert_eq!(read(&out), Ok(inline));
            (0..out.len()).for_each(|n| assert!(read(&out[..n]).is_err()));
        }
    }

    #[test]
    fn either_number_of_the_request_is_read() {
        for id in [0x0083u16, 0x800f] {
            let mut bytes = [id.to_be_bytes(), [0, 24]].concat();
            bytes.extend_from_slice(&[5; 16]);
            bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 42]);
            // An unknown parameter in between, and the sentinel.
            bytes.extend_from_slice(&[0x80, 0x99, 0, 4, 1, 2, 3, 4, 0, 1, 0, 0]);
            let read = InlineQos::read(&mut Reader::new(&bytes, false)).expect("inline QoS");
            assert_eq!(
                (read.related.map(|r| r.sequence), read.foreign),
                (Some(42), false)
            );
        }
    }
}
