//! Data from other DDS participants, for the fuzz targets.

use super::entities::Entities;
use super::service;
use super::{mark, names, seen};
use crate::wire::Caller;
use bridge::nodes::Kind;
use rtps::{EndpointData, EntityId, Guid, GuidPrefix, Qos, Sample, SampleIdentity};

pub(crate) fn entities(data: &[u8]) {
    match Entities::decode(data) {
        Ok(read) => {
            let of = |n: &super::entities::Node| {
                16 * (n.readers.len() + n.writers.len()) + n.name.len() + n.namespace.len()
            };
            let size: usize = read.nodes.iter().map(of).sum();
            assert!(size <= data.len());
            assert_eq!(Entities::decode(&read.encode()), Ok(read));
        }
        Err(error) => assert!(error.at <= data.len().next_multiple_of(4)),
    }
}

pub(crate) fn service(data: &[u8]) {
    let Some((first, payload)) = data.split_first() else {
        return;
    };
    let cyclone = first & 1 == 1;
    let writer = Guid::new(GuidPrefix([1; 12]), EntityId([0, 0, 1, 3]));
    // A request may name a reader of its own participant, of another, or none.
    let reader = Guid::new(GuidPrefix([1 + (first >> 2 & 1); 12]), EntityId([0, 0, 2, 4]));
    let sample = Sample {
        reader: EntityId([0, 0, 3, 4]),
        payload: payload.to_vec(),
        writer,
        sequence: 9,
        related: (first & 2 == 2).then_some(SampleIdentity {
            writer: reader,
            sequence: 7,
        }),
        source_timestamp: None,
    };
    if let Some((caller, body)) = service::request(&sample, cyclone) {
        let Caller { sender, reader, .. } = caller;
        assert_eq!(sender, super::id(writer));
        assert!(
            cyclone || reader[..12] == sender[..12],
            "a response goes to the sender of its request"
        );
        let answer = service::answer(caller, cyclone, body.clone());
        if cyclone {
            // The request names the recipient of its response, in this bridge's byte order.
            let again = Sample {
                payload: answer.payload,
                ..sample.clone()
            };
            let little = payload.get(1).is_some_and(|b| b & 1 == 1);
            if little {
                assert_eq!(service::request(&again, true), Some((caller, body)));
            }
        } else {
            assert_eq!(answer.payload, payload);
        }
    }
    let client = 0x0706_0504_0302_0100;
    if let Some((call, body)) = service::response(&sample, cyclone, [reader, writer], client) {
        assert_eq!(call < 0, cyclone, "numbers of both kinds are disjoint");
        assert!(body.len() <= payload.len());
    }
}

pub(crate) fn user_data(data: &[u8]) {
    let enclave = mark::enclave(data);
    assert!(stats::text::is_plain(&enclave) && enclave.len() <= bridge::nodes::MAX_TEXT);
    if let Some(mark) = mark::of(data) {
        assert_eq!(mark::of(&mark::user_data(mark)), Some(mark));
    }
    if let Some(hash) = names::hash_of(data) {
        assert_eq!(names::hash_of(&names::user_data(hash)), Some(hash));
    }
}

pub(crate) fn endpoint(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let mut lines = rest.splitn(3, |b| *b == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (topic, type_name, user_data) = (line(), line(), line());
    let entity = EntityId([0, 0, 1, if first & 1 == 1 { 3 } else { 4 }]);
    let announced = EndpointData {
        guid: Guid::new(GuidPrefix([1; 12]), entity),
        topic: String::from_utf8_lossy(topic).into_owned(),
        type_name: String::from_utf8_lossy(type_name).into_owned(),
        qos: Qos::writer(),
        user_data: user_data.to_vec(),
        unicast: Vec::new(),
    };
    let Some(seen) = seen(&announced) else { return };
    let what = &seen.what;
    for text in [&what.name, &what.type_name] {
        assert!(stats::text::is_plain(text) && text.len() <= bridge::nodes::MAX_TEXT);
    }
    let meaning = match seen.kind {
        Kind::Publisher | Kind::Subscription => names::Meaning::Topic(what.name.clone()),
        Kind::Client | Kind::Service => names::Meaning::Requests(what.name.clone()),
    };
    assert_eq!(names::topic(&meaning), announced.topic);
    assert!(names::dds_type(&what.type_name).is_some());
}
