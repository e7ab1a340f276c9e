//! `ropewalk web`: a page for operators.

mod robots;

use super::reach::{Certificate, Guard, Reach, listen, shown_host};
use super::record::FromPage;
use crate::failure::{Failure, OrFail, Outcome};
use crate::screen::tell;
use crate::signals::Signals;
use clap::Args;
pub(crate) use robots::{Robots, Speeds};
use ropewalk::Node;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use web::page::{Dashboard, DashboardOptions};
use web::{Access, Server};

/// Show this host's links and bus on a page in the browser
///
/// Runs until Ctrl-C and prints the address to open. The page shows peers,
/// topics with their losses by reason, recent events, use of the air, a camera
/// and a laser scan, and changes priorities. Topics that no page shows are not
/// taken from the bus:
///
///   ropewalk web
///
/// With --drive, the page also drives robots of this bus, here or over a link,
/// by keys, touch or gamepad: the robot stops when the page is hidden, closed
/// or silent.
///
///   ropewalk web --drive
///
/// With --record, operators start and stop recordings of this host's bus on
/// the page; the files stay here, in the folder:
///
///   ropewalk web --record recordings
///
/// Other machines need a token, which gives a role: view, operate to change
/// settings of links and to record, or drive. Without a certificate nothing is
/// encrypted: beyond a network that you trust, give one, or use a tunnel.
///
///   ropewalk web --host 0.0.0.0 --token operate=$(openssl rand -hex 16)
///   ropewalk web --host 0.0.0.0 --token-file tokens \
///       --certificate robot.crt --key robot.key
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// The port.
    #[arg(long, short, default_value_t = 8766)]
    port: u16,
    #[command(flatten)]
    reach: Reach,
    /// Topics not to show as pictures and scans, names or patterns (may be repeated).
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    exclude: Vec<String>,
    /// Drive robots: these names or patterns, or all.
    #[arg(long, value_name = "ROBOT", num_args = 0..)]
    drive: Option<Vec<String>>,
    #[command(flatten)]
    limits: Speeds,
    #[command(flatten)]
    recording: FromPage,
    /// Read the page's files from this folder: to try changes of the page.
    #[arg(long, value_name = "FOLDER", hide = true)]
    page: Option<PathBuf>,
}

/// The page next to another command, for this machine only.
#[derive(Args, Clone)]
pub(crate) struct Beside {
    /// Also show the page for operators in a browser (see `ropewalk web --help`), for this machine only.
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "8766")]
    web: Option<u16>,
    #[command(flatten)]
    certificate: Certificate,
    #[command(flatten)]
    recording: FromPage,
}

/// A page that is shown until this is dropped, which also ends its recording.
pub(crate) struct Shown {
    site: Arc<Dashboard>,
    _server: Server,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.site.end_recording();
    }
}

impl Beside {
    /// Shows the bus of `node`, if that is wanted. The next page gets the same port.
    pub(crate) fn start(
        &mut self,
        node: impl FnOnce() -> Result<Node, Failure>,
    ) -> Result<Option<Shown>, Failure> {
        let tls = self.certificate.load()?;
        let Some(port) = self.web else {
            return match (tls, self.recording.is_given()) {
                (Some(_), _) => Err(Failure::input("--certificate is for the page: give --web, too")),
                (None, true) => Err(Failure::input("--record is for the page: give --web, too")),
                (None, false) => Ok(None),
            };
        };
        let node = node()?;
        let mut shown = DashboardOptions::default();
        shown.recorder = self.recording.recorder(&node)?;
        let site = Arc::new(Dashboard::start(node, shown).or_job("starting a thread")?);
        let access = Access::new(&[]).or_input()?.without_foxglove();
        let guard = Guard { access, tls };
        let scheme = guard.scheme();
        let address = (std::net::Ipv4Addr::LOCALHOST, port).into();
        let server = listen(address, guard, site.clone(), "--web=PORT")?;
        let port = server.address().port();
        self.web = Some(port);
        tell!("open {scheme}://localhost:{port}");
        Ok(Some(Shown {
            site,
            _server: server,
        }))
    }
}

/// Runs the server.
pub(crate) fn run(options: &Options) -> Outcome {
    for pattern in &options.exclude {
        bridge::check(pattern, true).or_input()?;
    }
    let mut shown = DashboardOptions::default();
    shown.messages.exclude.clone_from(&options.exclude);
    shown.folder.clone_from(&options.page);
    shown.limits = options.limits.limits();
    let mut guard = options.reach.guard()?;
    guard.access = guard.access.without_foxglove();
    let (has_token, scheme) = (guard.access.has_tokens(), guard.scheme());
    let signals = Signals::watch().or_job("watching signals")?;
    let node = Node::new("web").or_input()?;
    if let Some(robots) = &options.drive {
        let robots = Robots::start(node.clone(), robots).or_job("starting a thread")?;
        shown.fleet = Some(Arc::new(robots));
    }
    shown.recorder = options.recording.recorder(&node)?;
    let site = Arc::new(Dashboard::start(node, shown).or_job("starting a thread")?);
    let server = options.reach.serve(options.port, guard, site.clone())?;
    let (host, port) = (shown_host(server.address()), server.address().port());
    let token = if has_token { "/#token=TOKEN" } else { "" };
    tell!("open {scheme}://{host}:{port}{token}");
    while !signals.stopped() {
        std::thread::sleep(Duration::from_millis(50));
    }
    // Its client threads may outlive the server, and with them the site.
    site.end_recording();
    drop(server);
    Ok(())
}
