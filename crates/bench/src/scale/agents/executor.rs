//! An agent: carries out one order after another.

use super::inbox::{Inbox, Numbered, Over, say};
use super::launcher::{Launcher, RunNodes, Stage, find};
use super::protocol::{self, Answer, Hello, Order, PROTOCOL, RADIOS, Report, Run};
use crate::kit::error::Error;
use crate::kit::error::RunError;
use crate::kit::site::Ground;
use crate::machine;
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Options that an agent receives from its parent process.
#[derive(Args, Clone, Debug)]
pub struct Work {
    /// The folder of the peers.
    #[arg(long)]
    peers: Option<PathBuf>,
}

/// Works until the coordinator ends it or is gone; then ends everything that it started.
///
/// # Errors
/// [`Error`]: the reason why it cannot work.
pub fn work(options: &Work) -> Result<(), Error> {
    let inbox = Inbox::watch()?;
    let worked = obey(options, &inbox);
    if let Some(Over::Odd(why)) = inbox.over() {
        let why = protocol::said(&format!("the coordinator said {why}"));
        say(&Report::Bye { why });
    }
    if inbox.is_orphaned() {
        // The parent process created this folder, and would have removed it.
        let folder = std::env::temp_dir();
        if super::parent::is_ours(&folder) {
            let _ = fs::remove_dir_all(folder);
        }
    }
    worked
}

fn obey(options: &Work, inbox: &Inbox) -> Result<(), Error> {
    let over = || inbox.over().is_some();
    let ground = Ground::new("rwb-agent-", &over)?;
    let (programs, missing) = match find(&ground, options.peers.as_deref()) {
        Ok(found) => found,
        Err(RunError::Stopped) => return Ok(()),
        Err(RunError::Failed(why)) => return Err(Error::Nothing(why)),
    };
    let versions = programs.0.iter().map(|(s, p)| (s.name().to_owned(), p.1.clone()));
    let mut machine = machine::describe();
    machine.insert(RADIOS.into(), machine::radios().into());
    say(&Report::Hello(Box::new(Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").into(),
        machine,
        systems: versions.collect(),
        missing,
    })));
    inbox.beat()?;
    let launcher = Launcher {
        executable: ground.executable.clone(),
        programs,
        inbox: inbox.clone(),
    };
    let mut next = inbox.next();
    while let Some((number, order)) = next {
        next = match order {
            Order::Stage {
                addresses,
                here,
                cpu_share,
            } => match Stage::set(addresses, here, cpu_share) {
                Ok((stage, port)) => {
                    done(number, Answer::Port { port });
                    on_stage(&launcher, stage)
                }
                Err(why) => refused(inbox, number, &why),
            },
            _ => refused(inbox, number, "no stage is set yet"),
        };
    }
    Ok(())
}

/// Carries out orders until another stage is wanted; returns that order.
fn on_stage(launcher: &Launcher, mut stage: Stage) -> Option<Numbered> {
    let inbox = &launcher.inbox;
    let mut next = inbox.next();
    loop {
        let (number, order) = next?;
        next = match order {
            Order::Stage { .. } => return Some((number, order)),
            Order::Master => {
                match stage.master(inbox) {
                    Ok(port) => done(number, Answer::Port { port }),
                    Err(why) => refuse(number, &why),
                }
                inbox.next()
            }
            Order::Run(run) => in_run(launcher, &stage, number, &run),
            // For a run that did not start.
            Order::End => {
                done(number, Answer::Drops(Default::default()));
                inbox.next()
            }
            _ => refused(inbox, number, "nothing runs"),
        };
    }
}

/// Starts a run and carries out its orders until it is over; returns the first order that is not part of it.
fn in_run(launcher: &Launcher, stage: &Stage, number: u64, run: &Run) -> Option<Numbered> {
    let inbox = &launcher.inbox;
    let news = || inbox.has_news();
    let mut run_nodes = match RunNodes::start(launcher, stage, run, &news) {
        Ok(run_nodes) => run_nodes,
        Err(RunError::Failed(why)) => return refused(inbox, number, &why),
        Err(RunError::Stopped) => return inbox.next(),
    };
    done(number, Answer::Yes);
    let mut is_well = true;
    loop {
        while is_well && !inbox.has_news() {
            let heard = run_nodes.listen();
            for (node, line) in run_nodes.lines() {
                say(&Report::Said {
                    run: run.number,
                    node,
                    line,
                });
            }
            if let Err(why) = heard {
                is_well = false;
                let why = protocol::said(&why);
                say(&Report::Failed { run: run.number, why });
            }
        }
        let (number, order) = inbox.next()?;
        match order {
            Order::Go => {
                run_nodes.go();
                done(number, Answer::Yes);
            }
            Order::Look => {
                run_nodes.look();
                done(number, Answer::Yes);
            }
            Order::Load => done(number, Answer::Load(Box::new(run_nodes.load()))),
            Order::Stop => {
                run_nodes.stop();
                done(number, Answer::Yes);
            }
            Order::Join => match run_nodes.join() {
                Ok(()) => done(number, Answer::Yes),
                Err(RunError::Failed(why)) => refuse(number, &why),
                Err(RunError::Stopped) => refuse(number, "it was stopped"),
            },
            Order::Rows { sender, from } => match run_nodes.rows(sender, from) {
                Ok(rows) => done(number, rows),
                Err(why) => refuse(number, &why),
            },
            Order::End => {
                match run_nodes.end(inbox) {
                    Ok(drops) => done(number, Answer::Drops(drops)),
                    Err(RunError::Failed(why)) => refuse(number, &why),
                    Err(RunError::Stopped) => {}
                }
                return inbox.next();
            }
            other => return Some((number, other)),
        }
    }
}

fn done(number: u64, answer: Answer) {
    say(&Report::Done { number, answer });
}

fn refuse(number: u64, why: &str) {
    say(&Report::Refused {
        number,
        why: protocol::said(why),
    });
}

/// Refuses an order, and returns the next one.
fn refused(inbox: &Inbox, number: u64, why: &str) -> Option<Numbered> {
    refuse(number, why);
    inbox.next()
}
