//! Description of the machine that a result was measured on.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns processor, cores, memory, kernel and governor, as far as the system reports them.
pub fn describe() -> BTreeMap<String, Value> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let uname = rustix::system::uname();
    let governor = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    BTreeMap::from([
        (
            "cpu".into(),
            json!(field(&cpuinfo, "model name").unwrap_or_else(|| "unknown".into())),
        ),
        (
            "cores".into(),
            json!(std::thread::available_parallelism().map_or(0, |n| n.get())),
        ),
        (
            "memory".into(),
            json!(field(&meminfo, "MemTotal").unwrap_or_else(|| "unknown".into())),
        ),
        ("kernel".into(), json!(uname.release().to_string_lossy())),
        (
            "governor".into(),
            json!(governor.map_or_else(|_| "none".into(), |g| g.trim().to_owned())),
        ),
    ])
}

/// Returns the versions of the measured software.
pub fn versions() -> BTreeMap<String, String> {
    BTreeMap::from([("ropewalk".into(), env!("CARGO_PKG_VERSION").into())])
}

/// Returns its wireless devices, such as `wlan0`, from `/sys/class/net`.
pub fn radios() -> Vec<String> {
    let devices = std::fs::read_dir("/sys/class/net")
        .into_iter()
        .flatten()
        .flatten();
    let radios = devices.filter(|d| ["phy80211", "wireless"].iter().any(|n| d.path().join(n).exists()));
    radios
        .map(|d| d.file_name().to_string_lossy().into_owned())
        .collect()
}
