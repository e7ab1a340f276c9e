//! The modules of `ropewalk.msgs` in the Python package are those of ROS 1's standard packages, and their stubs equal the generator's
//! output. UPDATE=1 rewrites them.

use generate::{Language, files};
use schema::{Flavour, Registry};
use std::collections::BTreeSet;
use std::path::Path;

fn module(package: &str) -> String {
    format!(
        "# Made by UPDATE=1 cargo test -p ropewalk-generate --test python_files; do not edit.\n\
         \"\"\"The types of {package}.\"\"\"\n\n\
         from . import _package\n\n\
         __getattr__, __dir__ = _package(__name__)\n"
    )
}

#[test]
fn the_python_package_has_the_standard_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ropewalk/msgs");
    let registry = Registry::new(Flavour::Ros1);
    let names = registry.names().into_iter().chain(registry.service_names());
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    let stubs = files(Language::Python, &registry, &names).expect("generated");
    let mut wanted = BTreeSet::from(["__init__.py".to_owned()]);
    let is_stub = |path: &Path| path.extension().is_some_and(|e| e == "pyi");
    for stub in stubs.into_iter().filter(|file| is_stub(&file.path)) {
        let package = stub
            .path
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("a name");
        for (name, text) in [
            (format!("{package}.pyi"), stub.text.clone()),
            (format!("{package}.py"), module(package)),
        ] {
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(folder.join(&name), &text).expect("written");
            }
            let committed = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
            assert!(
                committed == text,
                "{name} differs from what is generated: run UPDATE=1 cargo test -p ropewalk-generate --test python_files"
            );
            wanted.insert(name);
        }
    }
    let entries = folder
        .read_dir()
        .expect("there")
        .map(|entry| entry.expect("an entry").file_name());
    let found: BTreeSet<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    let extra: Vec<_> = found
        .difference(&wanted)
        .filter(|name| *name != "__pycache__")
        .collect();
    assert!(extra.is_empty(), "{extra:?} belong to no standard package");
}
