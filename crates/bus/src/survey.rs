//! Who is on the bus: asks every endpoint in the runtime folder.

use crate::bus::OpenError;
use crate::config::BusConfig;
use crate::detail::EndpointDetail;
use crate::folder::Folder;
use crate::frame::{Frame, Hello, Info, MAX_INFO, Role};
use crate::sys::Variant;
use crate::sys::doorbell::wait_readable;
use crate::sys::process::program;
use crate::sys::socket::{Received, Socket};
use crate::topic::{EndpointInfo, TopicInfo};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Asks all, then hears all, so that a silent one costs the others nothing but the timeout's rest.
pub(crate) fn topics(
    folder: &Folder,
    config: &BusConfig,
    timeout: Duration,
) -> Result<Vec<TopicInfo>, OpenError> {
    let deadline = Instant::now().checked_add(timeout);
    let all = folder.all().map_err(|source| OpenError::Dir {
        dir: config.runtime_dir.clone(),
        source,
    })?;
    folder.sweep();
    let question = Frame::Hello(Hello {
        layout: Variant::layout(),
        role: Role::Observer,
        domain: config.domain,
        id: 0,
        topic: String::new(),
        type_name: String::new(),
        type_hash: [0; 16],
    })
    .encode();
    let asked: Vec<Socket> = all
        .iter()
        .filter_map(|(_, path)| folder.connect(path).ok())
        .filter(|socket| socket.send(&question, &[]).is_ok())
        .collect();

    let mut topics: BTreeMap<(String, String, [u8; 16]), TopicInfo> = BTreeMap::new();
    let mut buffer = vec![0; MAX_INFO];
    for socket in asked {
        let Some(info) = answer(&socket, deadline, &mut buffer) else {
            continue;
        };
        if info.domain != config.domain {
            continue;
        }
        let peer = socket.peer().ok();
        let endpoint = EndpointInfo {
            id: info.id,
            pid: peer.map_or(0, |p| p.pid),
            uid: peer.map_or(u32::MAX, |p| p.uid),
            program: peer.and_then(|p| program(p.pid)),
            connected: info.connected,
            messages: info.messages,
            memory: info.memory,
            detail: info.detail,
            refusals: info.refusals,
        };
        let key = (
            info.topic.topic.clone(),
            info.topic.type_name.clone(),
            info.topic.type_hash,
        );
        let topic = topics.entry(key).or_insert_with(|| TopicInfo {
            topic: info.topic.clone(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
        });
        // Subscribers may not know the definition.
        if topic.topic.definition.is_empty() {
            topic.topic.definition = info.topic.definition;
        }
        match endpoint.detail {
            EndpointDetail::Publisher(_) => topic.publishers.push(endpoint),
            EndpointDetail::Subscriber(_) => topic.subscribers.push(endpoint),
        }
    }
    Ok(topics.into_values().collect())
}

fn answer(socket: &Socket, deadline: Option<Instant>, buffer: &mut [u8]) -> Option<Info> {
    loop {
        match socket.receive(buffer).ok()? {
            Received::Message(n, _) => {
                return match Frame::decode(&buffer[..n]) {
                    Ok(Frame::Info(info)) => Some(info),
                    _ => None,
                };
            }
            Received::Nothing => {
                if !wait_readable(socket.as_fd(), deadline).ok()? {
                    return None;
                }
            }
            Received::Oversized | Received::End => return None,
        }
    }
}
