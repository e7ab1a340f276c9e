//! Makes the structures of `ropewalk-typed`: those that `ropewalk gen rust sensor_msgs/Image` gives a user.

use generate::{Language, files};
use schema::{Flavour, Registry};
use std::fmt::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let registry = Registry::new(Flavour::Ros1);
    let mut all = String::new();
    for file in files(Language::Rust, &registry, &["sensor_msgs/Image".to_owned()])? {
        // The modules are included as one file, within which they cannot be files of their own.
        let name = file.path.file_stem().and_then(|name| name.to_str());
        match name.ok_or("a module has a name")? {
            "mod" => {}
            name => writeln!(all, "pub mod {name} {{\n{}\n}}", file.text)?,
        }
    }
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("ropewalk_msgs.rs"), all)?;
    Ok(())
}
