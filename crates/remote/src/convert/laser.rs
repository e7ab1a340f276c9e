//! Laser scans.

use super::read::{Reader, bad};
use super::write::Writer;
use super::{ConvertError, Ros};
use crate::types::LaserScan;

/// ROS's scans have one line: several are an error. This type has one speed of rotation. ROS has the time between two
/// ranges, which is the angle between them divided by the speed, and the time of a scan, which is its whole angle
/// divided by the speed.
impl Ros for LaserScan {
    const NAME: &'static str = "LaserScan";
    const TYPES: &'static [&'static str] = &["sensor_msgs/LaserScan"];

    fn read(_: &str, from: &mut Reader<'_>) -> Result<Self, ConvertError> {
        let header = Some(from.header()?);
        let start_angle: f32 = from.word("angle_min")?;
        let end: f32 = from.word("angle_max")?;
        let step: f32 = from.word("angle_increment")?;
        let between: f32 = from.word("time_increment")?;
        let whole: f32 = from.word("scan_time")?;
        let scan_speed = match (between, whole) {
            (t, _) if t > 0.0 => step / t,
            (_, t) if t > 0.0 => (end - start_angle) / t,
            _ => 0.0,
        };
        let (range_min, range_max) = (from.word("range_min")?, from.word("range_max")?);
        let ranges: Vec<f32> = from.array("ranges")?;
        Ok(LaserScan {
            header,
            vertical_size: 1,
            // A count word has 31 bits.
            horizontal_size: ranges.len() as u32,
            vertical_angle_resolution: 0.0,
            start_angle,
            horizontal_angle_resolution: step,
            scan_speed,
            range_min,
            range_max,
            ranges,
            remissions: from.array("intensities")?,
        })
    }

    fn write<'a>(&'a self, _: &str, to: &mut Writer<'a>) {
        if self.vertical_size > 1 {
            let why = format!("{} lines, but a ROS scan has one", self.vertical_size);
            to.fail(bad("vertical_size", why));
        }
        let (size, len) = (self.horizontal_size, self.ranges.len());
        if size != 0 && size as usize != len {
            to.fail(bad(
                "horizontal_size",
                format!("{size}, but the scan has {len} ranges"),
            ));
        }
        let step = self.horizontal_angle_resolution;
        let angle = step * len.saturating_sub(1) as f32;
        let over_speed = |angle: f32| match self.scan_speed {
            0.0 => 0.0,
            speed => angle / speed,
        };
        to.header(self.header.as_ref());
        to.float(self.start_angle);
        to.float(self.start_angle + angle);
        to.float(step);
        to.float(over_speed(step));
        to.float(over_speed(angle));
        to.float(self.range_min);
        to.float(self.range_max);
        to.float_array("ranges", &self.ranges);
        to.float_array("intensities", &self.remissions);
    }
}
