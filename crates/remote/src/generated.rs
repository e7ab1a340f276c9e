//! The Rust types and descriptors of the `.proto` files, which `generated/` holds. Compiling them in a build script would
//! cost every user a compiler of protocol buffers.

/// If this fails, a `.proto` file or the generator changed: run it with `UPDATE=1`.
#[test]
fn types_are_those_of_the_proto_files() -> Result<(), Box<dyn std::error::Error>> {
    let made = tempfile::tempdir()?;
    let descriptors = protox::compile(
        ["proto/robot_remote_control.proto", "proto/ropewalk_remote.proto"],
        ["proto"],
    )?;
    // Names and comments of the fields, for programs that show messages of any kind.
    let encoded = prost::Message::encode_to_vec(&descriptors);
    std::fs::write(made.path().join("descriptors.bin"), encoded)?;
    // Ropewalk's own wire passes bodies on without copying them.
    prost_build::Config::new()
        .bytes([".ropewalk.remote"])
        .enable_type_names()
        .out_dir(made.path())
        .compile_fds(descriptors)?;
    let mut files = 0;
    for file in std::fs::read_dir(made.path())? {
        let file = file?;
        let kept = std::path::Path::new("generated").join(file.file_name());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::copy(file.path(), &kept)?;
        }
        let same = std::fs::read(file.path())? == std::fs::read(&kept)?;
        assert!(same, "{} is out of date", kept.display());
        files += 1;
    }
    assert_eq!(files, 3);
    Ok(())
}
