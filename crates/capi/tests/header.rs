//! Checks that the committed header matches the one generated from the source.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is good");
    let mut builder = cbindgen::Builder::new().with_config(config);
    // In the order of the header.
    for module in [
        "status",
        "options",
        "types",
        "node",
        "loan",
        "message",
        "publisher",
        "subscriber",
        "wait",
        "service",
        "zmq",
        "robot",
        "controller",
    ] {
        builder = builder.with_src(root.join(format!("src/{module}.rs")));
    }
    let mut made = Vec::new();
    builder
        .generate()
        .expect("cbindgen reads the source")
        .write(&mut made);
    let made = String::from_utf8(made).expect("the header is UTF-8");
    let path = root.join("include/ropewalk.h");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "{} differs from the one generated from the source: run UPDATE=1 cargo test -p ropewalk-capi --test header",
        path.display()
    );
}
