//! Measures the time from sending a twist until the answer that it was executed: on one bus, through two link daemons,
//! and between programs that have links of their own, the latter over QUIC on this host's loopback; at 30 Hz and back
//! to back.
//!
//! ```console
//! $ cargo run --release -p ropewalk-remote --example link_latency [-- --json]
//! ```
//! It takes two minutes. Most of the time is wake-ups of threads, so run it on an otherwise idle machine.

use bus::{Bus, BusConfig};
use link::keys::Team;
use link::{Config, Daemon};
use remote::transport::link::{DirectController, DirectRobot, LinkController, LinkRobot};
use remote::transport::{ControllerEnd, RobotEnd};
use remote::{Controller, Outcome, Robot, command, types};
use ropewalk::Node;
use std::error::Error;
use std::net::UdpSocket;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().any(|a| a == "--json");
    let folder = tempfile::Builder::new().prefix("rwr").tempdir_in("/tmp")?;
    let one = make(folder.path(), "one")?;
    let (robot, controller) = on_buses(&one, &one)?;
    measure("one bus", json, robot, controller)?;
    let team = Team::create(&folder.path().join("team"), "team")?;
    let day = Duration::from_secs(86_400);
    let keys = [team.add_host("robot", day)?, team.add_host("base", day)?];
    for rate in ["unlimited", "600Mbit/s"] {
        let robots = make(folder.path(), &format!("r{}", &rate[..3]))?;
        let controllers = make(folder.path(), &format!("c{}", &rate[..3]))?;
        let sockets = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
        let [robot, base] = [sockets[0].local_addr()?, sockets[1].local_addr()?];
        drop(sockets);
        let config = |(host, keys, own): (_, &PathBuf, _), (peer, address), role: &str| {
            let services = ["command", "request", "file"].map(|class| {
                let priority = if class == "command" { 110 } else { 50 };
                format!("{{name: /r1/remote/{class}, role: {role}, priority: {priority}, depth: 64}}")
            });
            format!(
                "{{host: {host}, keys: '{}', radio: {{bind: '{own}', rate: {rate}}}, \
                 peers: [{{name: {peer}, address: '{address}'}}], services: [{}]}}",
                keys.display(),
                services.join(", ")
            )
        };
        let configs = [
            config(("robot", &keys[0], robot), ("base", base), "serve"),
            config(("base", &keys[1], base), ("robot", robot), "call"),
        ];
        measure(
            &format!("own links, rate {rate}"),
            json,
            Arc::new(DirectRobot::new(Config::parse(&configs[0])?, "r1")),
            Arc::new(DirectController::new(Config::parse(&configs[1])?, "r1")),
        )?;
        let links = [start(&configs[0], &robots)?, start(&configs[1], &controllers)?];
        let (robot, controller) = on_buses(&robots, &controllers)?;
        measure(&format!("two daemons, rate {rate}"), json, robot, controller)?;
        for (handle, thread) in links {
            handle.stop();
            thread.join().map_err(|_| "a link panicked")??;
        }
    }
    Ok(())
}

/// Creates a folder for a bus.
fn make(within: &Path, name: &str) -> std::io::Result<PathBuf> {
    let folder = within.join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

type Running = (link::Handle, std::thread::JoinHandle<Result<(), link::LinkError>>);

fn start(config: &str, folder: &Path) -> Result<Running, Box<dyn Error>> {
    let daemon = Daemon::open(Config::parse(config)?, Bus::open(BusConfig::new(folder))?)?;
    Ok((daemon.handle(), std::thread::spawn(move || daemon.run())))
}

type Ends = (Arc<dyn RobotEnd>, Arc<dyn ControllerEnd>);

fn on_buses(robots: &Path, controllers: &Path) -> Result<Ends, Box<dyn Error>> {
    let node = |name, folder| Node::with_config(name, BusConfig::new(folder));
    let robot = LinkRobot::new(&node("robot", robots)?, "r1");
    let controller = LinkController::new(&node("operator", controllers)?, "r1");
    Ok((Arc::new(robot), Arc::new(controller)))
}

fn measure(
    way: &str,
    json: bool,
    robot: Arc<dyn RobotEnd>,
    controller: Arc<dyn ControllerEnd>,
) -> Result<(), Box<dyn Error>> {
    let robot = Robot::builder("r1").end(robot).start()?;
    robot.on::<command::Twist>(|_, _| Ok(()));
    let controller = Controller::builder("operator").end(controller).start()?;
    if !controller.wait_until_found(LONG) {
        return Err("the robot was not found".into());
    }
    let twist = types::Twist::default();
    let once = || -> Result<Duration, String> {
        let start = Instant::now();
        match controller.command::<command::Twist>(&twist) {
            Outcome::Executed => Ok(start.elapsed()),
            other => Err(format!("a twist was not executed: {other:?}")),
        }
    };
    for _ in 0..100 {
        once()?;
    }
    for (pace, count, pause) in [
        ("30 Hz", 500, Duration::from_micros(33_333)),
        ("back to back", 2000, Duration::ZERO),
    ] {
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            std::thread::sleep(pause);
            all.push(once()?.as_secs_f64() * 1e3);
        }
        all.sort_by(f64::total_cmp);
        let [p50, p99, max] = [all[count / 2], all[count * 99 / 100], all[count - 1]];
        if json {
            println!(
                "{{\"way\": \"{way}\", \"pace\": \"{pace}\", \"count\": {count}, \"p50_ms\": {p50:.4}, \"p99_ms\": {p99:.4}, \
                 \"max_ms\": {max:.4}}}"
            );
        } else {
            println!(
                "{way:28} {pace:12} {count:5} twists: median {p50:.3} ms, 99 % {p99:.3} ms, most {max:.3} ms"
            );
        }
    }
    Ok(())
}
