//! The server against clients that break rules, over real sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use web::{
    Access, Client, Handler, Limits, Page, Push, Queue, Received, Request, Response, Server, ServerError,
    ServerOptions, Site, Status,
};

const WATCHDOG: Duration = Duration::from_secs(60);
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Greets; echoes what WebSocket clients send.
#[derive(Default)]
struct Echo {
    queues: Mutex<Vec<Arc<Queue>>>,
}

struct EchoHandler(Arc<Client>);

impl Handler for EchoHandler {
    fn received(&mut self, message: Received) {
        let body = match message {
            Received::Text(text) => text.into_bytes(),
            Received::Binary(bytes) => bytes,
        };
        push(&self.0.queue, 1, body);
    }
}

impl Site for Echo {
    fn page(&self, request: &Request) -> Response {
        Response::new(Status::Ok, Page::Text(format!("hello {}", request.path())))
    }

    fn protocol(&self, _: &Request, _: &[String]) -> Result<Option<String>, Response> {
        Ok(None)
    }

    fn open(&self, client: Arc<Client>) -> Option<Box<dyn Handler>> {
        self.queues.lock().unwrap().push(client.queue.clone());
        Some(Box::new(EchoHandler(client)))
    }
}

fn push(queue: &Queue, topic: u32, body: Vec<u8>) {
    let body = Box::new(body);
    let priority = u8::from(body.len() < 1000);
    queue.push(Push {
        topic,
        priority,
        keep: 64,
        follows: false,
        body,
    });
}

fn start(limits: Limits) -> (Server, Arc<Echo>) {
    let site = Arc::new(Echo::default());
    let access = Access::new(&[]).unwrap();
    let options = ServerOptions::new("127.0.0.1:0".parse().unwrap(), access).with_limits(limits);
    (Server::start(options, site.clone()).unwrap(), site)
}

fn connect(server: &Server) -> TcpStream {
    let socket = TcpStream::connect(server.address()).unwrap();
    socket.set_read_timeout(Some(WATCHDOG)).unwrap();
    socket
}

/// Sends a request and returns the whole answer.
fn ask(server: &Server, text: &str) -> String {
    let mut socket = connect(server);
    // The server may answer before it has everything.
    let _ = socket.write_all(text.as_bytes());
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn websocket(server: &Server) -> TcpStream {
    let mut socket = connect(server);
    let text = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n");
    socket.write_all(text.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 101 "),
        "{}",
        String::from_utf8_lossy(&head)
    );
    socket
}

/// A masked frame of a client; the mask is 0.
fn send(socket: &mut TcpStream, first: u8, payload: &[u8]) {
    let mut frame = vec![first, 0xff];
    if payload.len() < 126 {
        frame[1] = 0x80 | payload.len() as u8;
    } else {
        frame.extend((payload.len() as u64).to_be_bytes());
        if payload.len() < 65_536 {
            frame.drain(2..8);
            frame[1] = 0xfe;
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    let _ = socket.write_all(&frame);
}

/// A frame of the server: its first byte and payload. Answers pings.
fn receive(socket: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    socket.read_exact(&mut head).unwrap();
    let more = match head[1] {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mut len = vec![0; more];
    socket.read_exact(&mut len).unwrap();
    let len = match more {
        0 => head[1].into(),
        _ => len.iter().fold(0, |n, b| n << 8 | usize::from(*b)),
    };
    let mut payload = vec![0; len];
    socket.read_exact(&mut payload).unwrap();
    if head[0] == 0x89 {
        send(socket, 0x8a, &payload);
        return receive(socket);
    }
    (head[0], payload)
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < WATCHDOG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn pages_and_websockets_are_served_and_bad_requests_refused_in_a_line() {
    let (server, _) = start(Limits::default());
    let host = "Host: localhost\r\n";
    for (text, status, words) in [
        (format!("GET /a HTTP/1.1\r\n{host}\r\n"), "200", "hello /a"),
        (format!("POST /a HTTP/1.1\r\n{host}\r\n"), "405", "GET"),
        (
            "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".into(),
            "403",
            "--origin",
        ),
        (
            format!("GET / HTTP/1.1\r\n{host}Origin: https://evil.example\r\n{UPGRADE}\r\n"),
            "403",
            "https://evil.example",
        ),
        ("nonsense\r\n\r\n".into(), "400", "not a request"),
        (
            format!("GET / HTTP/1.1\r\n{host}Upgrade: websocket\r\n\r\n"),
            "400",
            "Upgrade",
        ),
        (
            format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(20_000)),
            "431",
            "16384",
        ),
    ] {
        let answer = ask(&server, &text);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{text}: {answer}"
        );
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            body.contains(words) && body.lines().count() == 1,
            "{text}: {answer}"
        );
    }
    let mut socket = websocket(&server);
    send(&mut socket, 0x81, b"echo");
    assert_eq!(receive(&mut socket), (0x82, b"echo".to_vec()));
    send(&mut socket, 0x89, b"alive?");
    assert_eq!(receive(&mut socket), (0x8a, b"alive?".to_vec()));
    send(&mut socket, 0x88, &[]);
    assert_eq!(receive(&mut socket), (0x88, vec![3, 232]));
    wait_until("it leaves", || server.connections() == 0);
}

#[test]
fn addresses_that_others_reach_need_a_token() {
    let options = ServerOptions::new("0.0.0.0:0".parse().unwrap(), Access::new(&[]).unwrap());
    let refused = Server::start(options, Arc::new(Echo::default()));
    assert!(matches!(refused, Err(ServerError::Open(_))));
}

#[test]
fn frames_that_break_rules_end_their_connection_alone() {
    let (server, _) = start(Limits::default());
    let mut good = websocket(&server);
    for (frame, status) in [
        (vec![0x82, 0x01, 7], 1002),
        (vec![0xf2, 0x80, 0, 0, 0, 0], 1002),
        (vec![0x82, 0xff, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0], 1009),
        (vec![0x81, 0x81, 0, 0, 0, 0, 0xff], 1007),
    ] {
        let mut bad = websocket(&server);
        bad.write_all(&frame).unwrap();
        let (first, payload) = receive(&mut bad);
        assert_eq!(
            (first, u16::from_be_bytes([payload[0], payload[1]])),
            (0x88, status)
        );
        assert_eq!(bad.read(&mut [0]).unwrap_or(0), 0);
    }
    send(&mut good, 0x82, &[5; 70_000]);
    assert_eq!(receive(&mut good).1, vec![5; 70_000]);
}

#[test]
fn slow_connections_are_bounded_and_others_are_served() {
    let mut limits = Limits::default();
    limits.connections = 16;
    let (server, _) = start(limits);
    let slow: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut socket = connect(&server);
            let _ = socket.write_all(b"GET / HT");
            socket
        })
        .collect();
    assert!(server.connections() <= 16);
    let answer = ask(&server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    wait_until("they end by themselves", || server.connections() == 0);
    drop(slow);
}

#[test]
fn surplus_clients_are_refused_with_503() {
    let mut limits = Limits::default();
    limits.clients = 2;
    let (server, _) = start(limits);
    let held = [websocket(&server), websocket(&server)];
    let answer = ask(
        &server,
        &format!("GET / HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}\r\n"),
    );
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(held);
    wait_until("they leave", || server.connections() == 0);
    websocket(&server);
}

#[test]
fn a_client_that_reads_nothing_is_bounded_and_disconnected_and_delays_nobody() {
    let mut limits = Limits::default();
    limits.stalled = Duration::from_secs(2);
    let (server, site) = start(limits);
    let stalled = websocket(&server);
    wait_until("it is open", || site.queues.lock().unwrap().len() == 1);
    let mut good = websocket(&server);
    wait_until("it is open", || site.queues.lock().unwrap().len() == 2);
    let queues = site.queues.lock().unwrap().clone();
    let mut most = 0;
    for n in 0..100_u32 {
        for topic in 2..8 {
            push(&queues[0], topic, vec![n as u8; 6 << 20]);
        }
        push(&queues[1], 9, n.to_le_bytes().to_vec());
        assert_eq!(receive(&mut good).1, n.to_le_bytes());
        most = most.max(queues[0].held());
    }
    assert!((6 << 20..=16 << 20).contains(&most), "{most}");
    let lost: u64 = queues[0].losses().iter().map(|(_, n)| n).sum();
    assert!(lost > 500, "{lost}");
    wait_until("it is disconnected", || server.connections() == 1);
    assert_eq!(queues[0].held(), 0);
    drop(stalled);
}
