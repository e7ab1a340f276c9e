//! A simulated robot that drives a loop through a furnished room: the same stream as a recording without a file, and
//! deterministic for a seed.
//!
//! | topic | type | rate | size |
//! |---|---|---|---|
//! | `/scan` | sensor_msgs/LaserScan | 30 Hz | 2.6 kB |
//! | `/tf` | tf2_msgs/TFMessage | 80 Hz | 93 B, every eighth 1 kB |
//! | `/camera/image/compressed` | sensor_msgs/CompressedImage | 6.67 Hz | about 77 kB |
//!
//! Together they are about 5 Mbit/s. The laser's ranges are ray-cast distances with noise, the camera sees the same
//! room, and the transforms follow the same drive with an odometry that drifts.

mod camera;
mod definitions;
mod figures;
mod lidar;
mod messages;
mod random;
mod texture;
mod world;

use std::path::Path;

use stats::Time;

use self::camera::Camera;
use self::random::Random;
use self::world::{Odometry, World};
use crate::error::WriteError;
use crate::model::{Channel, ChannelId, Message, Summary};
use crate::write::{Options, Writer};

/// The simulated recording's channels, in the order of their ids.
pub fn channels() -> Vec<Channel> {
    definitions::channels()
}

/// The messages of `seconds` of driving, in time order. Times count from zero. Each message is created when it is
/// requested; a camera image takes some milliseconds.
pub fn generate(seconds: f64, seed: u64) -> impl Iterator<Item = Message> + Send + 'static {
    Drive::new(seconds, seed)
}

/// Writes `seconds` of driving as an MCAP file.
pub fn write(
    path: impl AsRef<Path>,
    seconds: f64,
    seed: u64,
    options: &Options,
) -> Result<Summary, WriteError> {
    let mut writer = Writer::create(path, options)?;
    let ids = channels()
        .iter()
        .map(|channel| writer.add_channel(channel))
        .collect::<Result<Vec<_>, _>>()?;
    for message in generate(seconds, seed) {
        let id = ids[message.channel.0 as usize];
        writer.write(id, message.log_time, message.publish_time, &message.data)?;
    }
    writer.finish()
}

/// A periodic sensor: its messages are at `phase + n * period`, computed without drift.
#[derive(Clone, Copy, Debug)]
struct Sensor {
    channel: ChannelId,
    phase: u64,
    /// Messages in `per` seconds.
    rate: u64,
    per: u64,
    sent: u64,
}

impl Sensor {
    fn due(&self) -> u64 {
        let ns = u128::from(self.sent) * u128::from(self.per) * 1_000_000_000 / u128::from(self.rate);
        self.phase + u64::try_from(ns).unwrap_or(u64::MAX / 2)
    }
}

struct Drive {
    end: u64,
    world: World,
    odometry: Odometry,
    camera: Camera,
    random: Random,
    sensors: [Sensor; 3],
}

impl Drive {
    fn new(seconds: f64, seed: u64) -> Self {
        let sensor = |channel, phase, rate, per| Sensor {
            channel: ChannelId(channel),
            phase,
            rate,
            per,
            sent: 0,
        };
        let mut random = Random::new(seed);
        Drive {
            // Saturates for unrealistic durations.
            end: (seconds.max(0.0) * 1e9) as u64,
            world: World::new(&mut random),
            odometry: Odometry::default(),
            camera: Camera::new(),
            random,
            // Phases keep the sensors from sending at the same instant.
            sensors: [
                sensor(definitions::SCAN, 4_000_000, 30, 1),
                sensor(definitions::TF, 0, 80, 1),
                sensor(definitions::IMAGE, 7_000_000, 20, 3),
            ],
        }
    }
}

impl Iterator for Drive {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        let sensor = self.sensors.iter_mut().min_by_key(|sensor| sensor.due())?;
        let (channel, sequence, due) = (sensor.channel, sensor.sent, sensor.due());
        if due >= self.end {
            return None;
        }
        sensor.sent += 1;
        let time = Time(due);
        let seconds = time.as_secs_f64();
        let pose = self.world.robot(seconds);
        let data = match channel.0 {
            definitions::SCAN => {
                let ranges = lidar::scan(&self.world, pose, seconds, &mut self.random);
                messages::laser_scan(sequence as u32, time, &ranges)
            }
            definitions::TF => {
                let odometry = self.odometry.advance(pose, &mut self.random);
                messages::transforms(sequence, time, odometry, pose)
            }
            _ => {
                let jpeg = self.camera.picture(&self.world, pose, seconds, &mut self.random);
                messages::compressed_image(sequence as u32, time, &jpeg)
            }
        };
        Some(Message {
            channel,
            log_time: time,
            publish_time: time,
            data,
        })
    }
}

#[cfg(test)]
mod tests;
