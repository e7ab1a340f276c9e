//! The node that answers.

use super::message::Template;
use super::{Echo, PeerError, named, node, say};
use crate::kit::part::Gate;
use bus::LoanError;
use ropewalk::{Message, Publisher, SubscriberOptions};
use serde_json::json;
use stats::Drops;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

pub(super) fn run(options: &Echo) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let node = node()?;
    let template = Template::new(options.common.bytes)?;
    let wait_set = node.wait_set()?;
    let queue = SubscriberOptions::default()
        .with_depth(options.common.queue)
        .with_wait_set(&wait_set);
    let mut ways = Vec::new();
    for way in &options.ways {
        let publisher = node.dynamic_publisher(&way.output, &template.schema)?;
        ways.push((
            node.dynamic_subscriber_with(&way.input, &template.schema, queue.clone())?,
            publisher,
        ));
    }
    let (stop, wake) = (gate.clone(), wait_set.interrupt());
    std::thread::spawn(move || {
        stop.wait_for_stop();
        wake.wake();
    });
    say(&"ready")?;
    let (mut echoed, mut refused) = (0u64, 0u64);
    while !gate.stopped() {
        let mut idle = true;
        for (subscriber, publisher) in &ways {
            let Some(message) = subscriber.take()? else {
                continue;
            };
            idle = false;
            if answer(&message, publisher)? {
                echoed += 1;
            } else {
                refused += 1;
            }
        }
        if idle {
            wait_set.wait(LONG)?;
        }
    }
    let mut drops = Drops::default();
    ways.iter().for_each(|(_, p)| drops.merge(&p.stats().drops));
    say(&json!({ "echoed": echoed, "refused": refused, "drops": named(&drops) }))
}

/// Publishes a copy of a message; returns false if memory is short.
fn answer(message: &Message, publisher: &Publisher) -> Result<bool, PeerError> {
    let control = message.control();
    let lengths: Vec<usize> = (0..message.part_count())
        .map(|i| message.part(i).bytes().len())
        .collect();
    let mut loan = match publisher.loan(control.len(), &lengths) {
        Ok(loan) => loan,
        Err(LoanError::MemoryShort { .. }) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    loan.control_mut().copy_from_slice(control);
    for i in 0..lengths.len() {
        loan.part_mut(i).copy_from_slice(message.part(i).bytes());
    }
    publisher.publish(loan)?;
    Ok(true)
}
