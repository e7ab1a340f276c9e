//! The server with a certificate of its own, over real sockets.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use web::{
    Access, Client, Handler, Limits, Page, Push, Received, Request, Response, Role, Server, ServerOptions,
    Site, Status, Tls, Token,
};

const WATCHDOG: Duration = Duration::from_secs(60);
const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// Greets; echoes what WebSocket clients send.
struct Echo;

struct EchoHandler(Arc<Client>);

impl Handler for EchoHandler {
    fn received(&mut self, message: Received) {
        let body = match message {
            Received::Text(text) => text.into_bytes(),
            Received::Binary(bytes) => bytes,
        };
        self.0.queue.push(Push {
            topic: 1,
            priority: 1,
            keep: 64,
            follows: false,
            body: Box::new(body),
        });
    }
}

impl Site for Echo {
    fn page(&self, request: &Request) -> Response {
        let text = match request.path() {
            "/long" => "x".repeat(3_000_000),
            path => format!("hello {path}"),
        };
        Response::new(Status::Ok, Page::Text(text))
    }

    fn protocol(&self, _: &Request, _: &[String]) -> Result<Option<String>, Response> {
        Ok(None)
    }

    fn open(&self, client: Arc<Client>) -> Option<Box<dyn Handler>> {
        Some(Box::new(EchoHandler(client)))
    }
}

/// A folder with certificates of `localhost` and `robot.local`, each signed by itself, and their keys.
struct Files(tempfile::TempDir);

impl Files {
    fn make() -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        for name in ["one", "other"] {
            let names = vec!["localhost".to_owned(), "robot.local".to_owned()];
            let made = rcgen::generate_simple_self_signed(names).unwrap();
            files.write(&format!("{name}.crt"), &made.cert.pem());
            files.write(&format!("{name}.key"), &made.signing_key.serialize_pem());
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn start(&self, limits: Limits) -> Server {
        let tls = Tls::load(&self.path("one.crt"), &self.path("one.key")).unwrap();
        let token = Token::new(Role::Drive, "a-token-of-the-test").unwrap();
        let access = Access::new(&[]).unwrap().with_token(token);
        let options = ServerOptions::new("127.0.0.1:0".parse().unwrap(), access)
            .with_limits(limits)
            .with_tls(Some(tls));
        Server::start(options, Arc::new(Echo)).unwrap()
    }

    /// Connects as a client that trusts the certificate.
    fn connect(&self, server: &Server) -> Encrypted {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_file(self.path("one.crt")).unwrap();
        roots.add(certificate).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("robot.local").unwrap();
        let client = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(client, plain(server))
    }

    /// Sends a request and returns the whole answer, which has to end properly.
    fn ask(&self, server: &Server, text: &str) -> String {
        let mut socket = self.connect(server);
        socket.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }
}

fn plain(server: &Server) -> TcpStream {
    let socket = TcpStream::connect(server.address()).unwrap();
    socket.set_read_timeout(Some(WATCHDOG)).unwrap();
    socket
}

fn get(path: &str, more: &str) -> String {
    format!("GET {path}?token=a-token-of-the-test HTTP/1.1\r\nHost: robot.local:8766\r\n{more}\r\n")
}

fn websocket(files: &Files, server: &Server) -> Encrypted {
    let mut socket = files.connect(server);
    socket.write_all(get("/", UPGRADE).as_bytes()).unwrap();
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

/// A masked binary frame of a client; the mask is 0.
fn send(socket: &mut impl Write, payload: &[u8]) {
    let mut frame = vec![0x82, 0xff];
    frame.extend((payload.len() as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(payload);
    socket.write_all(&frame).unwrap();
}

/// The payload of a frame of the server of at least 64 KiB. Pings stay unanswered, since both directions are full.
fn receive(socket: &mut impl Read) -> Vec<u8> {
    let mut head = [0; 2];
    socket.read_exact(&mut head).unwrap();
    if head == [0x89, 4] {
        socket.read_exact(&mut [0; 4]).unwrap();
        return receive(socket);
    }
    assert_eq!(head, [0x82, 127]);
    let mut len = [0; 8];
    socket.read_exact(&mut len).unwrap();
    let len = u64::from_be_bytes(len);
    let mut payload = vec![0; usize::try_from(len).unwrap()];
    socket.read_exact(&mut payload).unwrap();
    payload
}

#[test]
fn pages_are_served_encrypted_to_clients_that_know_the_certificate() {
    let files = Files::make();
    let server = files.start(Limits::default());
    let answer = files.ask(&server, &get("/a", ""));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nhello /a\n"), "{answer}");
    let answer = files.ask(&server, &get("/long", ""));
    assert_eq!(answer.split_once("\r\n\r\n").unwrap().1.len(), 3_000_001);
    // Tokens, hosts and origins are checked as without encryption.
    let host = "Host: robot.local:8766\r\n";
    let answer = files.ask(&server, &format!("GET / HTTP/1.1\r\n{host}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    for (origin, good) in [
        ("https://robot.local:8766", true),
        ("http://robot.local:8766", false),
    ] {
        let answer = files.ask(&server, &get("/", &format!("Origin: {origin}\r\n")));
        assert_eq!(answer.starts_with("HTTP/1.1 200 "), good, "{origin}: {answer}");
    }
    let rebound = get("/", "").replace("robot.local", "evil.example");
    let answer = files.ask(&server, &rebound);
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn websockets_are_served_encrypted_in_both_directions_at_once() {
    let files = Files::make();
    let server = files.start(Limits::default());
    let mut socket = websocket(&files, &server);
    for n in 0..20_u8 {
        let payload: Vec<u8> = (0..100_000 + u32::from(n)).map(|i| i as u8 ^ n).collect();
        send(&mut socket, &payload);
        assert_eq!(receive(&mut socket), payload);
    }
    // What a client sends arrives although it reads none of what waits for it.
    let mut socket = websocket(&files, &server);
    let payload = vec![7; 1_000_000];
    for _ in 0..40 {
        send(&mut socket, &payload);
    }
    assert_eq!(receive(&mut socket), payload);
}

#[test]
fn a_plain_request_gets_an_answer_that_says_what_to_write() {
    let files = Files::make();
    let server = files.start(Limits::default());
    let mut socket = plain(&server);
    socket.write_all(get("/", "").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("https://"), "{answer}");
    assert!(!answer.contains("hello"), "{answer}");
    // Other connections are closed with a TLS alert (21).
    for bytes in [&[0_u8; 40][..], &[22, 3, 1, 0, 5, 1, 2, 3, 4, 5], &[0xff; 5]] {
        let mut socket = plain(&server);
        socket.write_all(bytes).unwrap();
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    }
    let answer = files.ask(&server, &get("/still", ""));
    assert!(answer.ends_with("hello /still\n"), "{answer}");
}

#[test]
fn a_stalled_handshake_holds_up_nobody_and_ends() {
    let files = Files::make();
    let mut limits = Limits::default();
    limits.handshake = Duration::from_secs(3);
    let server = files.start(limits);
    // One says nothing, one begins a record and drips, one ends its handshake and asks nothing.
    let silent = plain(&server);
    let mut drips = plain(&server);
    drips.write_all(&[22, 3, 1, 2, 0]).unwrap();
    let mut idle = files.connect(&server);
    idle.flush().unwrap();
    while idle.conn.is_handshaking() {
        idle.conn.complete_io(&mut idle.sock).unwrap();
    }
    let answer = files.ask(&server, &get("/other", ""));
    assert!(answer.ends_with("hello /other\n"), "{answer}");
    let dripping = std::thread::spawn(move || {
        while drips.write_all(&[1]).is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let mut answer = String::new();
    idle.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    let mut silent = silent;
    assert_eq!(silent.read(&mut [0; 8]).unwrap_or(0), 0, "it is closed");
    // It fails only once the server has closed the connection.
    dripping.join().unwrap();
}

#[test]
fn mismatched_files_are_named_with_the_fix() {
    let files = Files::make();
    files.write("empty", "");
    files.write(
        "broken",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let load = |certificate: &str, key: &str| {
        let read = |name: &str| {
            if name.is_empty() {
                Path::new("/nowhere/at/all").into()
            } else {
                files.path(name)
            }
        };
        Tls::load(&read(certificate), &read(key))
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(load("one.crt", "one.key"), Ok(()));
    for (certificate, key, file, fix) in [
        ("", "one.key", "/nowhere/at/all: ", "may read"),
        ("one.crt", "", "/nowhere/at/all: ", "may read"),
        (
            "empty",
            "one.key",
            "empty: it contains no certificate",
            "BEGIN CERTIFICATE",
        ),
        (
            "one.key",
            "one.key",
            "one.key: it contains no certificate",
            "BEGIN CERTIFICATE",
        ),
        ("broken", "one.key", "broken: ", "BEGIN CERTIFICATE"),
        (
            "one.crt",
            "empty",
            "empty: it contains no private key",
            "BEGIN PRIVATE KEY",
        ),
        (
            "one.crt",
            "one.crt",
            "one.crt: it contains no private key",
            "passphrase",
        ),
        (
            "one.crt",
            "other.key",
            "other.key is not the key of",
            "belong together",
        ),
    ] {
        let error = load(certificate, key).unwrap_err();
        assert!(
            error.contains(file) && error.contains(fix),
            "{certificate}, {key}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
