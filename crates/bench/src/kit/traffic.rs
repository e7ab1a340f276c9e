//! The programs that measure: iperf3, ping, and Ropewalk's own probe.

use crate::kit::error::RunError;
use crate::kit::probe::Arrivals;
use crate::kit::site::{Job, Site};
use serde::Deserialize;
use std::time::Duration;

/// The UDP payload that fills an Ethernet frame: 1500 B less IP and UDP headers.
pub(crate) const PAYLOAD: usize = 1472;
/// Time limit beyond a program's own duration.
const PATIENCE: Duration = Duration::from_secs(20);

/// The traffic of iperf3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Flow {
    /// Datagrams of [`PAYLOAD`] bytes at this rate in Mbit/s.
    Udp { offered_mbit_s: f64 },
    /// One connection, cubic.
    Tcp,
}

/// One iperf3 flow from one host to another.
pub(crate) struct Iperf<'a> {
    site: &'a Site<'a>,
    server: Job,
    client: Job,
    seconds: u32,
    warm_up: f64,
}

impl<'a> Iperf<'a> {
    /// Starts it; `port` must be free on the receiver.
    pub(crate) fn start(
        site: &'a Site<'a>,
        [from, to]: [&str; 2],
        flow: Flow,
        seconds: u32,
        port: u16,
    ) -> Result<Self, RunError> {
        let port_word = port.to_string();
        let server = site.start(to, &["iperf3", "-s", "-1", "-J", "-p", &port_word])?;
        site.listens(to, port)?;
        let (time, address) = (seconds.to_string(), site.address(to)?);
        let mut client = vec!["iperf3", "-c", &address, "-p", &port_word, "-t", &time, "-J"];
        let (bytes, offered);
        let warm_up = match flow {
            Flow::Udp { offered_mbit_s } => {
                bytes = PAYLOAD.to_string();
                offered = format!("{}K", (offered_mbit_s * 1000.0).round());
                client.extend(["-u", "-b", &offered, "-l", &bytes]);
                0.9
            }
            Flow::Tcp => {
                client.extend(["-C", "cubic"]);
                1.9
            }
        };
        Ok(Iperf {
            client: site.start(from, &client)?,
            site,
            server,
            seconds,
            warm_up,
        })
    }

    /// Waits for its end. Returns the goodput in Mbit/s, after the first seconds and until the end of sending.
    pub(crate) fn goodput_mbit_s(self) -> Result<f64, RunError> {
        let limit = Duration::from_secs(self.seconds.into()) + PATIENCE;
        // The server's output is more informative than the client's exit code.
        let sent = self.site.finish(self.client, limit);
        let received = match (self.site.finish(self.server, PATIENCE), sent) {
            (Ok(received), Ok(_)) => received,
            (Err(e @ RunError::Stopped), _) | (_, Err(e)) | (Err(e), _) => return Err(e),
        };
        received_mbit_s(&received, self.warm_up, f64::from(self.seconds)).map_err(RunError::Failed)
    }
}

/// Mean over the whole intervals that began after `warm_up_s` and ended by `seconds`.
fn received_mbit_s(json: &str, warm_up_s: f64, seconds: f64) -> Result<f64, String> {
    #[derive(Deserialize)]
    struct Said {
        #[serde(default)]
        intervals: Vec<Interval>,
        error: Option<String>,
    }
    #[derive(Deserialize)]
    struct Interval {
        sum: Sum,
    }
    #[derive(Deserialize)]
    struct Sum {
        start: f64,
        end: f64,
        seconds: f64,
        bytes: f64,
    }
    let said: Said = serde_json::from_str(json).map_err(|e| format!("cannot parse iperf3's JSON: {e}"))?;
    if let Some(error) = said.error {
        return Err(format!("iperf3: {error}"));
    }
    let whole = |s: &&Sum| s.start >= warm_up_s && s.end <= seconds + 0.1 && s.seconds > 0.5;
    let (mut bytes, mut time) = (0.0, 0.0);
    for sum in said.intervals.iter().map(|i| &i.sum).filter(whole) {
        bytes += sum.bytes;
        time += sum.seconds;
    }
    if time > 0.0 {
        Ok(bytes * 8.0 / time / 1e6)
    } else {
        Err("iperf3 received for less than a second after the start".into())
    }
}

/// Round trips, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundTrips {
    pub(crate) received: f64,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
}

/// Pings `to` from `from`.
pub(crate) fn ping(
    site: &Site<'_>,
    [from, to]: [&str; 2],
    count: u32,
    every_s: f64,
) -> Result<RoundTrips, RunError> {
    let (count, every) = (count.to_string(), every_s.to_string());
    let said = site.hear(
        from,
        &["ping", "-n", "-q", "-c", &count, "-i", &every, "-W", "10", to],
        Duration::from_secs(120),
    )?;
    round_trips(&said).ok_or_else(|| RunError::Failed(format!("ping printed {said:?}")))
}

/// Parses the output of `ping -q`.
fn round_trips(said: &str) -> Option<RoundTrips> {
    let counts = said.lines().find(|l| l.contains(" received"))?;
    let received = counts.split(',').find(|part| part.contains(" received"))?;
    let times = said.lines().find(|l| l.starts_with("rtt "))?;
    let mut times = times.split_once('=')?.1.trim().split('/').map(str::parse);
    let mut next = || times.next()?.ok();
    Some(RoundTrips {
        received: received.split_whitespace().next()?.parse().ok()?,
        min: next()?,
        mean: next()?,
        max: next()?,
    })
}

/// One direction of Ropewalk's own probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probing<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) count: u32,
    pub(crate) every: Duration,
    /// Payload bytes of each packet.
    pub(crate) size: usize,
    /// More than the maximum travel time of the last packet.
    pub(crate) linger: Duration,
}

/// Sends numbered, stamped packets along all paths at once, and returns what arrived.
pub(crate) fn probe(site: &Site<'_>, ways: &[Probing<'_>]) -> Result<Vec<Arrivals>, RunError> {
    const PORT: u16 = 7400;
    let program = site.executable().to_string_lossy().into_owned();
    let mut jobs = Vec::new();
    for (port, way) in (PORT..).zip(ways) {
        let port_word = port.to_string();
        let receiver = ["bench", "lab-probe", "receive", "--port", &port_word];
        jobs.push(site.start(way.to, &[&[&*program], &receiver[..]].concat())?);
        // A UDP socket is listed in a separate file; its state is 07.
        let script =
            format!("until grep -q ':{port:04X} [0-9A-F]*:0000 07' /proc/net/udp; do sleep 0.05; done");
        site.hear(way.to, &["sh", "-c", &script], PATIENCE)?;
    }
    let mut senders = Vec::new();
    for (port, way) in (PORT..).zip(ways) {
        let to = format!("{}:{port}", site.address(way.to)?);
        let (count, size) = (way.count.to_string(), way.size.to_string());
        let every = way.every.as_micros().to_string();
        let sender = [
            "bench",
            "lab-probe",
            "send",
            "--to",
            &to,
            "--count",
            &count,
            "--period-us",
            &every,
            "--size",
            &size,
        ];
        senders.push(site.start(way.from, &[&[&*program], &sender[..]].concat())?);
    }
    for (sender, way) in senders.into_iter().zip(ways) {
        site.finish(sender, way.every * way.count + PATIENCE)?;
    }
    site.pause(ways.iter().map(|w| w.linger).max().unwrap_or_default())?;
    let mut arrivals = Vec::new();
    for (mut job, way) in jobs.into_iter().zip(ways) {
        job.close_input();
        let said = site.finish(job, PATIENCE)?;
        arrivals.push(Arrivals::read(&said, way.count).map_err(RunError::Failed)?);
    }
    Ok(arrivals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_seconds_after_the_warm_up_count() {
        let interval = |start: f64, end: f64, bytes: f64| {
            format!(
                r#"{{"sum": {{"start": {start}, "end": {end}, "seconds": {}, "bytes": {bytes}}}}}"#,
                end - start
            )
        };
        let json = |intervals: &[String]| format!(r#"{{"intervals": [{}]}}"#, intervals.join(","));
        let said = json(&[
            interval(0.0, 1.0, 9e9),
            interval(1.0, 2.0, 650_000.0),
            interval(2.0, 3.0, 600_000.0),
            interval(3.0, 3.4, 9e9),
        ]);
        assert_eq!(received_mbit_s(&said, 0.9, 3.0), Ok(5.0));
        assert!(received_mbit_s(&json(&[interval(0.0, 1.0, 1.0)]), 0.9, 3.0).is_err());
        let error = received_mbit_s(r#"{"intervals": [], "error": "refused"}"#, 0.9, 3.0);
        assert_eq!(error, Err("iperf3: refused".into()));
        assert!(received_mbit_s("no JSON", 0.9, 3.0).is_err());
    }

    #[test]
    fn pings_summary_is_understood() {
        let said = "PING robot (10.77.0.2) 56(84) bytes of data.\n\n--- robot ping statistics ---\n\
                    5 packets transmitted, 4 received, 20% packet loss, time 804ms\n\
                    rtt min/avg/max/mdev = 2000.089/2000.131/2000.170/0.031 ms, pipe 3\n";
        let expected = RoundTrips {
            received: 4.0,
            min: 2000.089,
            mean: 2000.131,
            max: 2000.170,
        };
        assert_eq!(round_trips(said), Some(expected));
        assert_eq!(round_trips("nothing"), None);
        assert_eq!(round_trips(&said.replace("2000.131", "x")), None);
    }
}
