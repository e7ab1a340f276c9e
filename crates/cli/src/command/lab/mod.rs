//! `ropewalk lab`: emulated radios and bad networks.

mod loopback;
mod view;

use crate::failure::{self, Failure, OrFail, Outcome};
use crate::signals::Signals;
use ::lab::{Lab, LabError, Labs, Program, Scenario, Settings};
use clap::{Args, Subcommand};
use serde_json::json;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Run programs on emulated hosts with an emulated radio or network
///
/// A scenario names hosts and media. Each host gets its own network, name and
/// shared memory on this machine, and any program runs there. A seeded model
/// of 802.11 or of a wire decides what is lost, late or queued, and reports
/// its own timing error. Without root, the lab uses a user namespace.
///
///   ropewalk lab list
///   ropewalk lab up wifi-2hops
///   ropewalk lab exec robot -- ping -c 3 base
///   ropewalk lab set relay-base loss=20%
///   ropewalk lab status
///   ropewalk lab down
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start a scenario in the background; print its hosts and addresses
    ///
    ///   ropewalk lab up wifi-chain-5
    ///   ropewalk lab up field.yaml --name field
    #[command(verbatim_doc_comment)]
    Up {
        /// A shipped scenario (see `ropewalk lab list`) or a YAML file.
        scenario: String,
        /// Name of the lab (default: the scenario's name).
        #[arg(long)]
        name: Option<String>,
        /// TCP congestion control on the hosts, such as bbr or reno (default: the scenario's, else cubic).
        #[arg(long, value_name = "NAME")]
        congestion_control: Option<String>,
        /// Stay until Ctrl-C, then stop the lab.
        #[arg(long)]
        foreground: bool,
        /// Print the lab's state as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a program on a host and return its exit code
    ///
    ///   ropewalk lab exec robot -- iperf3 -c base -u -b 6M
    ///
    /// The program sees this machine's files, but has its own network, host name,
    /// /etc/hosts, /dev/shm and bus. ROS_IP, ROS_HOSTNAME and
    /// ROPEWALK_RUNTIME_DIR are set. If a signal ends the program, the exit code
    /// is 128 plus the signal's number.
    #[command(verbatim_doc_comment)]
    Exec {
        /// Name of the lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// Run at SCHED_FIFO 30, so that other load on this machine does not count as network jitter.
        #[arg(long)]
        fifo: bool,
        /// The host.
        host: String,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    /// Change a link, a medium or a host while the lab runs
    ///
    ///   ropewalk lab set robot-base loss=20%       # both directions, per frame;
    ///                                              # the radio retransmits
    ///   ropewalk lab set 'robot>base' delay=100ms  # one direction
    ///   ropewalk lab set wifi rate=2Mbit/s         # a whole medium
    ///   ropewalk lab set relay down                # a host's radios; `up` again
    ///
    /// Keys: rate, loss, packet_loss, delay, keep_order, reorder, duplicate, and
    /// the words `down` and `up`. Values are those of scenarios, for example
    /// loss='{gilbert: {to_bad: 1%, to_good: 30%}}' or
    /// delay='{normal: [100ms, 10ms]}'.
    #[command(verbatim_doc_comment)]
    Set {
        /// Name of the lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// HOST-HOST (both directions), HOST>HOST (one direction), a medium or a host.
        target: String,
        /// Settings such as loss=20%.
        #[arg(required = true)]
        settings: Vec<String>,
    },
    /// Show hosts, use of the air, queues, losses and the emulator's timing error.
    ///
    /// The verdict is `rerun` if the p99 of its lateness is above 0.3 ms or more than one frame was over 5 ms late.
    Status {
        /// Name of the lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Repeat every second.
        #[arg(long, conflicts_with = "json")]
        watch: bool,
    },
    /// Show the use of the air and each host's queue, live; the same as `status --watch`.
    Watch {
        /// Name of the lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
    },
    /// List the shipped scenarios and the running labs.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a scenario's YAML, to copy and change
    ///
    ///   ropewalk lab show drive-away > mine.yaml
    #[command(verbatim_doc_comment)]
    Show {
        /// A shipped scenario or a file.
        scenario: String,
    },
    /// Emulate a scenario between UDP programs on this machine; needs no root
    ///
    /// Uses the scenarios and the model of `up`, but creates no hosts. Each program
    /// has an address in 127.0.0.0/8, and sends datagrams for another host to the
    /// address that this command prints. Runs until Ctrl-C.
    ///
    ///   ropewalk lab loopback wifi-2hops \
    ///     robot=127.0.1.1:7400 base=127.0.1.2:7400
    #[command(verbatim_doc_comment)]
    Loopback(loopback::Options),
    /// Stop a lab and everything that runs in it.
    ///
    /// Without a name, stops the lab that was started in the background from this terminal (or this job, or service).
    /// Other labs belong to other programs: name one to stop it, or confirm a question.
    Down {
        /// Name of the lab; needed if none, or more than one, was started from here.
        #[arg(long, conflicts_with = "all")]
        name: Option<String>,
        /// Stop every lab of this user.
        #[arg(long)]
        all: bool,
    },
    /// Write a host's traffic as pcap, for Wireshark or tcpdump
    ///
    ///   ropewalk lab pcap base -w base.pcap
    ///   ropewalk lab pcap base | tcpdump -n -r -
    #[command(verbatim_doc_comment)]
    Pcap {
        /// Name of the lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// The host.
        host: String,
        /// Write to this file instead of standard output.
        #[arg(short = 'w', long, value_name = "FILE")]
        write: Option<PathBuf>,
        /// End after this many frames.
        #[arg(short, long, value_parser = crate::numbers::count)]
        count: Option<u64>,
    },
}

/// Hidden command that [`part`] implements.
const PART: &str = "lab-part";

/// Runs the command.
pub(crate) fn run(options: &Options) -> ExitCode {
    if let Action::Exec {
        name,
        fifo,
        host,
        program,
    } = &options.action
    {
        let ran = find(name.as_deref()).and_then(|lab| lab.run(host, program, *fifo).map_err(failure));
        return ran.map_or_else(|f| f.report(), ExitCode::from);
    }
    failure::exit_code(act(&options.action))
}

/// Runs one of a lab's internal processes.
pub(crate) fn part(arguments: &[String]) -> ExitCode {
    match program() {
        Ok(program) => ::lab::part(&program, arguments),
        Err(failure) => failure.report(),
    }
}

fn act(action: &Action) -> Outcome {
    match action {
        Action::Up {
            scenario,
            name,
            congestion_control,
            foreground,
            json,
        } => {
            let mut scenario = Scenario::load(scenario).or_input()?;
            if let Some(tcp) = congestion_control {
                scenario.set_congestion_control(tcp).or_input()?;
            }
            up(&scenario, name.as_deref(), *foreground, *json)
        }
        Action::Exec { .. } => unreachable!("returns its own exit code"),
        Action::Set {
            name,
            target,
            settings,
        } => {
            let settings = Settings::from_words(settings).or_input()?;
            find(name.as_deref())?.set(target, settings).map_err(failure)
        }
        Action::Status { name, json, watch } => {
            let lab = find(name.as_deref())?;
            match (*json, *watch) {
                (true, _) => {
                    let status = lab.status().map_err(failure)?;
                    print(&serde_json::to_string_pretty(&status).or_job("writing JSON")?)
                }
                (_, true) => view::watch(&lab),
                _ => print(view::status(&lab.status().map_err(failure)?, None).trim_end()),
            }
        }
        Action::Watch { name } => view::watch(&find(name.as_deref())?),
        Action::List { json } => list(*json),
        Action::Show { scenario } => {
            let scenario = Scenario::load(scenario).or_input()?;
            print(scenario.text().trim_end())
        }
        Action::Loopback(options) => loopback::run(options),
        Action::Down { name, all } => down(name.as_deref(), *all),
        Action::Pcap {
            name,
            host,
            write,
            count,
        } => pcap(&find(name.as_deref())?, host, write.as_ref(), *count),
    }
}

fn up(scenario: &Scenario, name: Option<&str>, foreground: bool, json: bool) -> Outcome {
    let name = name.unwrap_or(scenario.name());
    let labs = Labs::open().map_err(failure)?;
    let lab = labs.start(name, scenario, &program()?).map_err(failure)?;
    // A lab in the foreground ends with this process, even if the process is killed.
    let _held = match foreground {
        true => Some(lab.hold().map_err(failure)?),
        false => {
            lab.claim().map_err(failure)?;
            None
        }
    };
    let status = lab.status().map_err(failure)?;
    if json {
        print(&serde_json::to_string_pretty(&status).or_job("writing JSON")?)?;
    } else {
        print(view::hosts(&status).trim_end())?;
        if let Some(remark) = status.timing.remark.filter(|_| !status.timing.trusted) {
            crate::screen::tell!("{remark}");
        }
    }
    if !foreground {
        return Ok(());
    }
    let signals = Signals::watch().or_job("watching signals")?;
    while !signals.stopped() {
        if !lab.is_running() {
            return Err(Failure::job(format_args!("the lab '{name}' ended by itself")));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    lab.down().map_err(failure)
}

fn list(json: bool) -> Outcome {
    let running = Labs::open().and_then(|l| l.running()).map_err(failure)?;
    let shipped = ::lab::shipped();
    if json {
        let scenarios: Vec<_> = shipped
            .iter()
            .map(|s| json!({"name": s.name, "description": s.description}))
            .collect();
        return print(&format!(
            "{:#}",
            json!({"scenarios": scenarios, "running": running})
        ));
    }
    let width = shipped.iter().map(|s| s.name.len()).max().unwrap_or(0);
    let mut text = String::from("scenarios:\n");
    for s in &shipped {
        text.push_str(&format!("  {:width$}  {}\n", s.name, s.description));
    }
    text.push_str(&match running.is_empty() {
        true => "running: none".to_owned(),
        false => format!("running: {}", running.join(", ")),
    });
    print(&text)
}

fn down(name: Option<&str>, all: bool) -> Outcome {
    if name.is_some() {
        return find(name)?.down().map_err(failure);
    }
    let labs = Labs::open().map_err(failure)?;
    let running = labs.running().map_err(failure)?;
    let mut end = Vec::new();
    if all {
        end = running;
    } else {
        let is_own = |name: &String| labs.find(Some(name)).is_ok_and(|lab| lab.is_own());
        let own: Vec<String> = running.iter().filter(|name| is_own(name)).cloned().collect();
        match whose(&running, &own) {
            Whose::Own(name) => end.push(name),
            Whose::Unclear(text) => return Err(Failure::input(text)),
            Whose::Others(question) if confirms(&question) => end = running,
            Whose::Others(question) => {
                return Err(Failure::input(format_args!("{question} Name it with --name")));
            }
        }
    }
    for name in end {
        match labs.find(Some(&name)) {
            Ok(lab) => lab.down().map_err(failure)?,
            // The lab ended meanwhile, as requested.
            Err(LabError::Unknown { .. }) => {}
            Err(e) => return Err(failure(e)),
        }
        if !all {
            crate::screen::tell!("ended the lab '{name}'");
        }
    }
    Ok(())
}

/// The lab that `down` stops without a name.
#[derive(Debug, PartialEq)]
enum Whose {
    /// The only one started from here.
    Own(String),
    /// None, or several.
    Unclear(String),
    /// None started from here, and one started elsewhere; holds the question.
    Others(String),
}

fn whose(running: &[String], own: &[String]) -> Whose {
    match (running, own) {
        (_, [one]) => Whose::Own(one.clone()),
        ([], _) => {
            Whose::Unclear("no lab runs: start one, for example with `ropewalk lab up wifi-1hop`".into())
        }
        ([one], []) => Whose::Others(format!(
            "The lab '{one}' was not started from here, and may belong to another program."
        )),
        (all, []) => Whose::Unclear(format!(
            "{} labs run ({}), none of which was started from here: choose one with --name",
            all.len(),
            all.join(", ")
        )),
        (_, several) => Whose::Unclear(format!(
            "{} labs were started from here ({}): choose one with --name",
            several.len(),
            several.join(", ")
        )),
    }
}

/// Asks the user at the terminal; false if there is no terminal.
fn confirms(question: &str) -> bool {
    use std::io::IsTerminal;
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    crate::screen::tell!("{question} End it? [y/N]");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn pcap(lab: &Lab, host: &str, write: Option<&PathBuf>, count: Option<u64>) -> Outcome {
    let mut frames = lab.pcap(host, count).map_err(failure)?;
    let mut out: Box<dyn Write> = match write {
        Some(path) => {
            let file = std::fs::File::create(path);
            Box::new(file.map_err(|e| Failure::input(format_args!("cannot write {}: {e}", path.display())))?)
        }
        None => Box::new(crate::screen::raw()),
    };
    // Each piece is written at once, so that Ctrl-C leaves a file of whole frames.
    let mut buffer = vec![0; 64 << 10];
    loop {
        match frames.read(&mut buffer).or_job("reading frames")? {
            0 => return Ok(()),
            n => {
                let written = out.write_all(&buffer[..n]).and_then(|()| out.flush());
                // The reader of the pipe has closed it.
                if written.is_err() && write.is_none() {
                    return Ok(());
                }
                written.or_job("writing frames")?;
            }
        }
    }
}

fn find(name: Option<&str>) -> Result<Lab, Failure> {
    Labs::open().and_then(|labs| labs.find(name)).map_err(failure)
}

fn program() -> Result<Program, Failure> {
    let executable = std::env::current_exe().or_job("finding this program's file")?;
    Ok(Program {
        executable,
        command: PART,
    })
}

fn print(text: &str) -> Outcome {
    writeln!(crate::screen::stdout(), "{text}").or_job("printing")
}

/// The user's mistakes are exit code 2, all else 1.
fn failure(error: LabError) -> Failure {
    match error {
        LabError::Scenario(_)
        | LabError::Name { .. }
        | LabError::Folder { .. }
        | LabError::Unknown { .. }
        | LabError::Which(_)
        | LabError::Refused(_) => Failure::input(error),
        _ => Failure::job(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_without_a_name_ends_only_what_was_started_here() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let of = |running: &[&str], own: &[&str]| whose(&names(running), &names(own));
        assert_eq!(of(&["bench", "mine"], &["mine"]), Whose::Own("mine".into()));
        assert!(matches!(of(&["bench"], &[]), Whose::Others(q) if q.contains("'bench'")));
        for (running, own, says) in [
            (&["a", "b"][..], &[][..], "none of which"),
            (&["a", "b"], &["a", "b"], "choose one"),
            (&[], &[], "no lab runs"),
        ] {
            assert!(
                matches!(of(running, own), Whose::Unclear(t) if t.contains(says)),
                "{running:?}"
            );
        }
    }
}
