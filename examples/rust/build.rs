//! Generates the modules of message types. By hand:
//! `ropewalk gen rust --output src geometry_msgs/Twist sensor_msgs/Image …`.

use schema::{Flavour, Registry};
use std::path::Path;

const TYPES: [&str; 3] = [
    "geometry_msgs/Twist",
    "sensor_msgs/Image",
    "sensor_msgs/LaserScan",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let text = generate::rust_text(&Registry::new(Flavour::Ros1), &TYPES.map(str::to_owned))?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("ropewalk_msgs.rs"), text)?;
    Ok(())
}
