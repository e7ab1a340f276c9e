//! The command line of the contract.

use std::path::PathBuf;

use crate::fail;

/// The systems of a program, and its commands in addition to `version`.
pub struct Program {
    pub systems: &'static [&'static str],
    pub commands: &'static [&'static str],
}

/// The arguments; each is within its range.
#[derive(Default)]
pub struct Options {
    pub command: String,
    pub system: String,
    pub topic: String,
    pub size: usize,
    pub subscribers: usize,
    pub index: usize,
    pub warmup: u64,
    pub messages: u64,
    /// Hz; 0: as fast as publishing allows.
    pub rate: f64,
    /// Priority; 0: the ordinary scheduler.
    pub fifo: i32,
    /// Limit of the payload memory in bytes; 0: none.
    pub limit: usize,
    pub work_us: u64,
    /// Queue depth before the oldest message is lost; 0: the system's own queues.
    pub depth: usize,
    pub spin: bool,
}

impl Options {
    pub fn total(&self) -> u64 {
        self.warmup + self.messages
    }

    /// The topic as a file name.
    pub fn file_name(&self) -> String {
        self.topic.replace('/', "_")
    }
}

/// Returns the folder that all processes of a cell share.
pub fn runtime_folder() -> PathBuf {
    ["ROPEWALK_RUNTIME_DIR", "TMPDIR"]
        .iter()
        .find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
        .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Parses this process's arguments; ends the process with one line if they are invalid.
pub fn parse(program: &Program) -> Options {
    let mut arguments = std::env::args().skip(1);
    let mut o = Options {
        subscribers: 1,
        command: arguments.next().unwrap_or_default(),
        ..Options::default()
    };
    if o.command != "version" && !program.commands.contains(&o.command.as_str()) {
        fail(
            2,
            format!(
                "first argument '{}': give one of version, {}",
                o.command,
                program.commands.join(", ")
            ),
        );
    }
    while let Some(option) = arguments.next() {
        if option == "--spin" {
            o.spin = true;
            continue;
        }
        if !KNOWN.contains(&option.as_str()) {
            fail(2, format!("unknown option {option}"));
        }
        let Some(value) = arguments.next() else {
            fail(2, format!("{option} needs a value"))
        };
        let number = |low, high| number(&option, &value, low, high);
        match option.as_str() {
            "--system" => o.system = value,
            "--topic" => o.topic = value,
            "--size" => o.size = number(16, 1 << 30) as usize,
            "--subscribers" => o.subscribers = number(1, 64) as usize,
            "--index" => o.index = number(0, 63) as usize,
            "--warmup" => o.warmup = number(0, MANY),
            "--messages" => o.messages = number(1, MANY),
            "--fifo" => o.fifo = number(1, 99) as i32,
            "--limit" => o.limit = number(1, 1 << 40) as usize,
            "--work-us" => o.work_us = number(0, 60_000_000),
            "--depth" => o.depth = number(1, 256) as usize,
            _ => match value.parse::<f64>() {
                Ok(rate) if (0.0..=1e6).contains(&rate) => o.rate = rate,
                _ => fail(2, format!("--rate {value}: give 0 to 1000000 Hz")),
            },
        }
    }
    check(&o, program);
    o
}

const MANY: u64 = 100_000_000;

const KNOWN: [&str; 12] = [
    "--system",
    "--topic",
    "--size",
    "--subscribers",
    "--index",
    "--warmup",
    "--messages",
    "--rate",
    "--fifo",
    "--limit",
    "--work-us",
    "--depth",
];

fn number(option: &str, value: &str, low: u64, high: u64) -> u64 {
    match value.parse() {
        Ok(number) if (low..=high).contains(&number) => number,
        _ => fail(
            2,
            format!("{option} {value}: give a whole number from {low} to {high}"),
        ),
    }
}

fn check(o: &Options, program: &Program) {
    if !program.systems.contains(&o.system.as_str()) {
        fail(
            2,
            format!(
                "--system '{}': this program serves {}",
                o.system,
                program.systems.join(", ")
            ),
        );
    }
    if o.command == "version" {
        return;
    }
    if o.size == 0 {
        fail(2, "--size is missing: give the payload's bytes");
    }
    if o.messages == 0 {
        fail(2, "--messages is missing: give the number of measured messages");
    }
    if o.total() > MANY {
        fail(
            2,
            format!("--warmup and --messages: give at most {MANY} together"),
        );
    }
    if o.topic.is_empty() || o.topic.len() > 40 {
        fail(2, "--topic: give a name of 1 to 40 characters");
    }
    if !o
        .topic
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'/')
    {
        fail(
            2,
            format!("--topic {}: use letters, digits, _ and / only", o.topic),
        );
    }
    if o.command == "subscribe" && o.index >= o.subscribers {
        fail(2, "--index must be below --subscribers");
    }
}
