//! A user-defined command and telemetry type: a robot that sprays, and a controller that commands it. The library
//! knows neither type; robot and controller agree by their names.
//!
//! Any transport can replace the in-process one, without another change.

use remote::transport::{Wire, local};
use remote::{BASE, CommandKind, Controller, Queue, Robot, TelemetryKind};
use std::time::Duration;

/// Same as `message Litres { float value = 1; }` in a `.proto` file, which `prost-build` can compile, too.
#[derive(Clone, PartialEq, prost::Message)]
struct Litres {
    #[prost(float, tag = "1")]
    value: f32,
}

/// Sprays this amount. Only the controller that holds the right to move the robot may send it.
struct Spray;
impl CommandKind for Spray {
    type Body = Litres;
    const NAME: &'static str = "acme.Spray";
    const MOVES: Option<&'static str> = Some(BASE);
}

/// The remaining amount.
struct Tank;
impl TelemetryKind for Tank {
    type Body = Litres;
    const NAME: &'static str = "acme.Tank";
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (end, connect) = local::end("sprayer", Wire::Own);
    let robot = Robot::builder("sprayer").end(end).start()?;
    robot.set::<Tank>(0, &Litres { value: 5.0 })?;
    let (handle, mut left) = (robot.clone(), 5.0);
    robot.on::<Spray>(move |litres, _context| {
        if litres.value > left {
            return Err(format!("only {left} l are left").into());
        }
        left -= litres.value;
        handle
            .set::<Tank>(0, &Litres { value: left })
            .map_err(|e| e.to_string().into())
    });

    let desk = Controller::builder("desk").end(connect.end()).start()?;
    let tank = desk.queue::<Tank>(0, Queue::Fifo(10));
    assert!(desk.wait_until_found(Duration::from_secs(10)), "no robot");
    for value in [2.0, 2.5, 1.0] {
        println!("spray {value} l: {}", desk.command::<Spray>(&Litres { value }));
    }
    while let Some((litres, _)) = tank.try_take() {
        println!("left: {} l", litres.value);
    }
    robot.stop();
    Ok(())
}
