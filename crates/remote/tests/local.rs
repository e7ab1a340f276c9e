//! The conformance suite within one process.

mod conformance;

use conformance::Place;
use remote::transport::{Wire, local};

#[test]
fn conforms() {
    conformance::run(|| {
        let (_, connect) = local::end("rover", Wire::Own);
        let robots = connect.clone();
        Place {
            robot: Box::new(move || robots.robot_end()),
            connect: Box::new(move || connect.end()),
        }
    });
}
