//! Shows the camera and the laser scan of a bus with Foxglove's own SDK, as a bridge on it would.
//!
//! Usage: `peer-foxglove PORT`. Serves `/camera/image_raw` and `/scan` on loopback until standard input ends.

use foxglove::{ChannelBuilder, PartialMetadata, RawChannel, Schema, WebSocketServer};
use ropewalk::msgs::sensor_msgs::{Image, LaserScan};
use ropewalk::typed::Structure;
use ropewalk::{Callback, Node};
use std::error::Error;
use std::sync::Arc;

/// Forwards one topic of the bus for as long as the callback lives.
fn forward<T: Structure + 'static>(node: &Node, topic: &str) -> Result<Callback, Box<dyn Error>> {
    let subscriber = node.subscriber::<T>(topic)?;
    let schema = subscriber.schema();
    let channel: Arc<RawChannel> = ChannelBuilder::new(topic)
        .schema(Schema::new(
            schema.name(),
            "ros1msg",
            schema.definition().into_bytes(),
        ))
        .message_encoding("ros1")
        .build_raw()?;
    Ok(subscriber.callback(move |message| {
        // The SDK takes one piece: the parts of the message are joined first.
        if let Ok(bytes) = message.ros1() {
            let time = Some(message.stamp().as_nanos());
            channel.log_with_meta(&bytes, PartialMetadata { log_time: time });
        }
    })?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args()
        .nth(1)
        .ok_or("usage: peer-foxglove PORT")?
        .parse()?;
    let node = Node::new("foxglove_sdk")?;
    let topics = [
        forward::<LaserScan>(&node, "/scan")?,
        forward::<Image>(&node, "/camera/image_raw")?,
    ];
    let server = WebSocketServer::new().bind("127.0.0.1", port).start_blocking()?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(topics);
    server.stop().wait_blocking();
    Ok(())
}
