//! Generates Rust types from the two `.proto` files, with a compiler written in Rust, so that no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["proto/robot_remote_control.proto", "proto/ropewalk_remote.proto"];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    // Names and comments of the fields, for programs that show messages of any kind.
    let described = std::path::Path::new(&std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(described, protox::prost::Message::encode_to_vec(&descriptors))?;
    // Ropewalk's own wire passes bodies on without copying them.
    prost_build::Config::new()
        .bytes([".ropewalk.remote"])
        .enable_type_names()
        .compile_fds(descriptors)?;
    Ok(())
}
