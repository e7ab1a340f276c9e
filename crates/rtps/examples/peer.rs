//! A peer for nodes of ROS 2, driven by `peers.py`. It echoes topics, keeps samples for late readers, serves and calls
//! `SetBool`, and prints what it sees. It exits when its standard input ends.
//!
//! ```text
//! peer DOMAIN [TASK...]
//!   echo|TOPIC|TYPE|BACK|reliable|best      sends received samples back
//!   latch|TOPIC|TYPE|COUNT                  writes strings and keeps them for late joiners
//!   late|TOPIC|TYPE                         prints strings that were kept
//!   images|TOPIC|TYPE|COUNT|reliable|best   writes a megabyte 30 times a second, once there is a reader
//!   count|TOPIC|TYPE|reliable|best          counts received samples
//!   serve|SERVICE|HOW                       serves std_srvs/SetBool; HOW is how requests are numbered: fast or cyclone
//!   call|SERVICE|COUNT|HOW                  calls the same service
//!   node|NAME                               announces the ROS 2 node that the endpoints before it belong to
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
    Serve(Server),
    Call(Client),
}

/// How requests and replies are correlated.
#[derive(Clone, Copy, PartialEq)]
enum Numbered {
    /// Through inline QoS.
    Fast,
    /// Through 16 bytes in the payload, after its encapsulation: half of the client's GUID, and a number.
    Cyclone,
}

struct Server {
    writer: EntityId,
    numbered: Numbered,
    /// Replies whose reader is not matched yet: a client may send a request before this end knows its reply reader.
    held: Vec<(Vec<u8>, SampleIdentity)>,
}

struct Client {
    writer: EntityId,
    numbered: Numbered,
    asked: u64,
    left: usize,
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
            ["serve", service, how] => {
                let (request, reply) = service_topics(service);
                let server = Server {
                    writer: node.add_writer(reply)?,
                    numbered: numbered(how),
                    held: Vec::new(),
                };
                tasks.insert(node.add_reader(request)?, Task::Serve(server));
            }
            ["call", service, count, how] => {
                let (request, reply) = service_topics(service);
                let client = Client {
                    writer: node.add_writer(request)?,
                    numbered: numbered(how),
                    asked: 0,
                    left: count.parse()?,
                };
                tasks.insert(node.add_reader(reply)?, Task::Call(client));
            }
            ["node", name] => {
                let writers = tasks.values().filter_map(|task| match task {
                    Task::Echo(writer) => Some(*writer),
                    Task::Serve(server) => Some(server.writer),
                    Task::Call(client) => Some(client.writer),
                    Task::Late | Task::Count(_) => None,
                });
                let info = entities(&node, name, tasks.keys().copied(), writers);
                let of = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
                let kept = Qos {
                    durability: Durability::TransientLocal,
                    ..qos("reliable", 1)
                };
                let writer = node.add_writer(endpoint("ros_discovery_info", of, kept))?;
                node.write(writer, info, WriteOptions::default())?;
            }
            _ => return Err(format!("unknown task {argument:?}").into()),
        }
    }
    while !ENDED.load(Relaxed) {
        for (reader, task) in &mut tasks {
            // A server drops the reply to a client that it does not know.
            if let Task::Call(client) = task
                && client.asked == 0
                && !node.mutual(*reader).is_empty()
                && !node.mutual(client.writer).is_empty()
            {
                client.request(&node, *reader)?;
            }
        }
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

fn numbered(how: &str) -> Numbered {
    if how == "cyclone" {
        Numbered::Cyclone
    } else {
        Numbered::Fast
    }
}

/// `std_msgs/String` in CDR.
fn string(text: &str) -> Vec<u8> {
    let mut out = vec![0, 1, 0, 0];
    put_string(&mut out, text);
    out
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len() + 1);
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(&(length as u32).to_le_bytes());
}

/// `rmw_dds_common/ParticipantEntitiesInfo` of one node, in CDR.
fn entities(
    node: &Node,
    name: &str,
    readers: impl Iterator<Item = EntityId>,
    writers: impl Iterator<Item = EntityId>,
) -> Vec<u8> {
    let guids = |out: &mut Vec<u8>, all: Vec<EntityId>| {
        put_length(out, all.len());
        for entity in all {
            out.extend_from_slice(&Guid::new(node.guid().prefix, entity).to_bytes());
        }
    };
    let mut out = vec![0, 1, 0, 0];
    out.extend_from_slice(&node.guid().to_bytes());
    put_length(&mut out, 1);
    put_string(&mut out, "/");
    put_string(&mut out, name);
    guids(&mut out, readers.collect());
    guids(&mut out, writers.collect());
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
                if let Task::Serve(server) = task {
                    server.answer(node)?;
                }
            }
        }
        other => println!("{other:?}"),
    }
    Ok(())
}

/// How the client of rmw_cyclonedds_cpp identifies itself.
const CLIENT: [u8; 8] = *b"ourselfs";

impl Client {
    fn request(&mut self, node: &Node, reader: EntityId) -> Result<(), Failure> {
        self.asked += 1;
        let mut payload = vec![0, 1, 0, 0];
        let mut options = WriteOptions::default();
        match self.numbered {
            Numbered::Fast => {
                options.related = Some(SampleIdentity {
                    writer: Guid::new(node.guid().prefix, reader),
                    sequence: SampleIdentity::UNKNOWN,
                });
            }
            Numbered::Cyclone => {
                payload.extend_from_slice(&CLIENT);
                payload.extend_from_slice(&self.asked.to_le_bytes());
            }
        }
        payload.push(u8::from(self.left % 2 == 1));
        node.write(self.writer, payload, options)?;
        Ok(())
    }

    fn on_reply(&mut self, node: &Node, sample: &Sample) -> Result<(), Failure> {
        let (related, body) = match self.numbered {
            Numbered::Fast => (sample.related.map(|r| r.sequence), 4),
            Numbered::Cyclone => {
                if sample.payload.get(4..12) != Some(&CLIENT) {
                    return Ok(());
                }
                let number = sample.payload.get(12..20).and_then(|b| b.try_into().ok());
                (number.map(i64::from_le_bytes), 20)
            }
        };
        println!("answer {:?} to {related:?}", sample.payload.get(body));
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            self.request(node, sample.reader)?;
        }
        Ok(())
    }
}

impl Server {
    fn on_request(&mut self, node: &Node, sample: &Sample) -> Result<(), Failure> {
        let asked = SampleIdentity {
            // The client of Fast DDS names the reader of its reply.
            writer: sample.related.map_or(sample.writer, |r| r.writer),
            sequence: sample.sequence,
        };
        let mut reply = vec![0, 1, 0, 0];
        if self.numbered == Numbered::Cyclone {
            reply.extend_from_slice(sample.payload.get(4..20).ok_or("a request without a header")?);
        }
        reply.push(sample.payload.get(reply.len()).copied().unwrap_or(0));
        put_string(&mut reply, "done");
        self.held.push((reply, asked));
        self.answer(node)
    }

    /// Writes the replies whose readers are matched.
    fn answer(&mut self, node: &Node) -> Result<(), Failure> {
        let matched = node.matched(self.writer);
        let numbered = self.numbered;
        let known = |asked: &SampleIdentity| match numbered {
            Numbered::Fast => asked.writer.entity.is_writer() || matched.contains(&asked.writer),
            Numbered::Cyclone => matched.iter().any(|g| g.prefix == asked.writer.prefix),
        };
        for (reply, asked) in self.held.extract_if(.., |(_, asked)| known(asked)) {
            let options = WriteOptions {
                related: (numbered == Numbered::Fast).then_some(asked),
                ..WriteOptions::default()
            };
            node.write(self.writer, reply, options)?;
        }
        Ok(())
    }
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
        Task::Serve(server) => server.on_request(node, &sample)?,
        Task::Call(client) => client.on_reply(node, &sample)?,
    }
    Ok(())
}
