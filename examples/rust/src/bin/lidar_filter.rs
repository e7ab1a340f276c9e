//! Keeps the near part of each scan: reads it where the laser wrote it, writes the result where subscribers read it.
//!
//!     cargo run -p examples --bin lidar_filter MAXIMUM-RANGE
//!
//! From /scan to /scan/near, until none has come for a second.

use ropewalk::Node;
use ropewalk::msgs::sensor_msgs::LaserScan;
use ropewalk::typed::Bulk;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let far: f32 = std::env::args().nth(1).map_or(Ok(5.0), |range| range.parse())?;
    let node = Node::new("lidar_filter")?;
    let scans = node.subscriber::<LaserScan>("/scan")?;
    let near = node.publisher::<LaserScan>("/scan/near")?;

    let mut patience = Duration::from_secs(30);
    while let Some(taken) = scans.take_timeout(patience)? {
        patience = Duration::from_secs(1);
        let scan = taken.read()?;
        let out = LaserScan {
            range_max: far,
            ranges: Bulk::Sized(scan.ranges.len()),
            intensities: Bulk::default(),
            ..scan.clone()
        };
        let mut loan = match near.loan(&out) {
            Ok(loan) => loan,
            Err(error) => {
                eprintln!("left out: {error}");
                continue;
            }
        };
        let mut kept = 0;
        for (to, range) in loan
            .slice_mut::<f32>("ranges")?
            .iter_mut()
            .zip(scan.ranges.iter())
        {
            let is_near = *range <= far;
            kept += usize::from(is_near);
            *to = if is_near { *range } else { f32::INFINITY };
        }
        near.publish_loan(loan)?;
        println!("{kept} of {} are near", scan.ranges.len());
    }
    Ok(())
}
