//! Finds, builds and queries the peer programs.

use super::error::Error;
use super::group::{Group, how};
use super::line::shorten;
use super::sandbox::Sandbox;
use crate::kit::systems::System;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to print its version.
const ANSWER: Duration = Duration::from_secs(20);
/// How long building one system may take.
const BUILD: Duration = Duration::from_secs(30 * 60);
const LOOK: Duration = Duration::from_millis(50);

/// A system that can be measured.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) system: System,
    pub(crate) version: String,
    modes: Vec<String>,
    program: PathBuf,
    door: Door,
}

/// The programs that an experiment uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Door {
    /// A program for each system (`peers/CONTRACT.md`).
    Ipc,
    /// One program for all parts of the braking robot, for the systems of ROS.
    Brake,
}

impl Door {
    /// The hidden command of `ropewalk bench` for our own system.
    fn ours(self) -> &'static str {
        match self {
            Door::Ipc => "ipc-peer",
            Door::Brake => "brake-part",
        }
    }

    /// The program of another system, which is also its target of `make`.
    fn target(self, system: System) -> &'static str {
        match self {
            Door::Ipc => system.name(),
            Door::Brake => "brake",
        }
    }
}

/// A system that cannot be measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// The system.
    pub system: System,
    /// The reason, and how to fix it.
    pub why: String,
}

impl Ready {
    /// Returns whether its subscribers can poll without sleeping.
    pub(crate) fn spins(&self) -> bool {
        self.modes.iter().any(|m| m == "spin")
    }

    /// Returns whether it has services.
    pub(crate) fn calls(&self) -> bool {
        self.modes.iter().any(|m| m == "call")
    }

    /// Returns whether its subscribers are in the publisher's process.
    pub(crate) fn is_intra(&self) -> bool {
        self.modes.iter().any(|m| m == "intra")
    }

    /// Returns the command that starts the program in one of its roles.
    pub(crate) fn command(&self, role: &str) -> Command {
        command(self.door, self.system, &self.program, role)
    }
}

fn command(door: Door, system: System, program: &Path, role: &str) -> Command {
    let mut command = Command::new(program);
    if system.is_this_program() {
        command.args(["bench", door.ours()]);
    }
    command.arg(role).args(["--system", system.name()]);
    command
}

/// Returns the folder of the peers: the given one, or `peers` here or further up.
pub(crate) fn folder(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(folder) = given {
        // Peers run in another working directory.
        return std::path::absolute(folder).ok();
    }
    let here = std::env::current_dir().ok()?;
    let candidates = here.ancestors().map(|a| a.join("peers"));
    candidates.into_iter().find(|f| f.join("Makefile").is_file())
}

/// Finds `system`'s program, builds it if it is missing, and reads its version. Blocks while it builds.
pub(crate) fn prepare(
    door: Door,
    system: System,
    folder: Option<&Path>,
    sandbox: &Sandbox,
    stopped: &dyn Fn() -> bool,
) -> Result<Result<Ready, Missing>, Error> {
    let missing = |why: String| Ok(Err(Missing { system, why }));
    let program = if system.is_this_program() {
        match crate::kit::program::ropewalk() {
            Ok(program) => program,
            Err(e) => return missing(e.to_string()),
        }
    } else {
        let Some(folder) = folder else {
            let why = "there is no folder `peers` with a Makefile here or further up: start in the repository, or \
                       give the folder with --peers";
            return missing(why.into());
        };
        let program = folder.join("bin").join(door.target(system));
        if let Some(why) = build(door.target(system), &program, folder, stopped)? {
            return missing(why);
        }
        program
    };
    match ask(door, system, &program, sandbox, stopped)? {
        Ok(ready) => Ok(Ok(ready)),
        Err(why) => missing(why),
    }
}

/// Returns the library that counts copies, and builds it if it is missing; or why it is not available.
pub(crate) fn copy_counter(
    folder: Option<&Path>,
    stopped: &dyn Fn() -> bool,
) -> Result<Result<PathBuf, String>, Error> {
    let Some(folder) = folder else {
        return Ok(Err("there is no folder `peers` here or further up".into()));
    };
    let library = folder.join("bin").join("libcopycount.so");
    let why = build("copycount", &library, folder, stopped)?;
    Ok(why.map_or(Ok(library), Err))
}

/// Builds `target` unless its file exists, with the progress on standard error. Returns why it could not.
pub(crate) fn build(
    target: &str,
    file: &Path,
    folder: &Path,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<String>, Error> {
    if file.is_file() {
        return Ok(None);
    }
    let shown = folder.display();
    if !folder.join("Makefile").is_file() {
        return Ok(Some(format!(
            "{} is missing, and so is {shown}/Makefile to build it",
            file.display()
        )));
    }
    eprintln!("{target}: building it once (make -C {shown} {target})");
    let mut command = Command::new("make");
    command.arg("-C").arg(folder).arg(target);
    command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .stderr(Stdio::piped());
    let mut group = match Group::start(&mut command) {
        Ok(group) => group,
        Err(e) => return Ok(Some(format!("cannot start make ({e}): install it"))),
    };
    let errors = group.child().stderr.take();
    let last = std::thread::spawn(move || errors.map_or_else(String::new, pass_on));
    let deadline = Instant::now() + BUILD;
    let status = loop {
        let waited = group.wait(LOOK);
        match waited.map_err(|source| Error::System {
            doing: "waiting for make",
            source,
        })? {
            Some(status) => break status,
            None if stopped() => return Err(Error::Stopped),
            None if Instant::now() > deadline => {
                return Ok(Some(format!(
                    "`make -C {shown} {target}` took longer than {} minutes: run it by hand",
                    BUILD.as_secs() / 60
                )));
            }
            None => {}
        }
    };
    if !status.success() {
        let said = last.join().unwrap_or_default();
        return Ok(Some(format!(
            "`make -C {shown} {target}` {}: {said}",
            how(status)
        )));
    }
    let made = file.is_file();
    Ok((!made).then(|| format!("`make -C {shown} {target}` did not create {}", file.display())))
}

/// Copies a stream to standard error and returns the last lines that describe the problem.
fn pass_on(stream: impl Read) -> String {
    let mut last: Vec<String> = Vec::new();
    let mut stream = BufReader::new(stream);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match (&mut stream).take(4096).read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return last.join(" | "),
            Ok(_) => {}
        }
        let _ = std::io::stderr().write_all(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        if !text.trim().is_empty() {
            if last.len() == 3 {
                last.remove(0);
            }
            last.push(shorten(text.trim()));
        }
    }
}

/// Runs a program that answers at once. Returns its output, or why there is none.
pub(crate) fn hear(
    command: &mut Command,
    sandbox: &Sandbox,
    stopped: &dyn Fn() -> bool,
) -> Result<Result<String, String>, Error> {
    let shown = std::iter::once(command.get_program()).chain(command.get_args());
    let shown: Vec<_> = shown.map(|word| word.to_string_lossy().into_owned()).collect();
    let shown = shown.join(" ");
    sandbox.prepare(command);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut group = match Group::start(command) {
        Ok(group) => group,
        Err(e) => return Ok(Err(format!("cannot start {shown}: {e}"))),
    };
    let (output, errors) = (group.child().stdout.take(), group.child().stderr.take());
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stream.map(|s| s.take(64 << 10).read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let output = read(output.map(|o| Box::new(o) as _));
    let errors = read(errors.map(|e| Box::new(e) as _));
    let deadline = Instant::now() + ANSWER;
    let status = loop {
        let waited = group.wait(LOOK);
        match waited.map_err(|source| Error::System {
            doing: "waiting for a peer",
            source,
        })? {
            Some(status) => break status,
            None if stopped() => return Err(Error::Stopped),
            None if Instant::now() > deadline => {
                return Ok(Err(format!("{shown} did not answer within {ANSWER:?}")));
            }
            None => {}
        }
    };
    let (output, errors) = (
        output.join().unwrap_or_default(),
        errors.join().unwrap_or_default(),
    );
    if !status.success() {
        let said = shorten(errors.trim());
        return Ok(Err(format!("{shown} {}: {said}", how(status))));
    }
    Ok(Ok(output))
}

#[derive(Deserialize)]
struct Version {
    system: String,
    version: String,
    modes: Vec<String>,
}

fn ask(
    door: Door,
    system: System,
    program: &Path,
    sandbox: &Sandbox,
    stopped: &dyn Fn() -> bool,
) -> Result<Result<Ready, String>, Error> {
    let shown = program.display();
    let mut command = command(door, system, program, "version");
    let output = match hear(&mut command, sandbox, stopped)? {
        Ok(output) => output,
        Err(why) => return Ok(Err(why)),
    };
    let reported: Result<Version, _> = serde_json::from_str(&output);
    Ok(match reported {
        Ok(reported) if reported.system == system.name() => Ok(Ready {
            system,
            version: shorten(&reported.version),
            modes: reported.modes,
            program: program.to_owned(),
            door,
        }),
        Ok(reported) => Err(format!(
            "{shown} reports the name {:?}: build it again",
            shorten(&reported.system)
        )),
        Err(e) => Err(format!("{shown} prints no version ({e}): {:?}", shorten(&output))),
    })
}
