//! The program behind `ropewalk bench`: help, errors, and what it says where `ropewalk` is missing.

use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_ropewalk-bench"))
        .args(words)
        .output();
    output.expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_lists_the_experiments() {
    let help = text(&run(&["--help"]).stdout);
    for name in ["ipc", "brake", "lab", "link", "remote", "scale", "plan", "report"] {
        assert!(help.contains(&format!("\n  {name}")), "{name}: {help}");
    }
    assert!(!help.contains("link-part"), "{help}");
    assert_eq!(run(&["nothing"]).status.code(), Some(2));
}

#[test]
fn without_ropewalk_next_to_it_an_experiment_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let alone = folder.path().join("ropewalk-bench");
    std::fs::copy(env!("CARGO_BIN_EXE_ropewalk-bench"), &alone).expect("copies");
    let output = Command::new(&alone)
        .args([
            "link",
            "--experiment",
            "pound",
            "--systems",
            "ropewalk",
            "--quick",
        ])
        .output()
        .expect("runs");
    let said = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(said.contains("install it next to"), "{said}");
}
