//! States for tests of the views.

use crate::{LinkState, View};
use serde_json::{Value, json};

/// The state of a link that has been up for `at` seconds, by the counts of two topics.
pub fn state(at: f64, sent: u64, delivered: u64) -> LinkState {
    LinkState::parse(&json(at, sent, delivered).to_string()).expect("a state")
}

/// The same as a link reports it.
pub fn json(at: f64, sent: u64, delivered: u64) -> Value {
    json!({
        "host": "robot", "link": "robot", "uptime_clock_s": at,
        "radio": { "air_s": sent as f64 * 1e-3, "bytes": sent * 1000, "queued_bytes": 500 },
        "peers": [{ "name": "base", "up": true, "round_trip_us": 3200, "rate_bit_s": 6_000_000,
                    "rate_source": "estimated", "air_s": sent as f64 * 1e-3,
                    "bytes_sent": sent * 1000, "bytes_received": 0, "lost": 1, "refused_topics": 2 }],
        "ways": [{ "host": "base", "over": "base", "hops": 1, "cost_us": 500 },
                 { "host": "far", "over": "base", "hops": 2, "cost_us": 900 }],
        "unreachable": ["lost"],
        "sent": [{ "name": "/scan", "peer": "base", "source": "robot", "to": ["far"], "here": "/far/scan",
                   "state": "ready", "priority": 100, "queued": 1,
                   "offered": sent + 25, "sent": sent, "sent_bytes": sent * 900,
                   "air_s": sent as f64 * 9e-4,
                   "drops": { "replaced": sent / 10 },
                   "account": { "offered": sent + 25, "delivered": delivered, "in_flight": 23 + sent - delivered - sent / 10,
                                "dropped": { "replaced": sent / 10, "air": 2 } },
                   "at_receiver": { "delivered": delivered, "drops": { "air": 2, "not_taken": 7, "duplicate": 9 } } }],
        "received": [{ "name": "/cmd_vel", "peer": "base", "source": "base", "here": "/cmd_vel", "accepted": true, "priority": 120, "partial": 0,
                       "delivered": delivered, "delivered_bytes": delivered * 48, "drops": { "air": 1 },
                       "bus_drops": {},
                       "account": { "offered": 101, "delivered": 99, "in_flight": 2, "dropped": {} },
                       "recent": { "delay_ms": { "mean": 2.5, "p99": 4.0 }, "added_jitter_ms": { "p99": 1.5 } },
                       "delay": { "messages": delivered, "mean_us": 3000.0, "p99_us": 4000.0, "max_us": 5000.0, "uncertainty_us": 400.0 } }],
        "unpublished": ["/map"],
        "services": [{ "here": "/grasp", "name": "/grasp", "peer": "base", "role": "call", "state": "no_peer",
                       "priority": 60, "calls": sent, "open": 1, "answered": sent - 3,
                       "failed": { "timed_out": 2 } }],
    })
}

/// Two seconds of that link.
pub fn view() -> View {
    View::between(&state(10.0, 100, 90), &state(12.0, 200, 180))
}
