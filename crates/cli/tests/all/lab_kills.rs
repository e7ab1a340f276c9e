//! `kill -9` of every part of a lab, at every stage: nothing is left behind, and the surviving parts work.

use crate::lab::{Place, files, gone, own_namespaces, processes, received};
use crate::support::{Running, eventually};
use std::collections::BTreeSet;
use std::path::Path;

/// Network devices of this machine, among which no device of a lab may appear.
fn devices() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/sys/class/net").expect("reads").flatten();
    entries.filter_map(|e| e.file_name().into_string().ok()).collect()
}

/// Processes of this folder's labs: parts, programs inside, commands. All have the folder in their environment.
fn of(p: &Place) -> usize {
    let folder = format!("ROPEWALK_LAB_DIR={}", p.folder().display());
    let environment = |pid: u32| std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let ours = |pid: u32| {
        environment(pid)
            .split(|b| *b == 0)
            .any(|v| v == folder.as_bytes())
    };
    processes().filter(|(pid, _)| ours(*pid)).count()
}

/// No process (and so no namespace, which only processes and their descriptors hold), no device, and, after the next
/// command, no file is left.
fn nothing_is_left(p: &Place, devices_before: &BTreeSet<String>) {
    eventually("no process is left", || (of(p) == 0).then_some(()));
    assert!(p.good(&["list"]).ends_with("running: none\n"));
    assert!(files(&p.folder()).is_empty(), "{:?}", files(&p.folder()));
    assert!(devices().is_subset(devices_before));
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Up,
    Launcher,
    Emulator,
}

/// Kills one part of a lab at `stage` of its start, and checks the outcome.
fn kill_while_coming_up(p: &Place, victim: Victim, stage: &str) {
    let before = devices();
    let up = p.start(&["up", "wifi-chain-30", "--name", "k"]);
    let children = || {
        let pid = up.pid();
        let all = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        all.split_whitespace()
            .filter_map(|c| c.parse().ok())
            .collect::<Vec<u32>>()
    };
    // The launcher lives for milliseconds: poll without a pause.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let launcher = loop {
        let launcher = children();
        let seen = match stage {
            "launch" => !launcher.is_empty(),
            "emulate" => !p.emulators().is_empty(),
            _ => p.folder().join("k/control.sock").exists(),
        };
        if seen {
            break launcher;
        }
        assert!(std::time::Instant::now() < deadline, "{victim:?} at {stage}");
    };
    match victim {
        Victim::Up => up.signal(rustix::process::Signal::KILL),
        // The launcher may have finished already.
        Victim::Launcher => launcher.into_iter().for_each(kill),
        Victim::Emulator => p.emulators().into_iter().for_each(kill),
    }
    let done = up.wait();
    match (victim, done.code) {
        (Victim::Up, -1) | (_, 0) => {}
        (Victim::Launcher | Victim::Emulator, 1) => {
            assert_eq!(done.stderr.lines().count(), 1, "{victim:?} at {stage}: {done:?}");
            let reported = ["the lab did not come up", "does not answer"];
            assert!(reported.iter().any(|t| done.stderr.contains(t)), "{done:?}");
        }
        _ => panic!("{victim:?} at {stage}: {done:?}"),
    }
    // Either no lab, or a complete one that works and ends like any other.
    // The lab's lock goes from `up` to launcher to emulator: it is free only when all are gone.
    let settled = eventually("it is up, or it is not", || {
        if p.lab(&["status", "--name", "k"]).code == 0 {
            return Some(true);
        }
        p.good(&["list"]).ends_with("running: none\n").then_some(false)
    });
    if settled {
        let ping = p.good(&["exec", "--name", "k", "h1", "--", "ping", "-q", "-c", "1", "h2"]);
        assert_eq!(received(&ping), 1);
        let down = p.lab(&["down", "--name", "k"]);
        // A lab whose `up` was killed may end by itself meanwhile.
        assert!(down.code == 0 || victim == Victim::Up, "{down:?}");
    }
    nothing_is_left(p, &before);
}

#[test]
fn a_lab_that_comes_up_may_lose_any_part_at_any_stage() {
    let Some(p) = Place::new() else { return };
    for victim in [Victim::Up, Victim::Launcher, Victim::Emulator] {
        for stage in ["launch", "emulate", "socket"] {
            kill_while_coming_up(&p, victim, stage);
        }
    }
}

#[test]
fn a_lab_in_the_foreground_ends_with_its_command() {
    let Some(p) = Place::new() else { return };
    let before = devices();
    let up = p.start(&["up", "wifi-1hop", "--foreground"]);
    eventually("it is up", || (p.lab(&["status"]).code == 0).then_some(()));
    // The command holds the lab only after it has reported it as up. If killed earlier, it leaves a normal lab.
    eventually("the command holds it", || {
        let emulator = p.emulators()[0];
        let threads = std::fs::read_dir(format!("/proc/{emulator}/task")).ok()?;
        let names = threads
            .flatten()
            .filter_map(|t| std::fs::read_to_string(t.path().join("comm")).ok());
        names
            .filter(|n| n.trim() == "control")
            .count()
            .ge(&1)
            .then_some(())
    });
    up.signal(rustix::process::Signal::KILL);
    assert_eq!(up.wait().code, -1);
    nothing_is_left(&p, &before);
}

#[test]
fn killed_onlookers_leave_a_lab_that_takes_new_ones() {
    let Some(p) = Place::new() else { return };
    let before = devices();
    p.good(&["up", "wifi-1hop"]);
    let file = p.host.path("base.pcap");
    let capture = |to: &Path| p.start(&["pcap", "base", "-w", to.to_str().expect("UTF-8")]);
    let begun = |to: &Path| {
        eventually("the capture has begun", || {
            (std::fs::metadata(to).ok()?.len() == 24).then_some(())
        });
    };
    // More captures than are allowed at once, without traffic that would reveal that they are gone.
    for round in ["a", "b"] {
        let files: Vec<_> = (0..33)
            .map(|n| p.host.path(&format!("{round}{n}.pcap")))
            .collect();
        let all: Vec<Running> = files.iter().map(|f| capture(f)).collect();
        files.iter().for_each(|f| begun(f));
        for running in all {
            running.signal(rustix::process::Signal::KILL);
            assert_eq!(running.wait().code, -1);
        }
    }
    let watch = p.start(&["watch"]);
    watch.signal(rustix::process::Signal::KILL);
    watch.wait();
    let last = capture(&file);
    begun(&file);
    p.good(&["exec", "robot", "--", "ping", "-q", "-c", "1", "base"]);
    eventually("a frame is captured", || {
        (std::fs::metadata(&file).ok()?.len() > 24).then_some(())
    });
    last.signal(rustix::process::Signal::TERM);
    last.wait();
    p.good(&["down"]);
    nothing_is_left(&p, &before);
}

#[test]
fn nothing_is_left_when_a_program_or_the_emulator_is_killed() {
    let Some(p) = Place::new() else { return };
    p.good(&["up", "wifi-1hop"]);
    let emulator = p.emulators()[0];
    let namespaces = own_namespaces(emulator);
    let marker = format!("{}", 86_400 + std::process::id());
    let sleepers = || {
        processes()
            .filter(|(_, c)| c.starts_with(&format!("sleep\0{marker}")))
            .count()
    };

    // With closed streams; otherwise the reader of the streams waits for it.
    let in_background = || {
        let script = format!("setsid -f sleep {marker} >/dev/null 2>&1");
        p.good(&["exec", "base", "--", "sh", "-c", &script]);
    };

    // A program inside ends when the command that runs it is killed.
    let inside = p.start(&["exec", "robot", "--", "sleep", &marker]);
    eventually("it sleeps", || (sleepers() == 1).then_some(()));
    inside.signal(rustix::process::Signal::KILL);
    assert_eq!(inside.wait().code, -1);
    eventually("the program is gone", || (sleepers() == 0).then_some(()));
    // On a stop request, the program ends by the signal.
    let inside = p.start(&["exec", "robot", "--", "sleep", &marker]);
    eventually("it sleeps", || (sleepers() == 1).then_some(()));
    inside.signal(rustix::process::Signal::TERM);
    assert_eq!(inside.wait().code, 128 + 15);
    // The lab continues, also after the program itself is killed.
    let inside = p.start(&["exec", "robot", "--", "sleep", &marker]);
    let pid = eventually("it sleeps", || {
        processes()
            .find(|(_, c)| c.starts_with(&format!("sleep\0{marker}")))
            .map(|(pid, _)| pid)
    });
    kill(pid);
    assert_eq!(inside.wait().code, 128 + 9);
    p.good(&["exec", "robot", "--", "ping", "-q", "-c", "1", "base"]);

    // The emulator, with programs inside: two with waiting commands and one in the background.
    let waiting: Vec<Running> = ["robot", "base"]
        .iter()
        .map(|h| p.start(&["exec", h, "--", "sleep", &marker]))
        .collect();
    in_background();
    eventually("they sleep", || (sleepers() == 3).then_some(()));
    kill(emulator);
    for running in waiting {
        assert_eq!(running.wait().code, 128 + 9);
    }
    gone(&namespaces);
    eventually("no process is left", || {
        (sleepers() == 0 && p.emulators().is_empty()).then_some(())
    });
    // The next command removes the dead lab's folder, and its name is free again.
    assert!(p.good(&["list"]).ends_with("running: none\n"));
    assert!(files(&p.folder()).is_empty());
    p.good(&["up", "wifi-1hop"]);
    in_background();
    // A lab that does not answer is stopped all the same.
    let emulator = p.emulators()[0];
    let pid = rustix::process::Pid::from_raw(emulator.try_into().expect("fits")).expect("not zero");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stops");
    p.good(&["down"]);
    assert!(p.emulators().is_empty() && files(&p.folder()).is_empty());
    eventually("no process is left", || (sleepers() == 0).then_some(()));
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().expect("fits")).expect("not zero");
    // It may just have ended by itself.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
