//! The conformance suite within one process.

mod conformance;

use conformance::Fixture;
use remote::transport::{Wire, gzip, local};

fn fixture(wire: Wire) -> Fixture {
    let (_, connect) = local::end("rover", wire);
    let (robots, others) = (connect.clone(), connect.clone());
    Fixture {
        robot: Box::new(move || robots.robot_end()),
        connect: Box::new(move || connect.end()),
        other: Some(Box::new(move || others.end())),
        proves: true,
    }
}

fn packed(wire: Wire) -> Fixture {
    let Fixture {
        robot,
        connect,
        other,
        proves,
    } = fixture(wire);
    let robot = Box::new(move || gzip::robot(robot()));
    Fixture {
        robot,
        connect: Box::new(move || gzip::controller(connect())),
        other: other.map(|other| -> Box<dyn Fn() -> _> { Box::new(move || gzip::controller(other())) }),
        proves,
    }
}

#[test]
fn conforms() {
    conformance::run(|| fixture(Wire::Own));
}

#[test]
fn conforms_in_version_6() {
    conformance::run_v6(|| fixture(Wire::V6));
}

#[test]
fn conforms_when_compressed() {
    conformance::run(|| packed(Wire::Own));
    conformance::run_v6(|| packed(Wire::V6));
}
