//! This host in a result: the facts that figures depend on, as far as the kernel shows them.

use crate::result::Environment;
use crate::show;
use std::fs;

/// This host. What cannot be found out is left out.
pub fn here() -> Environment {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        facts.extend(value.filter(|value| !value.is_empty()).map(|value| (name.to_string(), value)));
    };
    add("CPU", field(&read("/proc/cpuinfo"), "model name"));
    add("CPUs for us", std::thread::available_parallelism().ok().map(|cpus| cpus.to_string()));
    add("memory", field(&read("/proc/meminfo"), "MemTotal").map(|text| memory(&text)));
    let uname = rustix::system::uname();
    add("kernel", Some(uname.release().to_string_lossy().into_owned()));
    add("machine", Some(uname.machine().to_string_lossy().into_owned()));
    add("governor", Some(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")));
    add("clock source", Some(read("/sys/devices/system/clocksource/clocksource0/current_clocksource")));
    add("larder-bench", Some(env!("CARGO_PKG_VERSION").to_string()));
    Environment { facts }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}

/// The first `name : value` of a text.
fn field(text: &str, name: &str) -> Option<String> {
    let (_, value) =
        text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_string())
}

fn memory(text: &str) -> String {
    let kib = text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    kib.map_or_else(|| text.to_string(), |kib| show::bytes(kib * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_kernel_and_cpus() {
        let facts = here().facts;
        assert!(facts.iter().any(|(name, value)| name == "kernel" && !value.is_empty()));
        assert!(facts.iter().any(|(name, _)| name == "CPUs for us"));
        assert_eq!(memory("2097152 kB"), "2.0 GiB");
        assert_eq!(field("a : 1\nmodel name\t: X Y\n", "model name").as_deref(), Some("X Y"));
    }
}
