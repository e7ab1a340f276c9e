//! The generated C++ compiles for every type in the crate `schema`, and reads and writes the golden messages of
//! `tests/vectors/schema` byte for byte.

use generate::{Language, files};
use schema::{Flavour, Registry};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn write(folder: &Path, registry: &Registry, names: &[String]) {
    for file in files(Language::Cpp, registry, names).expect("generated") {
        let path = folder.join(file.path);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("made");
        std::fs::write(path, file.text).expect("written");
    }
}

/// A compiler with the warnings that users enable.
fn compiler(folder: &Path) -> Command {
    let mut compiler = Command::new(std::env::var("CXX").unwrap_or_else(|_| "c++".into()));
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-I"]);
    compiler.arg(folder);
    for include in ["cpp/include", "crates/capi/include"] {
        compiler.arg("-I").arg(root().join(include));
    }
    compiler
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let done = command.output().expect("it starts");
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(
        done.status.success(),
        "{command:?}: {}\n{out}\n{err}",
        done.status
    );
    out.into_owned()
}

#[test]
fn every_standard_type_compiles() {
    for flavour in [Flavour::Ros1, Flavour::Ros2] {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::new(flavour);
        let names: Vec<String> = (registry.names().iter().chain(&registry.service_names()))
            .map(ToString::to_string)
            .collect();
        write(folder.path(), &registry, &names);
        let mut main = String::new();
        for name in &names {
            let _ = writeln!(main, "#include \"ropewalk/msg/{name}.hpp\"");
        }
        let source = folder.path().join("all.cpp");
        std::fs::write(&source, main).expect("written");
        run(compiler(folder.path()).arg("-fsyntax-only").arg(&source));
    }
}

#[test]
fn a_header_does_not_include_one_of_the_other_ros_version() {
    let folder = tempfile::tempdir().expect("a folder");
    // As a program whose own headers, of ROS 2, are found before the installed ones.
    write(
        folder.path(),
        &Registry::new(Flavour::Ros1),
        &["sensor_msgs/Image".into()],
    );
    write(
        folder.path(),
        &Registry::new(Flavour::Ros2),
        &["std_msgs/Header".into()],
    );
    let source = folder.path().join("mixed.cpp");
    std::fs::write(&source, "#include \"ropewalk/msg/sensor_msgs/Image.hpp\"\n").expect("written");
    let done = compiler(folder.path()).arg("-fsyntax-only").arg(&source).output();
    let error = String::from_utf8(done.expect("it starts").stderr).expect("UTF-8");
    assert!(
        error.contains("std_msgs/Header is included for another version of ROS"),
        "{error}"
    );
}

#[test]
fn golden_messages_come_back_byte_for_byte() {
    let vectors = root().join("tests/vectors/schema");
    let mut count = 0;
    for entry in vectors.read_dir().expect("there") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("readable");
        let vector: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let field = |name: &str| vector[name].as_str().expect("a text").to_owned();
        let flavour = match field("flavour").as_str() {
            "ros2" => Flavour::Ros2,
            _ => Flavour::Ros1,
        };
        let mut registry = Registry::new(flavour);
        registry
            .add_embedded(&field("type"), &field("definition"))
            .expect("parses");
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &registry, &[field("type")]);
        let parts: Vec<_> = vector["parts"]
            .as_array()
            .expect("parts")
            .iter()
            .map(|p| p.as_str().expect("hex"))
            .collect();
        let main = format!(
            "#include \"ropewalk/msg/{}.hpp\"\nusing T = ropewalk::msg::{};\n\
             #define THRESHOLD {}\n#define CONTROL \"{}\"\n#define PARTS {{{}}}\n{}",
            field("type"),
            field("type").replace('/', "::"),
            vector["threshold"],
            field("control"),
            parts
                .iter()
                .map(|p| format!("\"{p}\""))
                .collect::<Vec<_>>()
                .join(", "),
            include_str!("golden.cpp"),
        );
        let (source, program) = (folder.path().join("golden.cpp"), folder.path().join("golden"));
        std::fs::write(&source, main).expect("written");
        run(compiler(folder.path())
            .args(["-fsanitize=address,undefined", "-g", "-o"])
            .arg(&program)
            .arg(&source));
        assert_eq!(run(&mut Command::new(&program)), "same\n", "{}", field("about"));
        count += 1;
    }
    assert!(count >= 5, "{count} vectors");
}
