//! `bench agent` with this machine in the role of several: real agents, killed agents, and scripts in place of agents.

use crate::support::{Done, Host, Running, address, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ropewalk");

/// An address of this machine that no other test uses.
fn own_address() -> String {
    address().replace(":7400", "")
}

/// `bench agent` with two machines, both this one, reached through a command, and an experiment of two points.
fn tiny(hz: &str) -> Vec<String> {
    let machines = format!("left={},right={}", own_address(), own_address());
    let words = [
        "bench",
        "agent",
        "--reach",
        "env",
        "--program",
        PROGRAM,
        &machines,
        "--",
        "scale",
    ];
    let points = [
        "--experiment",
        "8",
        "--quick",
        "--systems",
        "ropewalk",
        "--nodes",
        "2,4",
        "--hz",
        hz,
    ];
    let rest = [
        "--messages",
        "40",
        "--runs",
        "1",
        "--no-knees",
        "--media",
        "machines",
        "--json",
        "--out",
        "kept",
    ];
    [&words[..], &points, &rest]
        .concat()
        .iter()
        .map(|w| (*w).to_owned())
        .collect()
}

fn run(host: &Host, words: &[String]) -> Done {
    host.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn start(host: &Host, words: &[String]) -> Running {
    host.start(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|e| panic!("{e}: {done:?}"))
}

/// Processes that use the host's temporary folder and have this word among their arguments.
fn processes(host: &Host, word: &str) -> Vec<Pid> {
    let folder = host.path("t").to_string_lossy().into_owned();
    let pids = fs::read_dir("/proc").expect("reads").flatten();
    let pids = pids.filter_map(|p| p.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: &i32| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let [environment, words] =
            ["environ", "cmdline"].map(|n| String::from_utf8_lossy(&read(n)).into_owned());
        environment.contains(&folder) && words.split('\0').any(|w| w == word)
    };
    pids.filter(ours).filter_map(Pid::from_raw).collect()
}

/// All processes of a run except the coordinator.
fn agents_and_theirs(host: &Host) -> Vec<Pid> {
    let kinds = ["--serve", "scale-agent", "scale-part", "link"];
    kinds.iter().flat_map(|kind| processes(host, kind)).collect()
}

/// Waits until no agent has left a process or a folder.
fn nothing_is_left(host: &Host) {
    eventually("all processes have ended", || {
        agents_and_theirs(host).is_empty().then_some(())
    });
    eventually("all folders are gone", || {
        let left = fs::read_dir(host.path("t")).expect("reads").flatten();
        let mut left = left.filter(|e| e.file_name().to_string_lossy().starts_with("rwa-"));
        left.next().is_none().then_some(())
    });
}

#[test]
fn an_experiment_across_machines_gives_cells_and_is_kept() {
    let host = Host::new();
    let words = tiny("50");
    let done = run(&host, &words);
    assert_eq!(done.code, 0, "{done:?}");
    let first = json(&done);
    let cells = first["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 2, "{done:?}");
    for (cell, nodes) in cells.iter().zip([2, 4]) {
        let (p, m) = (&cell["params"], &cell["metrics"]);
        assert_eq!(
            (&p["medium"], &p["hosts"], &p["nodes"]),
            (&"machines".into(), &2.into(), &nodes.into())
        );
        assert!(m["delivery"].as_f64() > Some(0.5), "{cell}");
        for part in ["sender", "echo", "link"] {
            assert!(
                m["cpu_us_per_message_by_part"][part].as_f64() > Some(0.0),
                "{part}: {cell}"
            );
        }
        assert!(
            m["rtt_ms"]["mean"].as_f64() > Some(0.0) && m["memory_kib"].as_f64() > Some(0.0),
            "{cell}"
        );
    }
    let machines = &first["machine"]["machines"];
    assert_eq!(
        (&machines[0]["host"], &machines[1]["host"]),
        (&"left".into(), &"right".into()),
        "{machines}"
    );
    assert!(machines[1]["machine"]["kernel"].is_string(), "{machines}");
    let rows = host.path("kept/ropewalk-e8-machines-2hosts-4250B-40rows/50hz/4nodes/run0/sender1.csv");
    assert_eq!(fs::read_to_string(rows).expect("rows").lines().count(), 41);
    nothing_is_left(&host);
    let again = run(&host, &words);
    assert_eq!(
        (again.code, &json(&again)["cells"]),
        (0, &first["cells"]),
        "{again:?}"
    );
    assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn one_machine_is_measured_on_its_own_bus() {
    let host = Host::new();
    let done = host.run(&[
        "bench",
        "agent",
        "here",
        "--",
        "scale",
        "--experiment",
        "1",
        "--quick",
        "--systems",
        "ropewalk",
        "--hz",
        "100",
        "--messages",
        "20",
        "--runs",
        "1",
        "--no-knees",
        "--json",
    ]);
    let cell = &json(&done)["cells"][0];
    assert_eq!(
        (&cell["params"]["hosts"], &cell["metrics"]["delivery"]),
        (&1.into(), &1.0.into()),
        "{done:?}"
    );
    assert_eq!((done.code, host.left_behind()), (0, Vec::new()), "{done:?}");
}

/// Kills a process of one agent in the middle of a run.
fn killed(kind: &str) {
    let host = Host::new();
    let words = tiny("5");
    let running = start(&host, &words);
    eventually("nodes run", || {
        (processes(&host, "scale-part").len() >= 2).then_some(())
    });
    let agent = processes(&host, kind)[0];
    kill_process(agent, Signal::KILL).expect("is there");
    let done = running.wait();
    assert_eq!(done.code, 1, "{done:?}");
    let result = json(&done);
    let why = result["failed"][0]["why"].as_str().expect("a reason");
    assert!(
        why.contains(" is gone: ") && (why.contains("left") || why.contains("right")),
        "{why}"
    );
    assert!(done.stderr.contains("goes on from here"), "{done:?}");
    nothing_is_left(&host);
    // The same command measures the missing points.
    let again = run(&host, &words);
    let cells = json(&again)["cells"].as_array().map(Vec::len);
    assert_eq!((again.code, cells), (0, Some(2)), "{again:?}");
    nothing_is_left(&host);
}

#[test]
fn a_killed_agent_is_reported_and_leaves_nothing() {
    killed("scale-agent");
}

#[test]
fn an_agent_whose_parent_is_killed_is_reported_and_leaves_nothing() {
    killed("--serve");
}

/// A machine that stops responding ends the session, and the error names it. When it resumes, its processes end by
/// themselves.
#[test]
fn a_silent_machine_is_reported_and_ends_its_processes() {
    let host = Host::new();
    let words = tiny("5");
    let running = start(&host, &words);
    eventually("nodes run", || {
        (processes(&host, "scale-part").len() >= 2).then_some(())
    });
    let agent = processes(&host, "scale-agent")[0];
    kill_process(agent, Signal::STOP).expect("is there");
    let done = running.wait();
    let result = json(&done);
    let why = result["failed"][0]["why"].as_str().expect("a reason");
    assert!(
        done.code == 1
            && why.contains(" is gone: nothing was received")
            && (why.contains("left") || why.contains("right")),
        "{why}: {done:?}"
    );
    assert!(done.stderr.contains("goes on from here"), "{done:?}");
    let _ = kill_process(agent, Signal::CONT);
    nothing_is_left(&host);
    let again = run(&host, &words);
    let cells = json(&again)["cells"].as_array().map(Vec::len);
    assert_eq!((again.code, cells), (0, Some(2)), "{again:?}");
}

/// An ssh server on its own address, only for this user and with its own keys.
struct Ssh {
    server: Child,
    address: String,
}

impl Ssh {
    /// Starts the server, and writes `ssh.conf`, through which the machine `robot` is reached.
    fn start(host: &Host) -> Ssh {
        let address = own_address();
        let listener = std::net::TcpListener::bind((address.as_str(), 0)).expect("binds");
        let port = listener.local_addr().expect("bound").port();
        drop(listener);
        for key in ["server", "user"] {
            let file = host.path(key).display().to_string();
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", &file])
                .status();
            assert!(
                made.expect("ssh-keygen: apt-get install openssh-client")
                    .success()
            );
        }
        let file = |name: &str| host.path(name).display().to_string();
        // A distribution's service manager creates this folder before it starts the server.
        let _ = fs::create_dir_all("/run/sshd");
        let config = format!(
            "ListenAddress {address}\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             SetEnv TMPDIR={}\n",
            file("server"),
            file("user.pub"),
            file("t")
        );
        fs::write(host.path("sshd.conf"), config).expect("writes");
        let known = fs::read_to_string(host.path("server.pub")).expect("reads");
        fs::write(host.path("known"), format!("[{address}]:{port} {known}")).expect("writes");
        let config = format!(
            "Host robot\n HostName {address}\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n BatchMode yes\n \
             StrictHostKeyChecking yes\n UserKnownHostsFile {}\n",
            file("user"),
            file("known")
        );
        fs::write(host.path("ssh.conf"), config).expect("writes");
        let server = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &file("sshd.conf")])
            .stdin(Stdio::null())
            .stderr(fs::File::create(host.path("sshd.log")).expect("a file"))
            .spawn()
            .expect("sshd: apt-get install openssh-server");
        let ssh = Ssh { server, address };
        eventually("the server listens", || {
            std::net::TcpStream::connect((ssh.address.as_str(), port))
                .ok()
                .map(drop)
        });
        ssh
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_machine_is_reached_by_ssh_and_nothing_of_it_stays() {
    let host = Host::new();
    let ssh = Ssh::start(&host);
    let reach = format!("ssh -F {} {{host}}", host.path("ssh.conf").display());
    let machines = format!("here={},robot={}", own_address(), ssh.address);
    let mut words = tiny("50");
    for (name, value) in [("--reach", &reach), ("--program", &PROGRAM.to_owned())] {
        let at = words.iter().position(|w| w == name).expect("is there");
        words[at + 1].clone_from(value);
    }
    let at = words
        .iter()
        .position(|w| w.starts_with("left="))
        .expect("is there");
    words[at] = machines;
    let done = run(&host, &words);
    let log = || fs::read_to_string(host.path("sshd.log")).unwrap_or_default();
    assert_eq!(done.code, 0, "{done:?} {}", log());
    let result = json(&done);
    assert_eq!(result["machine"]["machines"][1]["host"], "robot", "{result}");
    for cell in result["cells"].as_array().expect("cells") {
        assert!(cell["metrics"]["delivery"].as_f64() > Some(0.5), "{cell}");
    }
    nothing_is_left(&host);
    // A connection that breaks in the middle.
    fs::remove_dir_all(host.path("kept")).expect("is there");
    let at = words.iter().position(|w| w == "50").expect("is there");
    words[at] = "5".into();
    let running = start(&host, &words);
    eventually("nodes run", || {
        (processes(&host, "scale-part").len() >= 2).then_some(())
    });
    let config = host.path("ssh.conf").display().to_string();
    let connection = processes(&host, &config)[0];
    kill_process(connection, Signal::KILL).expect("is there");
    let done = running.wait();
    assert!(
        done.code == 1 && done.stdout.contains("robot is gone"),
        "{done:?}"
    );
    nothing_is_left(&host);
}

#[test]
fn a_server_that_refuses_the_key_is_reported_with_the_fix() {
    let host = Host::new();
    let ssh = Ssh::start(&host);
    fs::write(host.path("user.pub"), "").expect("writes");
    let reach = format!("ssh -F {} {{host}}", host.path("ssh.conf").display());
    let machine = format!("robot={}", ssh.address);
    let words = [
        "bench",
        "agent",
        "--reach",
        &reach,
        &machine,
        "--",
        "scale",
        "--experiment",
        "1",
    ];
    let done = host.run(&[&words[..], &["--quick", "--systems", "ropewalk"]].concat());
    assert!(
        done.code == 1 && done.stderr.contains("Permission denied"),
        "{done:?}"
    );
    assert!(done.stderr.contains("ssh-copy-id robot"), "{done:?}");
}

#[test]
fn a_killed_node_fails_its_point_alone() {
    let host = Host::new();
    let running = start(&host, &tiny("5"));
    let node = eventually("a node runs", || processes(&host, "scale-part").first().copied());
    kill_process(node, Signal::KILL).expect("is there");
    let done = running.wait();
    let result = json(&done);
    let why = result["failed"][0]["why"].as_str().expect("a reason");
    assert!(
        why.contains("was killed by signal 9") && why.contains("ropewalk"),
        "{why}"
    );
    assert_eq!(
        (done.code, result["cells"].as_array().map(Vec::len)),
        (1, Some(1)),
        "{done:?}"
    );
    nothing_is_left(&host);
}

#[test]
fn agents_end_with_a_coordinator_that_is_killed() {
    let host = Host::new();
    let running = start(&host, &tiny("5"));
    eventually("nodes and links run", || {
        let both = processes(&host, "scale-part").len() >= 2 && processes(&host, "link").len() >= 2;
        both.then_some(())
    });
    running.signal(Signal::KILL);
    running.wait();
    nothing_is_left(&host);
}

#[test]
fn ctrl_c_ends_all_and_keeps_what_is_there() {
    let host = Host::new();
    let running = start(&host, &tiny("5"));
    eventually("nodes run", || {
        (!processes(&host, "scale-part").is_empty()).then_some(())
    });
    running.interrupt();
    let done = running.wait();
    assert!(
        done.code == 1 && done.stderr.contains("stopped before the end"),
        "{done:?}"
    );
    nothing_is_left(&host);
    assert!(host.left_behind().is_empty());
}

/// Runs a script as the agent of the machine `robot`.
fn with_script(script: &str) -> Done {
    let host = Host::new();
    let file = host.path("agent.sh");
    fs::write(&file, script).expect("writes");
    let reach = format!("sh {}", file.display());
    host.run(&[
        "bench",
        "agent",
        "--reach",
        &reach,
        "robot",
        "--",
        "scale",
        "--experiment",
        "8",
        "--quick",
        "--systems",
        "ropewalk",
        "--no-knees",
        "--hz",
        "10",
        "--nodes",
        "2",
        "--messages",
        "10",
        "--runs",
        "1",
    ])
}

#[test]
fn missing_and_invalid_agents_are_reported_with_the_fix() {
    let own = env!("CARGO_PKG_VERSION");
    let hello = |version: &str| {
        format!(
            "echo '{{\"hello\":{{\"protocol\":2,\"version\":\"{version}\",\"systems\":{{\"ropewalk\":\"1\"}}}}}}'\n"
        )
    };
    let answering = "n=0; while read -r l; do case \"$l\" in *order*) n=$((n+1)); \
                     echo \"{\\\"done\\\":{\\\"number\\\":$n,\\\"answer\\\":\\\"yes\\\"}}\";; esac; done\n";
    for (script, why) in [
        (hello("9.9.9") + "cat >/dev/null", "robot has ropewalk 9.9.9"),
        ("echo Welcome to robot!; cat >/dev/null".into(), ".bashrc"),
        ("yes | tr -d '\\n'".into(), "more than 1048576 bytes"),
        ("printf '\\377\\376\\n'; cat >/dev/null".into(), "not text"),
        ("exit 127".into(), "--program"),
        ("exit 2".into(), "older"),
        ("echo no such machine >&2; exit 3".into(), "no such machine"),
        ("echo '\"beat\"'; cat >/dev/null".into(), "before its hello"),
        (
            hello(own) + "echo '{\"done\":{\"number\":99,\"answer\":\"yes\"}}'; cat >/dev/null",
            "not given",
        ),
        (hello(own) + "read -r l; exit 0", "robot is gone"),
        (hello(own) + "echo oops; cat >/dev/null", "oops"),
        (hello(own) + answering, "a port was due"),
    ] {
        let done = with_script(&script);
        assert!(
            done.code == 1 && done.stderr.contains("robot") && done.stderr.contains(why),
            "{script}: {done:?}"
        );
    }
}

#[test]
fn impossible_options_are_refused_before_anything_runs() {
    let host = Host::new();
    let scale = ["--", "scale", "--experiment", "8"];
    for (words, code, why) in [
        (&["a=10.0.0.1,b=10.0.0.2,c=10.0.0.3"][..], 2, "even number"),
        (&["a=nowhere,b=10.0.0.2"], 2, "IPv4"),
        (&["-oProxyCommand=x,b"], 2, "unexpected argument"),
        (&["a;b"], 2, "as ssh knows it"),
        (&["localhost,b=10.0.0.2"], 2, "localhost=ADDRESS"),
        (
            &["--reach", "no-such-command", "a=10.0.0.1,b=10.0.0.2"],
            1,
            "--reach",
        ),
    ] {
        let done = host.run(&[&["bench", "agent"][..], words, &scale].concat());
        assert!(
            done.code == code && done.stderr.contains(why),
            "{words:?}: {done:?}"
        );
    }
    for (words, why) in [
        (&["scale", "--experiment", "7", "--media", "veth"][..], "--media"),
        (&["scale", "--experiment", "9", "--hosts", "4"], "2 machines"),
        (&["scale"], "--experiment"),
        (&["ipc"], "unrecognized subcommand"),
    ] {
        let done = host.run(&[&["bench", "agent", "a=10.0.0.1,b=10.0.0.2", "--"][..], words].concat());
        assert!(done.code == 2 && done.stderr.contains(why), "{words:?}: {done:?}");
    }
    let help = host.run(&["bench", "agent", "--help"]);
    assert!(
        help.code == 0 && help.stdout.contains("scale --experiment 8"),
        "{help:?}"
    );
    assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new());
}

/// An agent that the test itself talks to.
struct Agent {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Agent {
    fn start(host: &Host) -> Agent {
        let mut command = host.command(&["bench", "agent", "--serve"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let said = BufReader::new(child.stdout.take().expect("piped"));
        Agent { child, said }
    }

    fn say(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").expect("is read");
    }

    /// The next line other than a heartbeat; empty at the end.
    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            self.said.read_line(&mut line).expect("text");
            if line.trim() != "\"beat\"" {
                return line;
            }
        }
    }
}

#[test]
fn an_agent_does_what_it_knows_and_nothing_else() {
    let host = Host::new();
    let mut agent = Agent::start(&host);
    assert!(agent.hear().contains("\"hello\""));
    agent.say(r#"{"order": {"number": 1, "order": "go"}}"#);
    assert!(agent.hear().contains("no stage is set yet"));
    agent.say(r#"{"order": {"number": 2, "order": {"stage": {"addresses": ["192.0.2.1"], "here": 0, "cpu_share": 1}}}}"#);
    assert!(agent.hear().contains("none of its addresses"));
    agent.say(r#"{"order": {"number": 3, "order": {"stage": {"addresses": ["127.0.0.1"], "here": 0, "cpu_share": 1}}}}"#);
    assert!(agent.hear().contains("\"port\""));
    agent.say(r#"{"order": {"number": 4, "order": {"rows": {"sender": 0, "from": 0}}}}"#);
    assert!(agent.hear().contains("nothing runs"));
    agent.say(r#"{"order": {"number": 5, "order": {"exec": {"program": "touch x"}}}}"#);
    let bye = agent.hear();
    assert!(bye.contains("\"bye\"") && bye.contains("exec"), "{bye}");
    assert_eq!(agent.hear(), "");
    agent.child.wait().expect("ends");
    assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn hostile_lines_end_an_agent() {
    for line in [
        "garbage".to_owned(),
        "[".repeat(200_000),
        "x".repeat(2 << 20),
        "\u{0}\u{1}".to_owned(),
        r#"{"order": {"number": 1, "order": "go", "environment": {"LD_PRELOAD": "x"}}}"#.to_owned(),
    ] {
        let host = Host::new();
        let mut agent = Agent::start(&host);
        assert!(agent.hear().contains("\"hello\""));
        // The agent may end before it has read everything.
        let input = agent.child.stdin.as_mut().expect("piped");
        let _ = writeln!(input, "{line}");
        let bye = agent.hear();
        assert!(bye.contains("\"bye\"") && bye.len() < 5000, "{bye}");
        agent.child.wait().expect("ends");
        assert_eq!(host.left_behind(), Vec::<std::path::PathBuf>::new());
    }
}
