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

/// Runs programs on emulated hosts with an emulated radio or a bad network between them.
///
/// A scenario names hosts and media; each host gets its own network, name and shared memory on this machine, and any
/// program runs there. What is lost, late or queued is decided by a model of 802.11 or of a wire, seeded, which reports
/// its own timing error. Without root it uses a user namespace.
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
    /// Brings up a scenario in the background, and prints its hosts and addresses.
    ///
    ///   ropewalk lab up wifi-chain-5
    ///   ropewalk lab up field.yaml --name field
    #[command(verbatim_doc_comment)]
    Up {
        /// A shipped scenario (see `ropewalk lab list`) or a YAML file.
        scenario: String,
        /// The lab's name, if not the scenario's.
        #[arg(long)]
        name: Option<String>,
        /// What TCP on the hosts uses to find its rate, if not what the scenario says, or `cubic`; such as bbr, reno.
        #[arg(long, value_name = "NAME")]
        congestion_control: Option<String>,
        /// Stay until Ctrl-C, then take it down.
        #[arg(long)]
        foreground: bool,
        /// Print the lab's state as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Runs a program on a host and gives back its exit code.
    ///
    ///   ropewalk lab exec robot -- iperf3 -c base -u -b 6M
    ///
    /// The program sees this machine's files, and of its own the network, the host name, /etc/hosts, /dev/shm and the
    /// bus. ROS_IP, ROS_HOSTNAME and ROPEWALK_RUNTIME_DIR are set. A signal that ends it gives 128 and its number.
    #[command(verbatim_doc_comment)]
    Exec {
        /// The lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// At SCHED_FIFO 30, so that this machine's other load does not count as the network's jitter.
        #[arg(long)]
        fifo: bool,
        /// The host.
        host: String,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    /// Changes a link, a medium or a host while the lab runs.
    ///
    ///   ropewalk lab set robot-base loss=20%        # both ways; frames on the air, which the radio repairs
    ///   ropewalk lab set 'robot>base' delay=100ms   # one way
    ///   ropewalk lab set wifi rate=2Mbit/s          # a whole medium
    ///   ropewalk lab set relay down                 # a host's radios; `up` again
    ///
    /// Keys: rate, loss, packet_loss, delay, keep_order, reorder, duplicate, and the words `down` and `up`. Values are
    /// those of scenarios: loss='{gilbert: {to_bad: 1%, to_good: 30%}}', delay='{normal: [100ms, 10ms]}'.
    #[command(verbatim_doc_comment)]
    Set {
        /// The lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// HOST-HOST (both ways), HOST>HOST (one way), a medium or a host.
        target: String,
        /// Settings such as loss=20%.
        #[arg(required = true)]
        settings: Vec<String>,
    },
    /// Shows hosts, use of the air, queues, losses, and how well the emulator kept its time.
    ///
    /// The verdict is `rerun` if the p99 of its lateness is above 0.3 ms or more than one frame was over 5 ms late.
    Status {
        /// The lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Go on showing, every second.
        #[arg(long, conflicts_with = "json")]
        watch: bool,
    },
    /// Shows live the use of the air and the queue of each host; the same as `status --watch`.
    Watch {
        /// The lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
    },
    /// Lists the shipped scenarios and the running labs.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints a scenario's YAML, to copy and change.
    ///
    ///   ropewalk lab show drive-away > mine.yaml
    #[command(verbatim_doc_comment)]
    Show {
        /// A shipped scenario or a file.
        scenario: String,
    },
    /// Carries UDP datagrams between this machine's own programs as a scenario would; needs no rights.
    ///
    /// The same scenarios and the same model as `up`, but no hosts: each program keeps an address of its own in
    /// 127.0.0.0/8, and sends what is for another host to the address that is printed. Goes on until Ctrl-C.
    ///
    ///   ropewalk lab loopback wifi-2hops robot=127.0.1.1:7400 base=127.0.1.2:7400
    #[command(verbatim_doc_comment)]
    Loopback(loopback::Options),
    /// Ends a lab and everything that runs in it.
    ///
    /// Without a name it is the one that was started in the background from this terminal (or this job, or service). Others
    /// belong to other programs: they are ended by name, or after a question.
    Down {
        /// The lab; needed if none, or more than one, was started here.
        #[arg(long, conflicts_with = "all")]
        name: Option<String>,
        /// Every lab of this user.
        #[arg(long)]
        all: bool,
    },
    /// Writes what passes between a host and the emulator as pcap, for Wireshark or tcpdump.
    ///
    ///   ropewalk lab pcap base -w base.pcap
    ///   ropewalk lab pcap base | tcpdump -n -r -
    #[command(verbatim_doc_comment)]
    Pcap {
        /// The lab; needed only if several run.
        #[arg(long)]
        name: Option<String>,
        /// The host.
        host: String,
        /// A file instead of standard output.
        #[arg(short = 'w', long, value_name = "FILE")]
        write: Option<PathBuf>,
        /// End after so many frames.
        #[arg(short, long, value_parser = crate::numbers::count)]
        count: Option<u64>,
    },
}

/// The hidden command that [`part`] serves.
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

/// Runs one of a lab's own processes.
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
        Action::Exec { .. } => unreachable!("gives an exit code of its own"),
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
    // A lab in the foreground does not outlive this process, not even one that is killed.
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
                return Err(Failure::input(format_args!("{question} Name it by --name")));
            }
        }
    }
    for name in end {
        match labs.find(Some(&name)) {
            Ok(lab) => lab.down().map_err(failure)?,
            // It ended meanwhile, which is what was asked for.
            Err(LabError::Unknown { .. }) => {}
            Err(e) => return Err(failure(e)),
        }
        if !all {
            crate::screen::tell!("ended the lab '{name}'");
        }
    }
    Ok(())
}

/// Which lab `down` means without a name.
#[derive(Debug, PartialEq)]
enum Whose {
    /// The only one that was started here.
    Own(String),
    /// None, or several.
    Unclear(String),
    /// None that was started here, and one that was started elsewhere: the question.
    Others(String),
}

fn whose(running: &[String], own: &[String]) -> Whose {
    match (running, own) {
        (_, [one]) => Whose::Own(one.clone()),
        ([], _) => {
            Whose::Unclear("no lab runs: start one, for example with `ropewalk lab up wifi-1hop`".into())
        }
        ([one], []) => Whose::Others(format!(
            "The lab '{one}' was not started from here, and may be another program's."
        )),
        (all, []) => Whose::Unclear(format!(
            "{} labs run ({}), none of which was started from here: name one by --name",
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

/// Asks who sits at the terminal; no where nobody does.
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
    // Each piece goes on at once: Ctrl-C leaves a file of whole frames.
    let mut buffer = vec![0; 64 << 10];
    loop {
        match frames.read(&mut buffer).or_job("reading frames")? {
            0 => return Ok(()),
            n => {
                let written = out.write_all(&buffer[..n]).and_then(|()| out.flush());
                // Whoever read along has seen enough.
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

/// What the user wrote wrong is exit code 2, all else 1.
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
