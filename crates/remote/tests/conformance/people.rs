//! Questions and messages of robots to people.

use super::*;
use remote::types::LogLevel;
use remote::{Queue, command, telemetry, types};

pub fn requests_and_logs(fixture: &dyn Fn() -> Fixture) {
    let fixture = fixture();
    let robot = robot(&fixture);
    robot.tells::<telemetry::LogMessage>().expect("room");
    robot.tells::<telemetry::PermissionRequest>().expect("room");
    let controller = controller("c", (fixture.connect)());
    // A controller that listens from here on may have missed the question, and fetches it.
    let answer = robot.ask_permission("May I cross the road?");
    let question = controller
        .fetch::<telemetry::PermissionRequest>(0)
        .expect("answered")
        .expect("asked");
    assert_eq!(question.description, "May I cross the road?");
    let yes = types::Permission {
        header: None,
        requestuid: question.requestuid,
        granted: true,
    };
    assert!(controller.command::<command::Permission>(&yes).is_executed());
    assert!(answer.wait());
    assert!(
        !controller.command::<command::Permission>(&yes).is_executed(),
        "answered already"
    );
    let open = robot.ask_permission("And back?");
    let log = controller.queue::<telemetry::LogMessage>(0, Queue::Fifo(100));
    eventually("the log is heard", || {
        robot.log(LogLevel::Warn, "hot").expect("sent");
        log.take(Duration::from_millis(20))
            .is_some_and(|(message, _)| message.message == "hot")
    });
    controller
        .set_log_level(LogLevel::Error as u32)
        .expect("answered");
    robot.log(LogLevel::Info, "not wanted").expect("nothing to send");
    robot.log(LogLevel::Error, "on fire").expect("sent");
    eventually("the error", || match log.take(WATCHDOG).expect("more comes").0 {
        message if message.message == "on fire" => message.level == LogLevel::Error as u32,
        message => {
            assert_eq!(message.message, "hot");
            false
        }
    });
    robot.stop();
    assert!(!open.wait(), "nobody will answer");
}
