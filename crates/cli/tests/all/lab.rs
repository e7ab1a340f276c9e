//! Labs: real namespaces, real devices, real programs inside.
//!
//! They need /dev/net/tun, namespaces, `ping` and `ip`. Where those are missing, a test prints so and passes, except in
//! CI.

use crate::support::{Done, Host, Running, eventually, finish};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder for labs; dropping it ends all of them.
pub(crate) struct Place {
    pub(crate) host: Host,
}

impl Place {
    /// `None` where labs cannot be tested.
    pub(crate) fn new() -> Option<Place> {
        Place::with(&[])
    }

    /// `None` where labs cannot be tested, or one of these programs is not installed.
    pub(crate) fn with(programs: &[&str]) -> Option<Place> {
        let problem = missing(programs).err();
        let place = Place { host: Host::new() };
        match problem {
            None => Some(place),
            Some(problem) => {
                assert!(
                    std::env::var_os("CI").is_none(),
                    "labs cannot be tested in CI: {problem}"
                );
                eprintln!("\n*** SKIPPED: labs cannot be tested here: {problem} ***\n");
                None
            }
        }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.host.path("labs")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.host.command(&["lab"]);
        command.args(args).env("ROPEWALK_LAB_DIR", self.folder());
        command
    }

    pub(crate) fn lab(&self, args: &[&str]) -> Done {
        finish(self.command(args))
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdin(Stdio::null());
        Running::spawn(command)
    }

    pub(crate) fn good(&self, args: &[&str]) -> String {
        let done = self.lab(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        done.stdout
    }

    fn refused(&self, args: &[&str], code: i32) -> String {
        let done = self.lab(args);
        assert_eq!(
            (done.code, done.stderr.lines().count()),
            (code, 1),
            "{args:?}: {done:?}"
        );
        done.stderr
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.good(&["status", "--json"])).expect("is JSON")
    }

    /// The process ids of the labs' emulators.
    pub(crate) fn emulators(&self) -> Vec<u32> {
        self.parts("emulate")
    }

    /// The process ids of one of the labs' internal processes.
    pub(crate) fn parts(&self, part: &str) -> Vec<u32> {
        let (folder, part) = (self.folder(), format!("\0{part}\0"));
        let folder = folder.to_str().expect("is UTF-8");
        processes()
            .filter(|(_, command)| command.contains(&part) && command.contains(folder))
            .map(|(pid, _)| pid)
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.lab(&["down", "--all"]);
    }
}

/// The reason why labs cannot be tested.
fn missing(more: &[&str]) -> Result<(), String> {
    for program in ["ping", "ip", "setpriv", "unshare"].iter().chain(more) {
        let found = Command::new(program)
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if found.is_err() {
            return Err(format!("`{program}` is not installed (tests/lab/apt.txt)"));
        }
    }
    if !rustix::process::geteuid().is_root() {
        return Err("not root".into());
    }
    let tun = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun");
    tun.map(|_| ()).map_err(|e| format!("/dev/net/tun: {e}"))
}

pub(crate) fn processes() -> impl Iterator<Item = (u32, String)> {
    let entries = std::fs::read_dir("/proc").expect("reads").flatten();
    entries.filter_map(|e| {
        let pid = e.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read(e.path().join("cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&command).into_owned()))
    })
}

/// The namespaces of a process and those that it holds by descriptors, such as `net:[4026531840]`.
fn namespaces_of(pid: u32) -> BTreeSet<String> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let links = ["ns", "fd"]
        .into_iter()
        .flat_map(|d| std::fs::read_dir(proc.join(d)).into_iter().flatten());
    links
        .flatten()
        .filter_map(|l| {
            std::fs::read_link(l.path())
                .ok()?
                .into_os_string()
                .into_string()
                .ok()
        })
        .filter(|l| {
            ["net:[", "mnt:[", "uts:[", "ipc:[", "pid:[", "user:["]
                .iter()
                .any(|k| l.starts_with(k))
        })
        .collect()
}

/// The namespaces that only this process and its children have.
pub(crate) fn own_namespaces(pid: u32) -> BTreeSet<String> {
    let ours = namespaces_of(std::process::id());
    namespaces_of(pid).difference(&ours).cloned().collect()
}

/// Waits until no process is in, or holds, any of these namespaces.
pub(crate) fn gone(namespaces: &BTreeSet<String>) {
    eventually("the lab's namespaces are gone", || {
        let held = processes().any(|(pid, _)| !namespaces_of(pid).is_disjoint(namespaces));
        (!held).then_some(())
    });
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| e.path()).collect()
}

/// Number of replies that `ping -q` reports.
pub(crate) fn received(ping: &str) -> u32 {
    let words: Vec<&str> = ping.split_whitespace().collect();
    let at = words.iter().position(|w| w.starts_with("received")).expect(ping);
    words[at - 1].parse().expect("a number")
}

#[test]
fn a_lab_comes_up_carries_and_goes() {
    let Some(p) = Place::new() else { return };
    let shown = p.good(&["up", "wifi-1hop"]);
    assert!(shown.contains("robot") && shown.contains("10.77.0.2"), "{shown}");
    let status = p.status();
    let hosts: Vec<(&str, &str)> = status["hosts"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|h| {
            (
                h["name"].as_str().expect("text"),
                h["address"].as_str().expect("text"),
            )
        })
        .collect();
    assert_eq!(hosts, [("robot", "10.77.0.1"), ("base", "10.77.0.2")]);

    let ping = p.good(&[
        "exec", "robot", "--", "ping", "-q", "-c", "5", "-i", "0.05", "base",
    ]);
    assert_eq!(received(&ping), 5, "{ping}");
    let status = p.status();
    let wifi = &status["media"][0];
    assert_eq!(
        (wifi["name"].as_str(), wifi["delivered_frames"].as_u64()),
        (Some("wifi"), Some(10))
    );
    assert_eq!(wifi["hosts"][0]["attempts"], 5);
    assert!(wifi["hosts"][1]["air_s"].as_f64().expect("a number") > 0.0);
    assert_eq!(status["timing"]["events"], 10);
    assert_eq!(
        status["hosts"][0]["refused_frames"], 0,
        "neither ARP nor IPv6 leaves a host"
    );

    // Environment of a program on its host.
    let script =
        "hostname; echo $ROS_IP $ROS_HOSTNAME $ROPEWALK_RUNTIME_DIR; pwd; touch /dev/shm/mine; exit 7";
    let inside = p.lab(&["exec", "base", "--", "sh", "-c", script]);
    let folder = std::fs::canonicalize(p.host.path("")).expect("is there");
    let expected = format!("base\n10.77.0.2 base /dev/shm/ropewalk\n{}\n", folder.display());
    assert_eq!((inside.code, inside.stdout), (7, expected));
    assert_eq!(p.good(&["exec", "base", "--", "ls", "/dev/shm"]), "mine\n");
    assert_eq!(
        p.good(&["exec", "robot", "--", "ls", "/dev/shm"]),
        "",
        "hosts share no memory"
    );
    assert_eq!(
        p.lab(&["exec", "robot", "--", "sh", "-c", "kill -9 $$"]).code,
        137
    );
    let fifo = p.good(&[
        "exec",
        "--fifo",
        "robot",
        "--",
        "sh",
        "-c",
        "cut -d' ' -f41 /proc/$$/stat",
    ]);
    assert_eq!(fifo.trim(), "1", "SCHED_FIFO");

    assert!(
        p.refused(&["exec", "nobody", "--", "true"], 2)
            .contains("no host 'nobody'; there are robot, base")
    );
    assert!(
        p.refused(&["exec", "base", "--", "/nonexistent"], 1)
            .contains("cannot run /nonexistent")
    );
    assert!(p.refused(&["up", "wifi-1hop"], 1).contains("already running"));
    assert!(p.good(&["list"]).ends_with("running: wifi-1hop\n"));

    let emulator = p.emulators()[0];
    let namespaces = own_namespaces(emulator);
    // Each host's ipc, mnt, net and uts, and the emulator's mnt, net and pid.
    assert_eq!(namespaces.len(), 11, "{namespaces:?}");
    p.good(&["down"]);
    gone(&namespaces);
    assert!(
        p.emulators().is_empty() && files(&p.folder()).is_empty(),
        "{:?}",
        files(&p.folder())
    );
    assert!(p.refused(&["status"], 2).contains("no lab runs"));
}

#[test]
fn programs_of_two_hosts_speak_over_the_lab_only() {
    let Some(p) = Place::new() else { return };
    p.good(&["up", "ethernet"]);
    // The same port on both hosts and nothing of this machine's network.
    let devices = p.good(&["exec", "robot", "--", "ls", "/proc/sys/net/ipv4/conf"]);
    assert_eq!(
        devices.split_whitespace().collect::<Vec<_>>(),
        ["all", "default", "eth", "lo"]
    );
    // Each host has its own bus.
    let bin = env!("CARGO_BIN_EXE_ropewalk");
    let message = [
        "topic",
        "pub",
        "/x",
        "std_msgs/String",
        "data: hello",
        "--rate",
        "5",
    ];
    let publisher = p.start(&[&["exec", "base", "--", bin][..], &message[..]].concat());
    let topics = |host: &str| p.lab(&["exec", host, "--", bin, "topic", "list"]).stdout;
    eventually("the topic is on base's bus", || {
        topics("base").contains("/x").then_some(())
    });
    assert!(!topics("robot").contains("/x"));
    publisher.interrupt();
    assert_eq!(publisher.wait().code, 0);
}

/// Reads the algorithm of a connection to a closed port: refused, but under the host's own settings.
const ASK_TCP: &str = "import socket
s = socket.socket()
s.setblocking(False)
try: s.connect(('base', 9))
except OSError: pass
print(s.getsockopt(6, 13, 16).rstrip(b'\\0').decode())";

#[test]
fn tcp_is_cubic_or_what_was_asked_for() {
    let Some(p) = Place::with(&["python3"]) else {
        return;
    };
    let tcp = || p.good(&["exec", "robot", "--", "python3", "-c", ASK_TCP]);
    p.good(&["up", "wifi-2hops"]);
    // Over a relay.
    assert_eq!(tcp(), "cubic\n", "whatever this machine's default is");
    assert_eq!(p.status()["congestion_control"], "cubic");
    p.good(&["down"]);
    p.good(&["up", "wifi-1hop", "--congestion-control", "reno"]);
    assert_eq!(tcp(), "reno\n", "to a neighbour");
    p.good(&["down"]);
    let file = p.host.path("reno.yaml");
    let text =
        "congestion_control: reno\nhosts: [robot, base]\nmedia:\n  - {name: air, wifi: {rate: 6Mbit/s}}\n";
    std::fs::write(&file, text).expect("writes");
    p.good(&["up", file.to_str().expect("UTF-8")]);
    assert_eq!(tcp(), "reno\n", "as the scenario says");

    let unknown = p.refused(&["up", "wifi-1hop", "--congestion-control", "nosuch"], 1);
    assert!(
        unknown.contains("no TCP congestion control 'nosuch' (it has ")
            && unknown.contains("modprobe tcp_nosuch"),
        "{unknown}"
    );
    let no_name = p.refused(&["up", "wifi-1hop", "--congestion-control", "no name"], 2);
    assert!(no_name.contains("'no name' cannot be"), "{no_name}");
}

#[test]
fn two_seconds_one_way_by_the_packets_own_times() {
    let Some(p) = Place::new() else { return };
    p.good(&["up", "delay-2000-one-way"]);
    let file = p.host.path("ping.pcap");
    let capture = p.start(&[
        "pcap",
        "controller",
        "-c",
        "2",
        "-w",
        file.to_str().expect("UTF-8"),
    ]);
    eventually("the capture has begun", || {
        (std::fs::metadata(&file).ok()?.len() == 24).then_some(())
    });
    let ping = p.good(&["exec", "controller", "--", "ping", "-q", "-c", "1", "robot"]);
    assert_eq!(received(&ping), 1, "{ping}");
    assert_eq!(capture.wait().code, 0);
    let times = pcap_times(&std::fs::read(&file).expect("reads"));
    let [request, reply] = times[..] else {
        panic!("{times:?}")
    };
    let ms = (reply - request) as f64 / 1e6;
    assert!((2000.0..2500.0).contains(&ms), "{ms} ms");
}

/// Times in nanoseconds of the frames of a nanosecond pcap file.
fn pcap_times(file: &[u8]) -> Vec<u64> {
    let word = |at: usize| {
        u64::from(u32::from_le_bytes(
            file[at..at + 4].try_into().expect("four bytes"),
        ))
    };
    assert_eq!((word(0), word(20)), (0xa1b2_3c4d, 1), "nanoseconds, Ethernet");
    let (mut times, mut at) = (Vec::new(), 24);
    while at < file.len() {
        times.push(word(at) * 1_000_000_000 + word(at + 4));
        at += 16 + word(at + 8) as usize;
    }
    times
}

#[test]
fn a_fifth_of_the_packets_is_lost_each_way() {
    let Some(p) = Place::new() else { return };
    p.good(&["up", "loss-20"]);
    let ping = p.lab(&[
        "exec",
        "controller",
        "--",
        "ping",
        "-q",
        "-c",
        "2000",
        "-i",
        "0.002",
        "robot",
    ]);
    let back = f64::from(received(&ping.stdout));
    // 5.5 standard deviations of a binomial variable: a correct model fails one run in ten million.
    let within = |n: f64, p: f64, seen: f64| (seen - n * p).abs() <= 5.5 * (n * p * (1.0 - p)).sqrt();
    assert!(within(2000.0, 0.64, back), "{back} of 2000");
    let hosts = p.status()["media"][0]["hosts"].clone();
    let lost = |host: usize| hosts[host]["drops"]["path_loss"].as_f64().expect("some");
    assert!(within(2000.0, 0.2, lost(0)), "{hosts}");
    assert!(within(2000.0 - lost(0), 0.2, lost(1)), "{hosts}");
}

#[test]
fn settings_change_while_it_runs() {
    let Some(p) = Place::new() else { return };
    p.good(&["up", "wifi-2hops", "--name", "field"]);
    let ping = |from: &str, to: &str| {
        p.lab(&[
            "exec", from, "--", "ping", "-q", "-c", "2", "-i", "0.1", "-W", "1", to,
        ])
    };
    assert_eq!(ping("robot", "base").code, 0, "over the relay's kernel");
    p.good(&["set", "relay-base", "loss=100%"]);
    assert_eq!((ping("robot", "base").code, ping("robot", "relay").code), (1, 0));
    p.good(&["set", "relay-base", "loss=0%"]);
    assert_eq!(ping("robot", "base").code, 0);
    p.good(&["set", "relay", "down"]);
    assert_eq!(ping("robot", "relay").code, 1);
    p.good(&["set", "--name", "field", "relay", "up"]);
    assert_eq!(ping("robot", "relay").code, 0);
    p.good(&["set", "wifi", "packet_loss=100%"]);
    assert_eq!(ping("robot", "relay").code, 1);
    p.good(&["set", "wifi", "packet_loss=0", "rate=54Mbit/s"]);
    assert_eq!(ping("robot", "base").code, 0);
    // A later setting also overrides individual values.
    p.good(&["set", "relay-base", "packet_loss=100%"]);
    assert_eq!(ping("relay", "base").code, 1);
    p.good(&["set", "wifi", "packet_loss=0%"]);
    assert_eq!(ping("relay", "base").code, 0);
    p.good(&["set", "base", "down"]);
    let dead = p.refused(&["set", "relay-base", "up"], 2);
    assert!(dead.contains("set 'base' up first"), "{dead}");
    p.good(&["set", "base", "up"]);

    for (args, expected) in [
        (
            &["set", "robot-base", "loss=1%"][..],
            "no medium joins robot and base directly",
        ),
        (&["set", "robot-bas", "loss=1%"], "is neither a link"),
        (&["set", "wifi", "loss=120%"], "a loss is a share"),
        (&["set", "wifi", "loss"], "'loss' sets nothing"),
        (&["set", "wifi", "speed=1"], "unknown field `speed`"),
        (&["set", "wifi", "rate=1bit/s"], "give one"),
        (
            &["set", "--name", "other", "wifi", "down"],
            "no lab named 'other' is running; running: field",
        ),
    ] {
        let said = p.refused(args, 2);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
}

#[test]
fn a_team_hears_what_is_for_all_and_dscp_chooses_the_queue() {
    let Some(p) = Place::new() else { return };
    p.good(&["up", "team-of-8"]);
    let captures: Vec<(PathBuf, Running)> = (2..=8)
        .map(|n| {
            let file = p.host.path(&format!("{n}.pcap"));
            let host = format!("robot{n}");
            let running = p.start(&["pcap", &host, "-c", "1", "-w", file.to_str().expect("UTF-8")]);
            (file, running)
        })
        .collect();
    for (file, _) in &captures {
        eventually("the capture has begun", || {
            (std::fs::metadata(file).ok()?.len() == 24).then_some(())
        });
    }
    // To a group without members: no host answers.
    let sent = p.lab(&[
        "exec",
        "robot1",
        "--",
        "ping",
        "-q",
        "-c",
        "1",
        "-W",
        "1",
        "-Q",
        "184",
        "239.1.2.3",
    ]);
    assert_eq!(sent.code, 1, "{sent:?}");
    for (file, running) in captures {
        assert_eq!(running.wait().code, 0);
        let frame = &std::fs::read(&file).expect("reads")[24 + 16..];
        assert_eq!(
            (&frame[..3], &frame[30..34]),
            (&[0x01, 0x00, 0x5e][..], &[239, 1, 2, 3][..])
        );
    }
    let status = p.status();
    let first = &status["media"][0]["hosts"][0]["categories"];
    let attempts = |name: &str| {
        let all = first.as_array().expect("an array").iter();
        all.filter(|c| c["name"] == name)
            .map(|c| c["attempts"].as_u64().expect("a number"))
            .sum::<u64>()
    };
    // Once for all seven, and without an acknowledgement.
    assert_eq!((attempts("AC_VO"), attempts("AC_BE")), (1, 0), "{first}");
}

#[test]
fn planned_events_happen_at_their_time() {
    let Some(p) = Place::new() else { return };
    let file = p.host.path("later.yaml");
    let text = "hosts: [a, b]\nmedia:\n  - {name: air, wifi: {rate: 6Mbit/s}}\nevents:\n  - {at: 1s, target: a>b, set: {down: true}}\n";
    std::fs::write(&file, text).expect("writes");
    p.good(&["up", file.to_str().expect("UTF-8")]);
    let uptime = |s: &Value| s["uptime_s"].as_f64().expect("a number");
    let ping = || {
        p.lab(&["exec", "a", "--", "ping", "-q", "-c", "1", "-W", "1", "b"])
            .code
    };
    let first = ping();
    // A slow start proves nothing.
    if uptime(&p.status()) < 1.0 {
        assert_eq!(first, 0);
    }
    eventually("the link goes down", || (uptime(&p.status()) > 1.1).then_some(()));
    assert_eq!(ping(), 1);
    let drops = p.status()["media"][0]["hosts"][0]["drops"].clone();
    assert!(
        drops["air"].as_u64().or(drops["outage"].as_u64()).is_some(),
        "{drops}"
    );
}

#[test]
fn sixty_four_hosts_come_up_and_go() {
    let Some(p) = Place::new() else { return };
    p.good(&["up", "wifi-chain-64"]);
    let status = p.status();
    let names: Vec<&str> = status["hosts"]
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|h| h["name"].as_str())
        .collect();
    let chain: Vec<String> = (1..=64).map(|n| format!("h{n}")).collect();
    assert_eq!(names, chain);
    let pings: Vec<Running> = (1..=64)
        .map(|n| {
            let (host, next) = (format!("h{n}"), format!("h{}", if n < 64 { n + 1 } else { 63 }));
            p.start(&[
                "exec", &host, "--", "ping", "-q", "-c", "2", "-i", "0.2", "-W", "5", &next,
            ])
        })
        .collect();
    for ping in pings {
        let done = ping.wait();
        assert_eq!((done.code, received(&done.stdout)), (0, 2), "{done:?}");
    }
    let far = p.good(&["exec", "h1", "--", "ping", "-q", "-c", "1", "-W", "5", "h64"]);
    assert_eq!(received(&far), 1, "over 62 relays");
    let namespaces = own_namespaces(p.emulators()[0]);
    assert!(namespaces.len() >= 64 * 4, "{}", namespaces.len());
    p.good(&["down"]);
    gone(&namespaces);
    assert!(files(&p.folder()).is_empty());
}

/// A user without privileges, with a /dev/net/tun as Debian's udev creates it.
#[test]
fn without_root_a_user_namespace_does() {
    let Some(p) = Place::new() else { return };
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let may = Command::new("setpriv")
        .args(nobody)
        .args(["unshare", "-Urn", "true"])
        .status();
    if !may.is_ok_and(|s| s.success()) {
        assert!(
            std::env::var_os("CI").is_none(),
            "this kernel gives users no namespaces"
        );
        eprintln!("\n*** SKIPPED: this kernel gives users no namespaces ***\n");
        return;
    }
    let program = p.host.path("ropewalk");
    std::fs::copy(env!("CARGO_BIN_EXE_ropewalk"), &program).expect("copies");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(p.host.path(""), open).expect("opens the folder");
    let run = |tun: &str, args: &[&str]| {
        let script = format!(
            "mount -t tmpfs none /dev/net && {tun} && exec setpriv {} \"$@\"",
            nobody.join(" ")
        );
        let mut command = Command::new("unshare");
        command
            .args(["-m", "sh", "-c", &script, "sh"])
            .arg(&program)
            .arg("lab")
            .args(args);
        command
            .current_dir("/")
            .env("ROPEWALK_LAB_DIR", p.host.path("nobody"));
        finish(command)
    };
    let usual = "mknod -m 666 /dev/net/tun c 10 200";
    let closed = run("mknod -m 600 /dev/net/tun c 10 200", &["up", "wifi-1hop"]);
    assert_eq!((closed.code, closed.stderr.lines().count()), (1, 1), "{closed:?}");
    assert!(
        closed.stderr.contains("sudo chmod 666 /dev/net/tun"),
        "{closed:?}"
    );
    let none = run("true", &["up", "wifi-1hop"]);
    assert!(none.code == 1 && none.stderr.contains("modprobe tun"), "{none:?}");

    let up = run(usual, &["up", "wifi-1hop"]);
    assert_eq!(up.code, 0, "{up:?}");
    assert!(up.stderr.contains("not to be trusted"), "{up:?}");
    let inside = run(
        "true",
        &[
            "exec",
            "robot",
            "--",
            "sh",
            "-c",
            "hostname && id -u && ping -q -c 3 -i 0.2 base",
        ],
    );
    assert!(
        inside.code == 0 && inside.stdout.starts_with("robot\n0\n"),
        "{inside:?}"
    );
    assert_eq!(received(&inside.stdout), 3);
    let status = run("true", &["status", "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).expect("is JSON");
    assert_eq!(
        (&status["timing"]["trusted"], &status["congestion_control"]),
        (&Value::Bool(false), &"cubic".into())
    );
    assert_eq!(run("true", &["down"]).code, 0);
    assert!(files(&p.host.path("nobody")).is_empty());
}

#[test]
fn bad_scenarios_are_refused_before_anything_is_up() {
    let host = Host::new();
    let lab = |args: &[&str]| {
        let mut command = host.command(&["lab"]);
        command.args(args).env("ROPEWALK_LAB_DIR", host.path("labs"));
        finish(command)
    };
    let file = host.path("bad.yaml");
    std::fs::write(
        &file,
        "hosts: [a, b]\nmedia:\n  - {name: air, wifi: {rate: 6Mbit/s, speed: 1}}\n",
    )
    .expect("writes");
    let refused = lab(&["up", file.to_str().expect("UTF-8")]);
    assert_eq!(refused.code, 2);
    let place = format!("ropewalk: {}:3:", file.display());
    assert!(
        refused.stderr.starts_with(&place) && refused.stderr.contains("unknown field `speed`"),
        "{refused:?}"
    );
    for (args, expected) in [
        (&["up", "wifi-1hops"][..], "perhaps wifi-1hop"),
        (&["up", "nowhere.yaml"], "cannot read the scenario nowhere.yaml"),
        (&["up", "wifi-chain-251"], "give 2 to 250"),
        (&["up", "wifi-1hop", "--name", "a/b"], "cannot be a lab's name"),
        (&["show", "nothing"], "ropewalk lab list"),
    ] {
        let refused = lab(args);
        assert_eq!(
            (refused.code, refused.stderr.lines().count()),
            (2, 1),
            "{args:?}: {refused:?}"
        );
        assert!(refused.stderr.contains(expected), "{args:?}: {refused:?}");
    }
    // A shipped scenario can be copied and parsed again.
    let shown = lab(&["show", "drive-away"]);
    assert!(
        shown.code == 0 && shown.stdout.contains("rate: 2Mbit/s"),
        "{shown:?}"
    );
    let list: Value = serde_json::from_str(&lab(&["list", "--json"]).stdout).expect("is JSON");
    assert!(
        list["scenarios"].as_array().is_some_and(|s| s.len() >= 12),
        "{list}"
    );
}
