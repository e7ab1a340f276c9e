//! Raw round trip.
use bus::{Bus, BusConfig, ClientOptions, ServerOptions, ServiceType};
use link::{Config, Daemon};
use std::time::{Duration, Instant};

fn open(folder: &std::path::Path) -> Bus {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(folder).unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    Bus::open(BusConfig::new(folder)).unwrap()
}

fn service() -> ServiceType {
    ServiceType {
        service: "/r/remote/command".into(),
        type_name: "test_srvs/Blob".into(),
        type_hash: [9; 16],
        definition: "uint8[] data\n---\nuint8[] data\n".into(),
    }
}

fn measure(what: &str, robot: &Bus, base: &Bus, handles: &[link::Handle]) {
    let server = robot.server(service(), ServerOptions::default()).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            if let Some(r) = server.take_timeout(Duration::from_millis(100)).unwrap() {
                let mut loan = server.loan(r.control().len(), &[]).unwrap();
                loan.control_mut().copy_from_slice(r.control());
                let _ = server.respond(r, loan);
            }
        }
    });
    let client = base.client(service(), ClientOptions::default()).unwrap();
    assert!(client.wait_for_server(Duration::from_secs(20)).unwrap());
    let call = || {
        let start = Instant::now();
        let mut loan = client.loan(64, &[]).unwrap();
        loan.control_mut().fill(7);
        client.call(loan, Duration::from_secs(2)).unwrap();
        start.elapsed().as_nanos() as f64 / 1e3
    };
    for i in 0..30 { let mut loan = client.loan(64, &[]).unwrap(); loan.control_mut().fill(7);
        let start = Instant::now();
        if let Err(e) = client.call(loan, Duration::from_secs(2)) { println!("{what} {i}: {e} {:?} {:?}", start.elapsed(), client.stats());
            for h in handles { let s = h.status(); println!("{:#?}\n{:?}\n{:#?}\n{:?}", s.services, s.peers, s.sent, s.received); }
            println!("server {:?}", robot.services(Duration::from_secs(1)));
            if i > 0 { std::process::exit(1); } } }
    if std::env::var_os("LOOP").is_some() { stop.store(true, std::sync::atomic::Ordering::Relaxed); thread.join().unwrap(); return; }
    for (how, n, pause) in [("30 Hz", 300, 33), ("back to back", 2000, 0)] {
        let mut all: Vec<f64> = (0..n).map(|_| { std::thread::sleep(Duration::from_millis(pause)); call() }).collect();
        all.sort_by(f64::total_cmp);
        println!("{what:30} {how:12} p50 {:.1} p99 {:.1} max {:.1} us", all[n / 2], all[n * 99 / 100], all[n - 1]);
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    thread.join().unwrap();
}

fn main() {
    let dir = tempfile::Builder::new().prefix("rwl").tempdir().unwrap();
    let one = open(&dir.path().join("one"));
    measure("one bus", &one, &one, &[]);
    let team = link::keys::Team::create(&dir.path().join("team"), "t").unwrap();
    let life = Duration::from_secs(86400);
    let (rk, bk) = (team.add_host("robot", life).unwrap(), team.add_host("base", life).unwrap());
    let rates = if std::env::var_os("LOOP").is_some() { vec!["unlimited"; 12] } else { vec!["unlimited", "600Mbit/s"] };
    for (i, rate) in rates.into_iter().enumerate() {
        for quic in [true, false] {
            let robot = open(&dir.path().join(format!("robot{i}{quic}")));
            let base = open(&dir.path().join(format!("base{i}{quic}")));
            let (x, y) = (20000 + std::process::id() % 20000, 41000 + std::process::id() % 20000);
            let text = |host: &str, keys: &std::path::Path, own, peer: &str, theirs, service: &str| {
                let keys = if quic { format!("keys: {}\n", keys.display()) } else { String::new() };
                format!("host: {host}\n{keys}radio: {{bind: '127.0.0.1:{own}', rate: {rate}}}\n\
                    peers: [{{name: {peer}, address: '127.0.0.1:{theirs}'}}]\nservices: [{service}]\n")
            };
            let start = |text: String, bus: &Bus| {
                let daemon = Daemon::open(Config::parse(&text).unwrap(), bus.clone()).unwrap();
                let handle = daemon.handle();
                (handle, std::thread::spawn(move || daemon.run().unwrap()))
            };
            let a = start(text("robot", &rk, x, "base", y, "{name: /r/remote/command, role: serve, priority: 110}"), &robot);
            let b = start(text("base", &bk, y, "robot", x, "{name: /r/remote/command, role: call, from: robot, priority: 110}"), &base);
            measure(&format!("daemons {rate} quic={quic}"), &robot, &base, &[a.0.clone(), b.0.clone()]);
            a.0.stop(); b.0.stop();
            a.1.join().unwrap(); b.1.join().unwrap();
        }
    }
}
