//! Survey of the bus: queries every endpoint in the runtime folder.

use crate::bus::OpenError;
use crate::config::BusConfig;
use crate::detail::EndpointDetail;
use crate::folder::{ConnectError, Folder};
use crate::frame::{Frame, Hello, Info, MAX_INFO, Role};
use crate::sys::Variant;
use crate::sys::doorbell::wait_readable;
use crate::sys::process::{Peer, program};
use crate::sys::socket::{Received, Socket};
use crate::topic::{EndpointInfo, Flavour, Offer, Ros, TopicInfo};
use stats::text::printable;
use std::collections::BTreeMap;
use std::io::ErrorKind::{NotFound, WouldBlock};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Contents of a runtime folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survey {
    /// The topics of this domain, by name. Silent endpoints are included as they answered an earlier survey of the same
    /// bus, if they did: a process that is busy or stopped for a moment does not end its topics.
    pub topics: Vec<TopicInfo>,
    /// Number of endpoints that belong to other domains.
    pub elsewhere: usize,
    /// Endpoints that listen and did not answer in time: their processes are stopped, hang, or refuse this
    /// one.
    pub silent: Vec<Silent>,
    /// Number of sockets of dead processes; they were removed.
    pub removed: usize,
    /// Number of sockets of dead processes of other members of the group: only their user and the folder's
    /// owner may remove them.
    pub left: usize,
}

/// An endpoint that did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Silent {
    /// Its process, as this process sees it (0 if it lives in another PID namespace).
    pub pid: i32,
    /// The program, if `/proc` shows it.
    pub program: Option<String>,
}

/// Answers to the last survey, by the number and the topic in the names of the endpoints' sockets.
pub(crate) type Answers = BTreeMap<(u64, u64), Answer>;

/// What an endpoint said of itself.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    peer: Option<Peer>,
    info: Info,
}

/// Queries all endpoints before reading answers, so a silent one delays the others only until the timeout. `known`: the
/// answers to the last survey; those of this one replace them.
pub(crate) fn survey(
    folder: &Folder,
    config: &BusConfig,
    timeout: Duration,
    known: &Mutex<Answers>,
) -> Result<Survey, OpenError> {
    let deadline = Instant::now().checked_add(timeout);
    let fail = |source| OpenError::Dir {
        dir: config.runtime_dir.clone(),
        source,
    };
    let mut all = folder.entries().map_err(fail)?;
    all.retain(|entry| !entry.hidden || entry.may_be_dead());
    all.sort_by_key(|entry| entry.name.id);
    let question = Frame::Hello(Hello {
        layout: Variant::layout(),
        role: Role::Observer,
        domain: config.domain,
        id: 0,
        topic: String::new(),
        type_name: String::new(),
        type_hash: [0; 16],
        flavour: Flavour::default(),
        offer: Offer::default(),
    })
    .encode();
    let mut survey = Survey::default();
    let mut asked: Vec<((u64, u64), Option<Socket>)> = Vec::new();
    for entry in all {
        let key = (entry.name.id, entry.name.topic_hash);
        match folder.connect(&entry.file()) {
            Ok(_) if entry.hidden => {}
            Ok(socket) => asked.extend(socket.send(&question, &[]).is_ok().then_some((key, Some(socket)))),
            Err(ConnectError::Dead { removed: false }) => survey.left += 1,
            Err(ConnectError::Dead { removed: true }) => survey.removed += 1,
            // Housekeeping may have removed it first.
            Err(ConnectError::Io(e)) if e.kind() == NotFound && entry.may_be_dead() => survey.removed += 1,
            // As many connections wait as it allows.
            Err(ConnectError::Io(e)) if e.kind() == WouldBlock && !entry.hidden => {
                asked.push((key, None));
            }
            Err(_) => {}
        }
    }

    let (mut answers, mut silent) = (Answers::new(), Vec::new());
    let mut buffer = vec![0; MAX_INFO];
    for (key, socket) in asked {
        let peer = socket.as_ref().and_then(|socket| socket.peer().ok());
        let answer = socket.map_or(Err(Missing::Late), |s| answer(&s, deadline, &mut buffer));
        match answer {
            Ok(info) => drop(answers.insert(key, Answer { peer, info })),
            Err(why) => silent.push((key, peer, why)),
        }
    }
    {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, peer, why) in silent {
            let before = known.remove(&key).filter(|a| peer.is_none() || peer == a.peer);
            let peer = peer.or_else(|| before.as_ref()?.peer);
            survey.silent.push(Silent {
                pid: peer.map_or(0, |p| p.pid),
                program: peer.and_then(|p| program(p.pid)),
            });
            let stays = before.filter(|_| why == Missing::Late);
            answers.extend(stays.map(|answer| (key, answer)));
        }
        known.clone_from(&answers);
    }

    let mut topics: BTreeMap<(String, String, [u8; 16], Ros), TopicInfo> = BTreeMap::new();
    for Answer { peer, info } in answers.into_values() {
        if info.domain != config.domain {
            survey.elsewhere += 1;
            continue;
        }
        let endpoint = EndpointInfo {
            id: info.id,
            pid: peer.map_or(0, |p| p.pid),
            uid: peer.map_or(u32::MAX, |p| p.uid),
            program: peer.and_then(|p| program(p.pid)),
            connected: info.connected,
            messages: info.messages,
            memory: info.memory,
            detail: info.detail,
            refusals: info.refusals.iter().map(|r| printable(r).into_owned()).collect(),
        };
        let key = (
            info.topic.topic.clone(),
            info.topic.type_name.clone(),
            info.topic.type_hash,
            info.topic.flavour.ros,
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
    survey.topics = topics.into_values().collect();
    Ok(survey)
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// Not in time.
    Late,
    /// The endpoint refuses this process, or ends.
    Ended,
}

fn answer(socket: &Socket, deadline: Option<Instant>, buffer: &mut [u8]) -> Result<Info, Missing> {
    loop {
        match socket.receive(buffer).map_err(|_| Missing::Ended)? {
            Received::Message(n, _) => {
                return match Frame::decode(&buffer[..n]) {
                    Ok(Frame::Info(info)) => Ok(info),
                    _ => Err(Missing::Ended),
                };
            }
            Received::Nothing => {
                if !wait_readable(socket.as_fd(), deadline).map_err(|_| Missing::Ended)? {
                    return Err(Missing::Late);
                }
            }
            Received::Oversized | Received::End => return Err(Missing::Ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_the_dead_are_counted_and_removed_hidden_ones_when_they_are_old() {
        let dir = tempfile::tempdir().unwrap();
        let config = BusConfig::new(dir.path());
        let folder = Folder::open(&config).unwrap();
        let leave = |id| {
            let (listener, file) = folder.bind("/a", Role::Publisher, id).unwrap();
            std::mem::forget(file);
            drop(listener);
            dir.path().join(folder.entries().unwrap().pop().unwrap().file())
        };
        let hidden = leave(1);
        let name = hidden.file_name().unwrap().to_str().unwrap();
        let hidden_again = dir.path().join(format!(".{name}"));
        std::fs::rename(&hidden, &hidden_again).unwrap();
        let ask = || survey(&folder, &config, Duration::from_secs(5), &Mutex::default()).unwrap();
        assert_eq!(ask().removed, 0, "it may be binding");
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        let times = rustix::fs::Timestamps {
            last_access: rustix::fs::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            last_modification: rustix::fs::Timespec {
                tv_sec: old.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as _,
                tv_nsec: 0,
            },
        };
        let flags = rustix::fs::AtFlags::empty();
        rustix::fs::utimensat(rustix::fs::CWD, &hidden_again, &times, flags).unwrap();
        assert_eq!(ask().removed, 1);
        leave(2);
        assert_eq!(ask().removed, 1);
        assert_eq!((ask().removed, folder.entries().unwrap().len()), (0, 0));
    }
}
