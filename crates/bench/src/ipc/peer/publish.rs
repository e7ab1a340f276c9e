//! The publishing process.

use super::typed::{self, Image};
use super::{As, Common, Publish, node, schedule};
use crate::kit::part::{Gate, PeerError, SEQUENCE, STAMP, connect, control_part, say, sleep_until};
use bus::{Loan, LoanError};
use ropewalk::{Publisher, PublisherOptions};
use serde_json::json;
use stats::Time;
use std::time::Duration;

/// Time between `go` and the first message.
pub(super) const BEFORE: Duration = Duration::from_millis(200);

pub(super) fn run(options: &Publish) -> Result<(), PeerError> {
    let common = &options.common;
    let gate = Gate::watch()?;
    let (node, image) = node()?;
    let limit = options.limit.map_or_else(PublisherOptions::default, |bytes| {
        PublisherOptions::default().with_memory_limit(bytes)
    });
    let publisher = node.dynamic_publisher_with(&common.topic, &image, limit)?;
    let size = common.size as usize;
    let source = match common.system {
        As::Ropewalk => Source::new(&publisher, size)?,
        As::RopewalkTyped => Source::typed(&publisher, size)?,
    };
    let everyone = |patience| {
        let enough = publisher.wait_for_subscribers(options.subscribers, patience);
        (enough, publisher.bus().subscriber_count())
    };
    if !connect(&gate, options.subscribers, everyone)? {
        return Ok(());
    }
    say(&"ready")?;
    schedule(common)?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let (published, refused, publish_ns) = publish(options, &source, &gate)?;
    say(&json!({ "published": published, "refused": refused, "publish_ns": publish_ns }))?;
    gate.wait_for_stop();
    Ok(())
}

fn publish(options: &Publish, source: &Source<'_>, gate: &Gate) -> Result<(u32, u32, Vec<u64>), PeerError> {
    let Common { warmup, messages, .. } = options.common;
    let mut publish_ns = Vec::with_capacity(messages as usize);
    let (mut published, mut refused) = (0, 0);
    let start = clock::monotonic() + BEFORE;
    sleep_until(start)?;
    for i in 0..u64::from(warmup) + u64::from(messages) {
        if gate.stopped() {
            break;
        }
        if options.rate > 0.0 {
            sleep_until(start + Duration::from_secs_f64(i as f64 / options.rate))?;
        }
        let counts = i >= u64::from(warmup);
        match source.send(i) {
            Ok(sent) if counts => {
                published += 1;
                publish_ns.push(sent.took.as_nanos() as u64);
            }
            Err(PeerError::Loan(LoanError::MemoryShort { .. })) if counts => refused += 1,
            Ok(_) | Err(PeerError::Loan(LoanError::MemoryShort { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((published, refused, publish_ns))
}

/// Creates images of one size and sends them.
pub(super) struct Source<'a> {
    publisher: &'a Publisher,
    content: Content,
    size: usize,
}

/// Content of the images other than their data.
enum Content {
    /// Encoded beforehand, in the form of a block.
    Control(Vec<u8>),
    /// Written for each message.
    Typed(Box<Image<'static>>),
}

impl<'a> Source<'a> {
    /// Encodes the control part, which is the same for all messages.
    pub(super) fn new(publisher: &'a Publisher, size: usize) -> Result<Self, PeerError> {
        Ok(Source {
            publisher,
            content: Content::Control(control_part(publisher.schema(), 1, size, "mono8", size)?),
            size,
        })
    }

    /// Writes every field of each message, as generated code does.
    fn typed(publisher: &'a Publisher, size: usize) -> Result<Self, PeerError> {
        Ok(Source {
            publisher,
            content: Content::Typed(Box::new(typed::image(size)?)),
            size,
        })
    }

    /// Sends message `i` by the paper's rule (section IV-A): the whole payload is written, then stamped, then
    /// published.
    pub(super) fn send(&self, i: u64) -> Result<Sent, PeerError> {
        let mut loan = self.loan(i)?;
        let payload = loan.part_mut(0);
        payload.fill(i as u8);
        payload[SEQUENCE].copy_from_slice(&i.to_le_bytes());
        let stamp = clock::monotonic();
        payload[STAMP].copy_from_slice(&stamp.as_nanos().to_le_bytes());
        self.publisher.publish(loan)?;
        let took = clock::monotonic().since(stamp);
        Ok(Sent { stamp, took })
    }

    /// Sends message `i` with only its number, as the answer to a message.
    pub(super) fn answer(&self, i: u64) -> Result<(), PeerError> {
        self.publisher.publish(self.loan(i)?)?;
        Ok(())
    }

    fn loan(&self, i: u64) -> Result<Loan, PeerError> {
        let mut loan = match &self.content {
            Content::Control(control) => {
                let mut loan = self.publisher.loan(control.len(), &[self.size])?;
                loan.control_mut().copy_from_slice(control);
                loan
            }
            Content::Typed(image) => typed::loan(self.publisher, image)?,
        };
        loan.part_mut(0)[SEQUENCE].copy_from_slice(&i.to_le_bytes());
        Ok(loan)
    }
}

/// A message that was published.
pub(super) struct Sent {
    /// Taken immediately before publishing.
    pub(super) stamp: Time,
    /// Duration of the publish call.
    pub(super) took: Duration,
}
