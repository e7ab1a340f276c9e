//! `ropewalk foxglove`: topics for Foxglove, Lichtblick and PlotJuggler.

use crate::failure::{Failure, OrFail, Outcome};
use crate::screen::tell;
use crate::signals::Signals;
use clap::{Args, ValueEnum};
use ropewalk::Node;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use web::foxglove::{Dialect, Foxglove, FoxgloveOptions};
use web::{Access, Role, Server, ServerError, ServerOptions, Token};

/// The longest file of tokens, in bytes.
const MAX_FILE: u64 = 64 << 10;

/// Show this host's bus in Foxglove, Lichtblick or PlotJuggler
///
/// Runs until Ctrl-C and prints the address to open. A topic is taken from
/// the bus only while somebody watches it:
///
///   ropewalk foxglove                          # look, from this machine
///   ropewalk foxglove --allow-publish /cmd_vel # and drive with Teleop
///
/// Other machines need a token, which gives a role: view, operate (change
/// settings of links) or drive (publish, call services). Nothing is
/// encrypted: beyond a network that you trust, use a tunnel.
///
///   ropewalk foxglove --host 0.0.0.0 --token view=$(openssl rand -hex 16)
///
/// Settings of a link on this bus are parameters there, such as
/// /link/NAME/topics/scan/priority.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The port.
    #[arg(long, short, default_value_t = 8765)]
    port: u16,
    /// Address at which it listens; 0.0.0.0 for all addresses of this host, which needs a token.
    #[arg(long, alias = "address", value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// A token and the role it gives (view, operate, drive; default view); other users of this machine can see it in
    /// the list of processes, unlike --token-file (may be repeated).
    #[arg(long = "token", value_name = "[ROLE=]TOKEN")]
    tokens: Vec<String>,
    /// A file with one [ROLE=]TOKEN a line.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Serialization; auto: CDR for programs such as PlotJuggler, else ROS 1's.
    #[arg(long = "as", value_enum, default_value_t = As::Auto)]
    dialect: As,
    /// A topic, or a pattern such as /cmd/*, that clients with the role drive may publish (may be repeated).
    #[arg(long, alias = "client-topic-whitelist", value_name = "PATTERN")]
    allow_publish: Vec<String>,
    /// Topics to show, names or patterns such as /camera/* (may be repeated; default: all).
    #[arg(long, alias = "topic-whitelist", value_name = "PATTERN", num_args = 1..)]
    topics: Vec<String>,
    /// Topics not to show, names or patterns (may be repeated).
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    exclude: Vec<String>,
    /// A folder of packages, or one package, whose files clients may fetch as package://PACKAGE/FILE (may be repeated).
    #[arg(long, value_name = "DIR")]
    assets: Vec<PathBuf>,
    /// A web site whose pages may connect, besides that of app.foxglove.dev (may be repeated).
    #[arg(long = "origin", value_name = "URL")]
    origins: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum As {
    Ros1,
    Ros2,
    Auto,
}

/// Runs the server.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut shown = FoxgloveOptions::default();
    shown.dialect = match options.dialect {
        As::Ros1 => Dialect::Ros1,
        As::Ros2 => Dialect::Ros2,
        As::Auto => Dialect::Auto,
    };
    for pattern in options
        .topics
        .iter()
        .chain(&options.exclude)
        .chain(&options.allow_publish)
    {
        bridge::check(pattern, true).or_input()?;
    }
    shown.topics = options.topics.clone();
    shown.exclude = options.exclude.clone();
    shown.allow_publish = options.allow_publish.clone();
    for folder in &options.assets {
        if !folder.is_dir() {
            let folder = folder.display();
            return Err(Failure::input(format_args!(
                "--assets {folder}: there is no such folder"
            )));
        }
    }
    shown.assets = options.assets.clone();
    let access = access(options)?;
    let has_token = access.has_tokens();
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("foxglove").or_input()?;
    let site = Arc::new(Foxglove::start(node, shown).or_job("starting a thread")?);
    let address = SocketAddr::new(options.host, options.port);
    let server = Server::start(ServerOptions::new(address, access), site.clone()).map_err(|e| match e {
        ServerError::Open(_) => Failure::input(format_args!(
            "{e}: give --token or --token-file, or leave --host out"
        )),
        ServerError::Listen { .. } => {
            Failure::job(format_args!("{e}: another program may use it; try --port"))
        }
        e => Failure::job(e),
    })?;
    print_address(server.address(), has_token);
    while !signals.stopped() {
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(server);
    Ok(())
}

/// Access of clients.
fn access(options: &Options) -> Result<Access, Failure> {
    let mut access = Access::new(&options.origins).or_input()?;
    let mut lines = options.tokens.clone();
    if let Some(file) = &options.token_file {
        lines.extend(token_file(file)?);
    }
    for line in lines {
        let (role, token) = line.split_once('=').unwrap_or(("view", &line));
        let role = match role {
            "view" => Role::View,
            "operate" => Role::Operate,
            "drive" => Role::Drive,
            _ => {
                return Err(Failure::input(
                    "a token's role is view, operate or drive: write view=TOKEN",
                ));
            }
        };
        access = access.with_token(Token::new(role, token).or_input()?);
    }
    Ok(access)
}

fn token_file(path: &Path) -> Result<Vec<String>, Failure> {
    let fail =
        |problem: &dyn std::fmt::Display| Failure::input(format_args!("{}: {problem}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| fail(&e))?;
    if meta.len() > MAX_FILE {
        return Err(fail(&"too long for a file of tokens"));
    }
    let text = std::fs::read_to_string(path).map_err(|e| fail(&e))?;
    let lines = text.lines().map(str::trim);
    let tokens: Vec<_> = lines
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(str::to_owned)
        .collect();
    match tokens.is_empty() {
        true => Err(fail(&"no token in it: write one [ROLE=]TOKEN a line")),
        false => Ok(tokens),
    }
}

/// Prints where to connect, without the tokens themselves.
fn print_address(address: SocketAddr, has_token: bool) {
    let host = match address.ip() {
        ip if ip.is_unspecified() => "THIS-HOST".to_owned(),
        ip if ip.is_loopback() => "localhost".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    let query = if has_token { "/?token=TOKEN" } else { "" };
    let url = format!("ws://{host}:{}{query}", address.port());
    let quoted = url
        .replace(':', "%3A")
        .replace('/', "%2F")
        .replace('?', "%3F")
        .replace('=', "%3D");
    tell!("open {url} in Foxglove, Lichtblick or PlotJuggler");
    tell!("or https://app.foxglove.dev/?ds=foxglove-websocket&ds.url={quoted}");
}
