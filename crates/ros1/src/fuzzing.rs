//! Entry points of the fuzz targets. Not part of the interface.

use crate::body;
use crate::config::Config;
use crate::header::{Header, MAX_HEADER};
use crate::http::Parsed;
use crate::import::{self, Imported, Nimbro};
use crate::master::State;
use crate::peers::{Peers, Share};
use crate::xmlrpc::{self, Response};
use schema::{Flavour, Registry, Schema};
use std::sync::{Arc, LazyLock};

/// Reads a connection header, which must survive a round trip.
pub fn header(data: &[u8]) {
    match Header::decode(data) {
        Ok(header) => {
            let mut again = &header.encode()[..];
            assert_eq!(Header::read(&mut again, MAX_HEADER).ok(), Some(header));
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1),
    }
    let _ = Header::read(&mut &data[..], MAX_HEADER);
}

/// Reads a call and an answer, as HTTP and as XML, which must survive a round trip.
pub fn xml(data: &[u8]) {
    let _ = Parsed::request(data);
    let _ = Parsed::response(data);
    if let Ok(call) = xmlrpc::call(data) {
        let again = xmlrpc::write_call(&call.method, &call.params);
        let params = xmlrpc::call(again.as_bytes()).map(|c| c.params.len());
        assert_eq!(params.ok(), Some(call.params.len()));
    }
    if let Ok(Response::Value(value)) = xmlrpc::response(data) {
        let _ = State::read(&value);
        assert!(xmlrpc::response(xmlrpc::write_response(&value).as_bytes()).is_ok());
    }
}

/// A share with room for the longest message.
fn share() -> Share {
    let peers = Arc::new(Peers::new(&[], 1 << 30, 1 << 30));
    Share::test(&peers)
}

static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let registry = Registry::new(Flavour::Ros1);
    let names = [
        "sensor_msgs/Image",
        "sensor_msgs/PointCloud2",
        "sensor_msgs/LaserScan",
        "tf2_msgs/TFMessage",
    ];
    names
        .iter()
        .filter_map(|name| registry.schema(name).ok())
        .collect()
});

/// Reads a message as from a socket. The first byte selects the type, the next four are the length.
pub fn message(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let Some(schema) = SCHEMAS.get(usize::from(*first) % SCHEMAS.len().max(1)) else {
        return;
    };
    let schema = schema.clone().with_threshold(usize::from(first >> 4));
    let Some((len, mut stream)) = rest.split_first_chunk::<4>() else {
        return;
    };
    let Ok(len) = Config::default().max_message().check(u32::from_le_bytes(*len)) else {
        return;
    };
    let whole = stream
        .get(..len)
        .map(|bytes| (bytes, schema.split_ros1(bytes).is_ok()));
    // Bounded by the available input, since memory is not under test here.
    let mut asked = None;
    let read = body::read(
        &mut stream,
        len,
        &schema,
        &mut Vec::new(),
        &mut share(),
        |control, parts| {
            asked = Some((control, parts.to_vec()));
            Err(bus::LoanError::Forked)
        },
    );
    match (whole, asked) {
        (Some((bytes, true)), Some((control, parts))) => {
            assert!(read.is_ok());
            let sizes = schema.measure_ros1(bytes).expect("it was split");
            assert_eq!((control, parts), (sizes.control_len, sizes.part_lens));
        }
        (Some((_, true)), None) => panic!("a good message was refused"),
        (None, _) => assert!(read.is_err()),
        _ => {}
    }
}

/// Imports a configuration of Pound or nimbro_network: the first byte selects which. The resulting files must be
/// readable.
pub fn import(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    // A file that names another gets itself.
    let mut load = |_: &str, _: &str| Ok(("again.yaml".to_owned(), text.to_string()));
    let made = match first % 4 {
        0 => import::pound(("config.h", &text), None),
        1 => import::pound(("config.h", POUND), Some(("config.yaml", &text))),
        2 => import::nimbro(
            Nimbro {
                there: ("a.launch", &text),
                back: None,
            },
            &mut load,
        ),
        _ => import::nimbro(
            Nimbro {
                there: ("a.yaml", &text),
                back: None,
            },
            &mut load,
        ),
    };
    if let Ok(Imported { hosts, .. }) = made {
        for host in hosts {
            if let Err(error) = Config::parse(&host.bridge, "bridge.yaml") {
                panic!("{error}\n{}", host.bridge);
            }
        }
    }
}

const POUND: &str = "TOPIC(std_msgs::String, \"/a\", 0, \"1\", 1, 1, 1)";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Runs each seed as it is, cut at every position, and with random changes: 2,000 times, or as often as makes
    /// `PACKETS` in total.
    fn replay(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let files: Vec<_> = std::fs::read_dir(folder).expect("the corpus is there").collect();
        assert!(files.len() > 2, "{target} has no corpus");
        let rounds = std::env::var("PACKETS").map_or(2_000, |n| {
            n.parse::<usize>().expect("PACKETS is a number") / files.len()
        });
        // xorshift64
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        };
        for entry in files {
            let seed = std::fs::read(entry.expect("a seed").path()).expect("a seed");
            check(&seed);
            (0..seed.len()).for_each(|n| check(&seed[..n]));
            for _ in 0..rounds {
                let mut mutant = seed.clone();
                for _ in 0..=random() % 3 {
                    let at = random() as usize % mutant.len();
                    match random() % 4 {
                        0 => mutant[at] = random() as u8,
                        1 => mutant.iter_mut().skip(at).take(4).for_each(|b| *b = 0xff),
                        2 => drop(mutant.splice(at..at, seed.iter().copied().skip(at / 2).take(9))),
                        _ => drop(mutant.splice(at..(at + 5).min(mutant.len()), [b'<'])),
                    }
                }
                check(&mutant);
            }
        }
    }

    #[test]
    fn headers_and_their_mutants_are_read_or_refused() {
        replay("ros1_header", header);
    }

    #[test]
    fn calls_answers_and_their_mutants_are_read_or_refused() {
        replay("ros1_xml", xml);
    }

    #[test]
    fn messages_and_their_mutants_are_read_or_refused() {
        replay("ros1_message", message);
    }

    #[test]
    fn configurations_of_others_and_their_mutants_are_read_or_refused() {
        replay("ros1_import", import);
    }
}
