//! `ropewalk import`: configurations of other software.

use crate::failure::{Failure, OrFail, Outcome};
use clap::{Args, Subcommand};
use ros1::import::{self, Imported, Nimbro};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// Convert another software's configuration into files for `ropewalk link` and `ropewalk ros1`.
///
/// Writes a folder for each host. Reports, line by line, settings that cannot be carried over or that change their
/// meaning. The files are valid, but only a starting point: read them, fill in missing addresses, and create keys.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    source: Source,
}

#[derive(Subcommand)]
enum Source {
    /// Pound's config.h (TOPIC, QOSTOPIC, TFTOPIC, SERVICE).
    Pound {
        /// The header.
        #[arg(value_name = "CONFIG.H")]
        file: PathBuf,
        /// YAML of Pound's network, for base_ip and rate_mbps.
        #[arg(long, value_name = "FILE")]
        network: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// A launch file of nimbro_network's senders, or the YAML with their topics.
    Nimbro {
        /// The sender's .launch or .yaml.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The sender's file of the other host, if topics come back from there.
        #[arg(long, value_name = "FILE")]
        back: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Args)]
struct Output {
    /// Folder in which to create a folder for each host; an existing file is an error and stays.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    output: PathBuf,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Outcome {
    let (imported, output) = match &options.source {
        Source::Pound {
            file,
            network,
            output,
        } => {
            let text = read(file)?;
            let network = network.as_deref().map(both).transpose()?;
            let network = network.as_ref().map(|(f, text)| (f.as_str(), text.as_str()));
            (import::pound((&shown(file), &text), network).or_input()?, output)
        }
        Source::Nimbro { file, back, output } => {
            let there = both(file)?;
            let back = back.as_deref().map(both).transpose()?;
            let files = Nimbro {
                there: (&there.0, &there.1),
                back: back.as_ref().map(|(f, text)| (f.as_str(), text.as_str())),
            };
            (import::nimbro(files, &mut named).or_input()?, output)
        }
    };
    write(&imported, &output.output)
}

fn write(imported: &Imported, folder: &Path) -> Outcome {
    let mut files = Vec::new();
    for host in &imported.hosts {
        for (name, text) in [("link.yaml", &host.link), ("bridge.yaml", &host.bridge)] {
            let path = folder.join(&host.name).join(name);
            if path.exists() {
                return Err(Failure::input(format_args!(
                    "{} exists already: move it away, or choose another folder with --output",
                    path.display()
                )));
            }
            files.push((path, text));
        }
    }
    // Whatever the input, the files written are valid.
    for host in &imported.hosts {
        let wrong = |e: &dyn std::fmt::Display| {
            Failure::job(format_args!(
                "the generated configuration is invalid ({e}): this is a bug in ropewalk"
            ))
        };
        link::Config::parse(&host.link).map_err(|e| wrong(&e))?;
        ros1::Config::parse(&host.bridge, "bridge.yaml").map_err(|e| wrong(&e))?;
    }
    for (path, text) in files {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).or_job(&format!("making {}", folder.display()))?;
        }
        std::fs::write(&path, text).or_job(&format!("writing {}", path.display()))?;
        crate::screen::say!("{}", path.display());
    }
    for note in &imported.notes {
        crate::screen::tell!("{note}");
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A file's name for display, and its text.
fn both(path: &Path) -> Result<(String, String), Failure> {
    Ok((shown(path), read(path)?))
}

fn read(path: &Path) -> Result<String, Failure> {
    text(path).map_err(|reason| Failure::input(format_args!("cannot read {}: {reason}", path.display())))
}

fn text(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    let mut text = String::new();
    let mut file = file.take(MAX_FILE + 1);
    file.read_to_string(&mut text).map_err(|e| e.to_string())?;
    Ok(text)
}

/// A file that a launch file names: `$(find PACKAGE)` is looked up in the folders above the launch file, where source
/// packages lie.
fn named(from: &str, named: &str) -> Result<(String, String), String> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).to_owned();
    let path = match named
        .strip_prefix("$(find ")
        .and_then(|rest| rest.split_once(')'))
    {
        Some((package, inside)) => {
            let inside = inside.trim_start_matches('/');
            let from = std::path::absolute(from).map_err(|e| e.to_string())?;
            let package = package.trim();
            let mut above = from.ancestors().skip(1).take(8);
            let found = above.find_map(|folder| {
                let own = folder
                    .file_name()
                    .is_some_and(|name| name == package)
                    .then(|| folder.join(inside));
                let paths = [own, Some(folder.join(package).join(inside))];
                paths.into_iter().flatten().find(|path| path.is_file())
            });
            found.ok_or_else(|| {
                format!("package {package} not found above the launch file: put the file there")
            })?
        }
        None => beside.join(named),
    };
    Ok((shown(&path), text(&path)?))
}
