//! Measures the round trip of a twist to a robot in another process over ZeroMQ on loopback, next to ZeroMQ's bare
//! sockets.
//!
//! ```text
//! cargo run --release -p ropewalk-remote --example zmq_latency -- [--json] [--pause] [COUNT]
//! ```
//!
//! One at a time: each is sent when the previous one is answered; with `--pause` 0 to 1 ms later, when caches are
//! colder and processors asleep. Nothing spins.

use remote::transport::zmq::{AllowedKeys, KeyPair, PublicKey, ZmqController, ZmqRobot};
use remote::transport::{Class, ControllerEnd, ControllerSink, Peer, Reply, RobotEnd, RobotSink};
use remote::{Controller, Outcome, Robot, command, types};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

type Anything<T> = Result<T, Box<dyn Error>>;

fn main() -> Anything<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, keys] = &arguments[..]
        && mode == "--robot"
    {
        return robot(Path::new(keys));
    }
    let has = |option: &str| arguments.iter().any(|a| a == option);
    let count = arguments
        .iter()
        .find(|a| !a.starts_with('-'))
        .map_or(Ok(5000), |a| a.parse())?;
    measure(How {
        json: has("--json"),
        pause: has("--pause"),
        count,
    })
}

/// Serves every system until standard input ends, and prints its addresses.
fn robot(keys: &Path) -> Anything<()> {
    let context = zmq::Context::new();
    let bare = context.socket(zmq::REP)?;
    bare.bind("tcp://127.0.0.1:*")?;
    println!("{}", bare.get_last_endpoint()?.map_err(|_| "no address")?);
    std::thread::spawn(move || {
        while let Ok(message) = bare.recv_msg(0) {
            if bare.send(&message[..1], 0).is_err() {
                return;
            }
        }
    });
    let ends = ZmqRobot::own("tcp://127.0.0.1:*").open()?;
    ends.start(Arc::new(Echo))?;
    println!("{}", ends.requests_address().ok_or("no address")?);
    let v6 = ZmqRobot::plain_v6()
        .bind_v6("tcp://127.0.0.1:*", "tcp://127.0.0.1:*")
        .open()?;
    v6.start(Arc::new(Echo))?;
    println!(
        "{} {}",
        v6.requests_address().ok_or("no address")?,
        v6.telemetry_address().ok_or("no address")?
    );
    let allowed = AllowedKeys::new().with("desk", PublicKey::read(&keys.join("desk.pub"))?);
    let robot_key = KeyPair::read(&keys.join("robot"))?;
    let curve = ZmqRobot::own("tcp://127.0.0.1:*").curve(robot_key, allowed);
    let mut robots = Vec::new();
    for options in [ZmqRobot::own("tcp://127.0.0.1:*"), curve] {
        let end = Arc::new(options.open()?);
        let robot = Robot::builder("rover").end(end.clone()).start()?;
        robot.on::<command::Twist>(|_, _| Ok(()));
        println!("{}", end.requests_address().ok_or("no address")?);
        robots.push(robot);
    }
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

struct Echo;

impl RobotSink for Echo {
    fn request(&self, frame: &[u8], _: &Peer, reply: Reply) {
        let _ = reply.send(&frame[..1]);
    }
}

struct Deaf;

impl ControllerSink for Deaf {
    fn telemetry(&self, _: &[u8]) {}
    fn lost(&self, _: u64) {}
    fn connected(&self, _: bool) {}
}

const TWIST: &[u8] = b"\x0b\x0a\x06\x12\x04base\x12\x05\x0d\0\0\0\x3f\x1a\x05\x1d\0\0\x80\xbe";

#[derive(Clone, Copy)]
struct How {
    json: bool,
    pause: bool,
    count: usize,
}

fn measure(how: How) -> Anything<()> {
    let keys = tempfile::tempdir()?;
    let (robot_key, key) = (KeyPair::generate()?, KeyPair::generate()?);
    robot_key.write(&keys.path().join("robot"))?;
    key.write(&keys.path().join("desk"))?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("--robot")
        .arg(keys.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut line = || -> Anything<String> { Ok(lines.next().ok_or("the robot has ended")??) };

    let bare = zmq::Context::new().socket(zmq::REQ)?;
    bare.connect(&line()?)?;
    report(how, "bare-sockets", || {
        bare.send(TWIST, 0)?;
        bare.recv_msg(0)?;
        Ok(())
    })?;
    let own = ZmqController::own(&line()?).open()?;
    report_end(how, "ends-own", &own)?;
    let addresses = line()?;
    let (requests, telemetry) = addresses.split_once(' ').ok_or("no address")?;
    report_end(
        how,
        "ends-v6",
        &ZmqController::plain_v6(requests, telemetry).open()?,
    )?;
    let plain = ZmqController::own(&line()?);
    let curve = ZmqController::own(&line()?).curve(key, robot_key.public());
    for (what, options) in [("robot-controller", plain), ("robot-controller-curve", curve)] {
        let controller = Controller::builder("desk")
            .end(Arc::new(options.open()?))
            .start()?;
        if !controller.wait_until_found(Duration::from_secs(10)) {
            return Err("the robot was not found".into());
        }
        let body = types::Twist {
            linear: Some(types::Vector3 {
                x: 0.5,
                ..Default::default()
            }),
            ..Default::default()
        };
        report(how, what, || match controller.command::<command::Twist>(&body) {
            Outcome::Executed => Ok(()),
            other => Err(other.to_string().into()),
        })?;
        controller.stop();
    }
    child.stdin.take().ok_or("no input")?.write_all(b"\n")?;
    child.wait()?;
    Ok(())
}

fn report_end(how: How, what: &str, end: &ZmqController) -> Anything<()> {
    end.start(Arc::new(Deaf))?;
    let (sender, answers) = mpsc::channel();
    report(how, what, || {
        let sender = sender.clone();
        let done = Box::new(move |answer: Result<&[u8], _>| {
            let _ = sender.send(answer.map(|_| ()));
        });
        end.request(Class::Command, TWIST, Duration::from_secs(5), done);
        Ok(answers.recv()??)
    })?;
    end.stop();
    Ok(())
}

fn report(how: How, what: &str, mut once: impl FnMut() -> Anything<()>) -> Anything<()> {
    let How { json, pause, count } = how;
    let mut all = Vec::new();
    for n in 0..count + count / 10 {
        if pause {
            std::thread::sleep(Duration::from_micros((n as u64 * 379) % 1000));
        }
        let began = Instant::now();
        once()?;
        if n >= count / 10 {
            all.push(began.elapsed().as_secs_f64() * 1000.0);
        }
    }
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
    if json {
        println!(
            r#"{{"system":"{what}","pause":{pause},"count":{count},"latency_ms":{{"mean":{mean:.4},"p50":{p50:.4},"p99":{p99:.4},"max":{max:.4}}}}}"#
        );
    } else {
        println!("{what:<24} mean {mean:.3}  p50 {p50:.3}  p99 {p99:.3}  max {max:.3} ms");
    }
    Ok(())
}
