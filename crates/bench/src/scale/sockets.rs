//! Bytes that wait in the sockets of a run's processes, from `/proc`.

use super::counters::tree;
use super::measured::{InSockets, Lost};
use super::watch::Parts;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of a network namespace that list its sockets.
const LISTS: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];
/// For a listening socket, "received" counts connections, not bytes.
const LISTENS: &str = "0A";

/// Bytes of a socket: sent and not acknowledged, received and not read.
type Waiting = [u64; 2];

/// Returns the process with the most bytes waiting in its sockets.
pub(super) fn fullest(parts: &Parts) -> Option<InSockets> {
    // Many processes share a namespace, whose lists are long.
    let mut namespaces: BTreeMap<PathBuf, BTreeMap<u64, Waiting>> = BTreeMap::new();
    let mut most: Option<InSockets> = None;
    for (part, pids) in parts {
        for pid in pids {
            let mut sum = Waiting::default();
            for pid in tree(*pid) {
                let folder = PathBuf::from(format!("/proc/{pid}"));
                let Ok(namespace) = fs::read_link(folder.join("ns/net")) else {
                    continue;
                };
                let all = namespaces
                    .entry(namespace)
                    .or_insert_with(|| of_namespace(&folder.join("net")));
                for waiting in inodes(&folder.join("fd")).filter_map(|inode| all.get(&inode)) {
                    (0..2).for_each(|i| sum[i] = sum[i].saturating_add(waiting[i]));
                }
            }
            let [to_send, to_read] = sum;
            let part = (*part).to_owned();
            let process = InSockets {
                part,
                to_send,
                to_read,
            };
            if most.as_ref().is_none_or(|m| m.most() < process.most()) {
                most = Some(process);
            }
        }
    }
    most
}

/// Returns the losses in all namespaces of the processes since the namespaces began.
pub(super) fn lost(parts: &Parts) -> Lost {
    let namespace = |pid: &u32| {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        Some((fs::read_link(folder.join("ns/net")).ok()?, folder.join("net")))
    };
    let namespaces: BTreeMap<PathBuf, PathBuf> = parts.values().flatten().filter_map(namespace).collect();
    let mut sum = Lost::default();
    for net in namespaces.values() {
        let read = |name: &str| fs::read_to_string(net.join(name)).unwrap_or_default();
        let (four, six) = (read("snmp"), read("snmp6"));
        let of = |name, protocol, name6| table(&four, protocol, name).saturating_add(line(&six, name6));
        sum.add(&Lost {
            datagrams: of("RcvbufErrors", "Udp:", "Udp6RcvbufErrors"),
            frames: read("dev").lines().map(device_drops).fold(0, u64::saturating_add),
            fragments: of("ReasmFails", "Ip:", "Ip6ReasmFails"),
            parts: in_parts(&read("sockstat")).saturating_add(in_parts(&read("sockstat6"))),
        });
    }
    sum
}

/// From `/proc/net/sockstat`: datagrams with some fragments received.
fn in_parts(list: &str) -> u64 {
    let mut lines = list.lines().filter(|l| l.starts_with("FRAG"));
    let number = lines.next().and_then(|l| l.split_ascii_whitespace().nth(2));
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns a number of `/proc/net/snmp`, which has for each protocol a line of names above one of numbers.
fn table(list: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = list
        .lines()
        .map(str::split_ascii_whitespace)
        .filter_map(|mut words| {
            let first = words.next()?;
            (first == protocol).then_some(words)
        });
    let at = lines.next().and_then(|mut names| names.position(|n| n == name));
    let number = lines.next().zip(at).and_then(|(mut numbers, at)| numbers.nth(at));
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns a number of `/proc/net/snmp6`, which has a name and a number in each line.
fn line(list: &str, name: &str) -> u64 {
    let mut lines = list.lines().filter_map(|l| l.split_once(char::is_whitespace));
    let number = lines.find(|(n, _)| *n == name);
    number.and_then(|(_, n)| n.trim().parse().ok()).unwrap_or(0)
}

/// Sums the fourth number of both directions in a line of `/proc/net/dev`; each direction has eight numbers.
fn device_drops(line: &str) -> u64 {
    let Some((_, numbers)) = line.split_once(':') else {
        return 0;
    };
    let numbers: Vec<u64> = numbers
        .split_ascii_whitespace()
        .map_while(|n| n.parse().ok())
        .collect();
    let number = |i| numbers.get(i).copied().unwrap_or(0);
    number(3).saturating_add(number(11))
}

/// Returns the sockets by inode.
fn of_namespace(net: &Path) -> BTreeMap<u64, Waiting> {
    let lists = LISTS.map(|name| fs::read_to_string(net.join(name)).unwrap_or_default());
    lists.iter().flat_map(|l| l.lines()).filter_map(parse).collect()
}

/// Parses a line of `/proc/net/tcp` or `udp` (proc(5)): the tenth word is the inode, the fifth the queues in
/// hexadecimal.
fn parse(line: &str) -> Option<(u64, Waiting)> {
    let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let [_, _, _, state, queues, .., inode] = words[..] else {
        return None;
    };
    let (sent, received) = queues.split_once(':')?;
    let bytes = |text| u64::from_str_radix(text, 16).ok();
    let waiting = [bytes(sent)?, bytes(received)?];
    (words.len() == 10 && state != LISTENS).then_some((inode.parse().ok()?, waiting))
}

/// Returns the inodes of the sockets among a process's descriptors.
fn inodes(descriptors: &Path) -> impl Iterator<Item = u64> {
    fs::read_dir(descriptors)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            let inode = target
                .to_str()?
                .strip_prefix("socket:[")?
                .strip_suffix(']')?
                .parse();
            inode.ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn unread_bytes_in_sockets_are_counted() {
        let parts = Parts::from([("echo", vec![std::process::id()])]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let mut sender = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
        let (_receiver, _) = listener.accept().expect("accepts");
        sender.set_nonblocking(true).expect("sets");
        while sender.write(&[7; 1 << 16]).is_ok() {}
        let udp = UdpSocket::bind("127.0.0.1:0").expect("binds");
        udp.send_to(&[7; 100], udp.local_addr().expect("bound"))
            .expect("sends");
        let fullest = fullest(&parts).expect("a process");
        assert_eq!(fullest.part, "echo");
        assert!(
            fullest.to_send > 100_000 && fullest.to_read > 10_000,
            "{fullest:?}"
        );
    }

    #[test]
    fn datagrams_for_which_there_is_no_room_are_counted() {
        let parts = Parts::from([("echo", vec![std::process::id()])]);
        let before = lost(&parts);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let address = socket.local_addr().expect("bound");
        for _ in 0..10_000 {
            socket.send_to(&[7; 1000], address).expect("sends");
        }
        assert!(lost(&parts).datagrams > before.datagrams);
        let list = "Udp: InDatagrams RcvbufErrors Ip\nUdp: 5 17 3\nUdpLite: RcvbufErrors\nUdpLite: 9\n";
        let of = |list| table(list, "Udp:", "RcvbufErrors");
        assert_eq!(of(list), 17);
        for odd in [
            "",
            "Udp: RcvbufErrors\nUdp:\n",
            "Udp: a\nUdp: RcvbufErrors\n",
            "Udp:",
        ] {
            assert_eq!(of(odd), 0, "{odd}");
        }
        assert_eq!(in_parts("UDP: inuse 1 mem 4\nFRAG: inuse 12 memory 512\n"), 12);
        assert_eq!(
            in_parts("FRAG:\n") + in_parts("FRAG: inuse x\n") + in_parts(""),
            0
        );
        let list = "Ip6InReceives   4\nIp6ReasmFails           \t23\n";
        assert_eq!((line(list, "Ip6ReasmFails"), line(list, "Ip6")), (23, 0));
        assert_eq!(device_drops("  eth: 1 2 3 40 5 6 7 8 9 10 11 12 13 14 15 16"), 52);
        for odd in ["", " face |bytes", "eth:", "eth: 1 2 3 -4"] {
            assert_eq!(device_drops(odd), 0, "{odd}");
        }
    }

    #[test]
    fn lines_are_read_or_left() {
        let line = |queues: &str, state: &str| {
            format!(
                "   0: 0100007F:1F90 0100007F:9C42 {state} {queues} 00:00000000 00000000  1000 0 4711 1 0 20"
            )
        };
        assert_eq!(parse(&line("0000001F:00000A00", "01")), Some((4711, [31, 2560])));
        for odd in [
            line("0000001F:00000A00", LISTENS),
            line("0000001F", "01"),
            line("zz:00", "01"),
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode".into(),
            line("1:1", "01").replace("4711", "-1"),
            "0: 1 2 01 1:1".into(),
            String::new(),
        ] {
            assert_eq!(parse(&odd), None, "{odd}");
        }
    }
}
