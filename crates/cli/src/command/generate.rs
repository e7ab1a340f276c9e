//! `ropewalk gen`: source code for message types.

use crate::failure::{Failure, OrFail, Outcome};
use crate::types::SearchPath;
use clap::{Args, ValueEnum};
use std::fs;
use std::path::{Path, PathBuf};

/// Generate source code for message and service types.
///
/// Bulk fields become views into shared memory. Types of the standard packages are built in. Others are looked up in
/// --path, ROS_PACKAGE_PATH and /usr/share (with --ros2: AMENT_PREFIX_PATH). Types used by the named ones are generated
/// too. Prints the path of each file.
#[derive(Args)]
pub(crate) struct Options {
    /// Target language.
    #[arg(value_enum)]
    language: Language,
    /// Type names such as sensor_msgs/Image or std_srvs/SetBool; .msg and .srv files; packages; folders of packages.
    #[arg(required = true, value_name = "WHAT")]
    what: Vec<String>,
    /// Folder for the code, created if it is missing. Unchanged files are not rewritten.
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    search: SearchPath,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    /// C++17 headers: #include "ropewalk/msg/sensor_msgs/Image.hpp" (docs/guide/cpp.md).
    Cpp,
    /// Python modules with stubs: from ropewalk_msgs.sensor_msgs import Image (docs/guide/python.md).
    Python,
    /// Rust modules: #[path = "generated/ropewalk_msgs/mod.rs"] mod ropewalk_msgs; (the crate ropewalk, its module typed).
    Rust,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut registry = options.search.registry();
    let mut names = Vec::new();
    for what in &options.what {
        let path = Path::new(what);
        let is_definition = path.extension().is_some_and(|e| e == "msg" || e == "srv");
        // A type's name may also be the name of a folder here: it counts as a folder only if it is written as a path.
        let is_type =
            what.split('/').count() == 2 && !what.starts_with('.') && !what.ends_with('/') && !is_definition;
        if is_type && !path.exists() {
            names.push(what.clone());
            continue;
        }
        let found = generate::find(path).or_input()?;
        found.folders.into_iter().for_each(|f| registry.add_folder(f));
        names.extend(found.names);
    }
    let language = match options.language {
        Language::Cpp => generate::Language::Cpp,
        Language::Python => generate::Language::Python,
        Language::Rust => generate::Language::Rust,
    };
    for file in generate::files(language, &registry, &names).or_input()? {
        let path = options.output.join(&file.path);
        write(&path, &file.text)?;
        crate::screen::say!("{}", path.display());
    }
    Ok(())
}

/// Writes a file unless it has that text already, so that its dependents are not rebuilt.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let doing = format!("writing {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).or_job(&doing)?;
    }
    fs::write(path, text).or_job(&doing)
}
