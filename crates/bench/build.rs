//! Generates the structures of `ropewalk-typed`: those that `ropewalk gen rust sensor_msgs/Image` generates for a user.

use schema::{Flavour, Registry};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let text = generate::rust_text(&Registry::new(Flavour::Ros1), &["sensor_msgs/Image".to_owned()])?;
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("ropewalk_msgs.rs"), text)?;
    Ok(())
}
