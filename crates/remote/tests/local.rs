//! The conformance suite within one process.

mod conformance;

use conformance::Place;
use remote::transport::{Wire, gzip, local};

fn place(wire: Wire) -> Place {
    let (_, connect) = local::end("rover", wire);
    let (robots, others) = (connect.clone(), connect.clone());
    Place {
        robot: Box::new(move || robots.robot_end()),
        connect: Box::new(move || connect.end()),
        other: Some(Box::new(move || others.end())),
        proves: true,
    }
}

fn packed(wire: Wire) -> Place {
    let Place {
        robot,
        connect,
        other,
        proves,
    } = place(wire);
    let robot = Box::new(move || gzip::robot(robot()));
    Place {
        robot,
        connect: Box::new(move || gzip::controller(connect())),
        other: other.map(|other| -> Box<dyn Fn() -> _> { Box::new(move || gzip::controller(other())) }),
        proves,
    }
}

#[test]
fn conforms() {
    conformance::run(|| place(Wire::Own));
}

#[test]
fn conforms_in_version_6() {
    conformance::run_v6(|| place(Wire::V6));
}

#[test]
fn conforms_when_compressed() {
    conformance::run(|| packed(Wire::Own));
    conformance::run_v6(|| packed(Wire::V6));
}
