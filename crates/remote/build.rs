//! Rust types of the two `.proto` files, by a compiler written in Rust, so that no `protoc` is needed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["proto/robot_remote_control.proto", "proto/ropewalk_remote.proto"];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    // What the own wire carries is passed on as it came, without copies.
    prost_build::Config::new()
        .bytes([".ropewalk.remote"])
        .compile_fds(descriptors)?;
    Ok(())
}
