//! Takes messages from the bus until the recording ends.

use super::disk::Disk;
use super::topics::Topics;
use crate::failure::{Failure, OrFail, Outcome};
use bus::TopicInfo;
use ropewalk::{Node, NodeError};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

/// Interval at which new topics are looked for.
const DISCOVERY: Duration = Duration::from_millis(500);
/// Interval at which `goes_on` is called while no message arrives.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Maximum time after the end for taking the messages published before it.
const LAST_TAKE: Duration = Duration::from_millis(200);

/// Takes messages of the `wanted` topics until `goes_on` returns false or writing fails.
pub(super) fn take(
    node: &Node,
    disk: &Disk,
    topics: &mut Topics,
    wanted: impl Fn(&str) -> bool,
    mut goes_on: impl FnMut(&Topics) -> bool,
) -> Outcome {
    let wait_set = node.wait_set().or_job("subscribing")?;
    let found = discover(node.clone()).or_job("asking the bus")?;
    while goes_on(topics) && !disk.has_ended() {
        match found.try_recv() {
            Ok(Ok(found)) => topics.look(node, &wait_set, found, &wanted),
            // Topics that are known already continue.
            Ok(Err(error)) => tracing::warn!(%error, "cannot ask the bus for topics"),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(Failure::job("the discovery thread has ended")),
        }
        if !topics.take(&disk.queue, None) {
            wait_set.wait(LOOK).or_job("waiting for messages")?;
        }
    }
    // Messages published before the end belong to the recording.
    let end = clock::monotonic();
    while topics.take(&disk.queue, Some(end)) && clock::monotonic().since(end) < LAST_TAKE {}
    Ok(())
}

/// Repeatedly sends the list of topics of the bus, until the receiver is dropped.
fn discover(node: Node) -> std::io::Result<Receiver<Result<Vec<TopicInfo>, NodeError>>> {
    let (tell, found) = sync_channel(0);
    let thread = std::thread::Builder::new().name("discovery".into());
    thread.spawn(move || {
        while tell.send(node.topics()).is_ok() {
            std::thread::sleep(DISCOVERY);
        }
    })?;
    Ok(found)
}
