//! A service that echoes, and its clients.

use super::publish::BEFORE;
use super::{Call, Common, node, schedule};
use crate::kit::part::{Gate, PeerError, SEQUENCE, STAMP, connect, number, say, sleep_until};
use bus::{ClientOptions, ServerOptions, ServiceType};
use serde_json::json;
use std::time::Duration;

/// A call that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn call(options: &Call) -> Result<(), PeerError> {
    let common = &options.common;
    let gate = Gate::watch()?;
    let (node, _) = node()?;
    let client = node.bus().client(echo(common), ClientOptions::default())?;
    let server = |patience| {
        // The first call returns the error.
        let is_there = client.wait_for_server(patience).unwrap_or(true);
        (is_there, usize::from(is_there))
    };
    if !connect(&gate, 1, server)? {
        return Ok(());
    }
    say(&"ready")?;
    schedule(common)?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let mut round_trip_ns = Vec::with_capacity(common.messages as usize);
    let start = clock::monotonic() + BEFORE;
    sleep_until(start)?;
    for i in 0..u64::from(common.warmup) + u64::from(common.messages) {
        if gate.stopped() {
            return Ok(());
        }
        if options.rate > 0.0 {
            sleep_until(start + Duration::from_secs_f64(i as f64 / options.rate))?;
        }
        let mut request = client.loan(0, &[common.size as usize])?;
        let payload = request.part_mut(0);
        payload.fill(i as u8);
        payload[SEQUENCE].copy_from_slice(&i.to_le_bytes());
        let stamp = clock::monotonic();
        payload[STAMP].copy_from_slice(&stamp.as_nanos().to_le_bytes());
        let reply = client.call(request, PATIENCE)?;
        let took = clock::monotonic().since(stamp);
        if reply.part_count() != 1 || number(reply.part(0).bytes(), SEQUENCE) != Some(i) {
            return Err(PeerError::Echo(i));
        }
        if i >= u64::from(common.warmup) {
            round_trip_ns.push(took.as_nanos() as u64);
        }
    }
    say(&json!({ "round_trip_ns": round_trip_ns }))?;
    gate.wait_for_stop();
    Ok(())
}

pub(super) fn serve(common: &Common) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let (node, _) = node()?;
    let server = node.bus().server(echo(common), ServerOptions::default())?;
    let interrupt = server.interrupt();
    let stop = gate.clone();
    std::thread::spawn(move || {
        stop.wait_for_stop();
        interrupt.wake();
    });
    say(&"ready")?;
    schedule(common)?;
    while !gate.stopped() {
        let Some(request) = server.take_timeout(Duration::MAX)? else {
            continue;
        };
        let asked = (request.part_count() == 1)
            .then(|| number(request.part(0).bytes(), SEQUENCE))
            .flatten();
        let mut reply = server.loan(0, &[common.size as usize])?;
        reply.part_mut(0)[SEQUENCE].copy_from_slice(&asked.unwrap_or(u64::MAX).to_le_bytes());
        // A client that is gone needs no reply; one that misses its reply reports it.
        let _ = server.respond(request, reply);
    }
    Ok(())
}

/// A request and a reply are one data part each.
fn echo(common: &Common) -> ServiceType {
    ServiceType {
        service: common.topic.clone(),
        type_name: "bench/Echo".into(),
        type_hash: *b"bench/Echo 00001",
        flavour: Default::default(),
        definition: "uint8[] data\n---\nuint8[] data\n".into(),
    }
}
