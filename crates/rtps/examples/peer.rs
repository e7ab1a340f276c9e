//! A peer for nodes of ROS 2, driven by `peers.py`: it echoes topics, keeps samples for late readers, serves and calls `SetBool`, and
//! prints what it sees. It ends with its standard input.
//!
//! ```text
//! peer DOMAIN [TASK...]
//!   echo|TOPIC|TYPE|BACK|reliable|best      what comes goes back
//!   latch|TOPIC|TYPE|COUNT                  strings, kept for who comes late
//!   late|TOPIC|TYPE                         prints strings that were kept
//!   images|TOPIC|TYPE|COUNT|reliable|best   a megabyte 30 times a second, once a reader is there
//!   count|TOPIC|TYPE|reliable|best          counts what comes
//!   serve|SERVICE                           std_srvs/SetBool
//!   call|SERVICE|COUNT                      the same
//! ```

use rtps::{
    Durability, EndpointConfig, EntityId, Event, Guid, History, Node, Qos, Range, Reliability, Sample,
    SampleIdentity, TransportConfig, WriteOptions,
};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

enum Task {
    Echo(EntityId),
    Late,
    Count(u64),
    /// A writer of replies, and those whose reader is not matched yet: a client may ask before this end knows where it listens.
    Serve(EntityId, Vec<(Vec<u8>, SampleIdentity)>),
    Call {
        writer: EntityId,
        left: usize,
    },
}

struct Images {
    writer: EntityId,
    left: usize,
    next: Instant,
}

static ENDED: AtomicBool = AtomicBool::new(false);

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let domain = arguments.next().ok_or("DOMAIN is missing")?.parse()?;
    let transport = TransportConfig {
        domain,
        range: match std::env::var("RANGE").as_deref() {
            Ok("subnet") => Range::Subnet,
            _ => Range::Localhost,
        },
        receive_buffer: std::env::var("RECEIVE_BUFFER").ok().and_then(|b| b.parse().ok()),
        ..TransportConfig::default()
    };
    let node = Node::open(transport, |config| {
        config.user_data = b"enclave=/;".to_vec();
        config.name = "peer".to_owned();
        if let Some(rate) = std::env::var("RATE").ok().and_then(|r| r.parse().ok()) {
            config.loopback.rate = rate;
        }
    })?;
    println!("up {}", node.guid());
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ENDED.store(true, Relaxed);
    });
    let mut tasks = BTreeMap::new();
    let mut images = Vec::new();
    for argument in arguments {
        let words: Vec<_> = argument.split('|').collect();
        match words[..] {
            ["echo", topic, of, back, how] => {
                let writer = node.add_writer(endpoint(back, of, qos(how, 10)))?;
                let reader = node.add_reader(endpoint(topic, of, qos(how, 10)))?;
                tasks.insert(reader, Task::Echo(writer));
            }
            ["latch", topic, of, count] => {
                let writer = node.add_writer(endpoint(topic, of, latched()))?;
                for n in 0..count.parse::<usize>()? {
                    node.write(writer, string(&format!("kept {n}")), WriteOptions::default())?;
                }
            }
            ["late", topic, of] => {
                let reader = node.add_reader(endpoint(topic, of, latched()))?;
                tasks.insert(reader, Task::Late);
            }
            ["count", topic, of, how] => {
                let reader = node.add_reader(endpoint(topic, of, qos(how, 10)))?;
                tasks.insert(reader, Task::Count(0));
            }
            ["images", topic, of, count, how] => images.push(Images {
                writer: node.add_writer(endpoint(topic, of, qos(how, 10)))?,
                left: count.parse()?,
                next: Instant::now(),
            }),
            ["serve", service] => {
                let (request, reply) = service_topics(service);
                let writer = node.add_writer(reply)?;
                tasks.insert(node.add_reader(request)?, Task::Serve(writer, Vec::new()));
            }
            ["call", service, count] => {
                let (request, reply) = service_topics(service);
                let writer = node.add_writer(request)?;
                let left = count.parse()?;
                tasks.insert(node.add_reader(reply)?, Task::Call { writer, left });
            }
            _ => return Err(format!("{argument:?} is no task").into()),
        }
    }
    while !ENDED.load(Relaxed) {
        for each in &mut images {
            publish(&node, each)?;
        }
        if let Some(event) = node.next_event(Duration::from_millis(5)) {
            on_event(&node, &mut tasks, event)?;
        }
    }
    println!("held {} {:?}", node.held(), node.counters());
    Ok(())
}

fn endpoint(topic: &str, of: &str, qos: Qos) -> EndpointConfig {
    let mut out = EndpointConfig::new(topic, of, qos);
    out.user_data =
        b"typehash=RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18;".to_vec();
    out
}

fn qos(how: &str, depth: u32) -> Qos {
    Qos {
        reliability: if how == "reliable" {
            Reliability::Reliable
        } else {
            Reliability::BestEffort
        },
        history: History::KeepLast(depth),
        ..Qos::writer()
    }
}

fn latched() -> Qos {
    Qos {
        durability: Durability::TransientLocal,
        ..qos("reliable", 100)
    }
}

fn service_topics(service: &str) -> (EndpointConfig, EndpointConfig) {
    let topic = |prefix: &str, what: &str| {
        endpoint(
            &format!("{prefix}/{service}{what}"),
            &format!(
                "std_srvs::srv::dds_::SetBool_{}_",
                if what == "Request" { what } else { "Response" }
            ),
            qos("reliable", 10),
        )
    };
    (topic("rq", "Request"), topic("rr", "Reply"))
}

/// `std_msgs/String` in CDR.
fn string(text: &str) -> Vec<u8> {
    let mut out = vec![0, 1, 0, 0];
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    out
}

fn text(payload: &[u8]) -> String {
    let len = payload
        .get(4..8)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes) as usize;
    let bytes = payload.get(8..(8 + len).saturating_sub(1)).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// `uint32 number`, `sequence<octet>` of a megabyte.
fn publish(node: &Node, images: &mut Images) -> Result<(), Failure> {
    if images.left == 0 || Instant::now() < images.next {
        return Ok(());
    }
    if node.matched(images.writer).is_empty() {
        images.next = Instant::now() + Duration::from_millis(500);
        return Ok(());
    }
    let mut out = vec![0, 1, 0, 0];
    out.extend_from_slice(&(images.left as u32).to_le_bytes());
    out.extend_from_slice(&1_000_000u32.to_le_bytes());
    out.resize(out.len() + 1_000_000, images.left as u8);
    node.write(images.writer, out, WriteOptions::default())?;
    images.left -= 1;
    images.next += Duration::from_nanos(33_333_333);
    if images.left == 0 {
        println!("images done");
    }
    Ok(())
}

fn on_event(node: &Node, tasks: &mut BTreeMap<EntityId, Task>, event: Event) -> Result<(), Failure> {
    match event {
        Event::Participant(data) => println!("participant {} {} {:?}", data.guid, data.vendor, data.name),
        Event::Endpoint(data) => println!(
            "endpoint {} {} {} {}",
            data.guid,
            data.topic,
            data.type_name,
            String::from_utf8_lossy(&data.user_data)
        ),
        Event::Sample(sample) => {
            if let Some(task) = tasks.get_mut(&sample.reader) {
                on_sample(node, task, sample)?;
            }
        }
        Event::Matched { local, remote } => {
            println!("matched {local} {remote}");
            for task in tasks.values_mut() {
                if let Task::Serve(writer, held) = task {
                    answer(node, *writer, held)?;
                }
            }
            if let Some(Task::Call { writer, left }) = tasks.get_mut(&local)
                && *left > 0
            {
                // Its server may not have found the other half yet.
                std::thread::sleep(Duration::from_millis(500));
                request(node, *writer, local, *left % 2 == 1)?;
            }
        }
        other => println!("{other:?}"),
    }
    Ok(())
}

fn request(node: &Node, writer: EntityId, reader: EntityId, value: bool) -> Result<(), Failure> {
    let replies = Guid::new(node.guid().prefix, reader);
    let options = WriteOptions {
        related: Some(SampleIdentity {
            writer: replies,
            sequence: SampleIdentity::UNKNOWN,
        }),
        ..WriteOptions::default()
    };
    let written = node.write(writer, vec![0, 1, 0, 0, u8::from(value)], options)?;
    println!("request {}", written.sequence);
    Ok(())
}

/// Writes the replies whose readers are matched.
fn answer(node: &Node, writer: EntityId, held: &mut Vec<(Vec<u8>, SampleIdentity)>) -> Result<(), Failure> {
    let matched = node.matched(writer);
    let known = |asked: &SampleIdentity| asked.writer.entity.is_writer() || matched.contains(&asked.writer);
    for (reply, asked) in held.extract_if(.., |(_, asked)| known(asked)) {
        let options = WriteOptions {
            related: Some(asked),
            ..WriteOptions::default()
        };
        node.write(writer, reply, options)?;
    }
    Ok(())
}

fn on_sample(node: &Node, task: &mut Task, sample: Sample) -> Result<(), Failure> {
    match task {
        Task::Echo(writer) => {
            let options = WriteOptions {
                source_timestamp: sample.source_timestamp,
                ..WriteOptions::default()
            };
            node.write(*writer, sample.payload, options)?;
        }
        Task::Late => println!("late {}", text(&sample.payload)),
        Task::Count(n) => {
            *n += 1;
            println!("count {n} {}", sample.payload.len());
        }
        Task::Serve(writer, held) => {
            let value = sample.payload.get(4).copied().unwrap_or(0);
            let asked = SampleIdentity {
                // Fast DDS' client names the reader of its reply.
                writer: sample.related.map_or(sample.writer, |r| r.writer),
                sequence: sample.sequence,
            };
            println!("served {value} {asked:?}");
            let mut reply = vec![0, 1, 0, 0, value, 0, 0, 0];
            reply.extend_from_slice(&string("done")[4..]);
            held.push((reply, asked));
            answer(node, *writer, held)?;
        }
        Task::Call { writer, left } => {
            let related = sample.related.map(|r| r.sequence);
            println!("answer {:?} to {related:?}", sample.payload.get(4));
            *left = left.saturating_sub(1);
            if *left > 0 {
                request(node, *writer, sample.reader, *left % 2 == 1)?;
            }
        }
    }
    Ok(())
}
