//! Checks from queueing: Little's law, overload, the natural concurrency, a device's queue, the generator's
//! own CPU.

use super::{check, figure};
use crate::result::{Check, Verdict};

/// How far Little's law may be off in a closed loop before the rate, the latency or the connections are
/// wrong.
const LITTLE_SHARE: f64 = 0.05;
/// Below this share of the offered rate, the answered rate is the server's limit.
const SERVED_SHARE: f64 = 0.95;
/// A generator thread as busy as the first share delays its requests; as busy as the second it may.
const GENERATOR_BUSY: f64 = 0.90;
const GENERATOR_WARM: f64 = 0.75;
/// Connections beyond this many times N* only wait for each other.
const PAST_KNEE: f64 = 2.0;

/// Little's law: in a closed loop without think time, rate times mean latency is the number of requests in
/// flight (connections times pipeline depth). `mean_ns` is the mean over all requests.
pub fn little(rate: f64, mean_ns: f64, in_flight: f64) -> Check {
    let found = rate * mean_ns / 1e9;
    let off = found / in_flight - 1.0;
    let message =
        format!("X*R = {} in flight, {} set up ({:+.1} %)", figure(found), figure(in_flight), off * 100.0);
    if off.abs() <= LITTLE_SHARE {
        return check("little", Verdict::Pass, message);
    }
    let why = match off > 0.0 {
        true => "more than can be: windows that do not overlap, or a mean that is not over all requests",
        false => "the rate and the latency are not of this point, or clients were idle",
    };
    check("little", Verdict::Fail, format!("{message}: {why}"))
}

/// Whether an open loop was served at the rate it offered. When it was not, latency is the length of a queue
/// that grows with the run, and no percentile of it describes the server.
pub fn overload(offered: f64, served: f64, mean_ns: f64, connections: u32) -> Check {
    let message = format!("offered {}/s, served {}/s", figure(offered), figure(served));
    if served >= offered * SERVED_SHARE {
        return check("overload", Verdict::Pass, message);
    }
    let queued = figure((served * mean_ns / 1e9).round());
    let queue =
        format!("{message}: latency is queue length, {queued} requests waiting on {connections} connections");
    check("overload", Verdict::Fail, queue)
}

/// Whether the busiest generating thread had room. `busy` is its CPU time as a share of the window, 0 to 1.
pub fn generator(busy: f64) -> Check {
    let message = format!("busiest generating thread {:.1} % of a core", busy * 100.0);
    match busy {
        b if b >= GENERATOR_BUSY => check(
            "generator-cpu",
            Verdict::Fail,
            format!("{message}: limited by the generator, not the server"),
        ),
        b if b >= GENERATOR_WARM => check("generator-cpu", Verdict::Warn, format!("{message}: little room")),
        _ => check("generator-cpu", Verdict::Pass, message),
    }
}

/// Whether the recommended concurrency is near N*, the highest rate times the least latency. Past it, more
/// connections only make a longer queue.
pub fn past_knee(connections: f64, n_star: f64) -> Check {
    let times = connections / n_star;
    let message =
        format!("{} connections, N* {} ({times:.1} times)", figure(connections), figure(n_star.round()));
    match times {
        t if t > PAST_KNEE => check(
            "knee",
            Verdict::Warn,
            format!("{message}: requests beyond N* wait in a queue and add no rate"),
        ),
        _ => check("knee", Verdict::Pass, message),
    }
}

/// A device's own Little's law: requests a second times mean wait is its mean queue. `await_ms` as iostat
/// prints it.
pub fn device_queue(requests: f64, await_ms: f64, queue: f64) -> Check {
    let found = requests * await_ms / 1000.0;
    let message =
        format!("{}/s * {await_ms} ms = {}, queue {}", figure(requests), figure(found), figure(queue));
    // iostat rounds the wait to a hundredth of a millisecond.
    let rounding = requests * 0.005 / 1000.0;
    let fits = (found - queue).abs() <= queue * 0.1 + rounding;
    check("device-queue", if fits { Verdict::Pass } else { Verdict::Warn }, message)
}

/// Whether gets truly reached the device: device reads for each get. Fewer than `least` means that RAM
/// answered.
pub fn reads_per_get(device_reads: f64, gets: f64, least: f64) -> Check {
    let share = device_reads / gets.max(f64::MIN_POSITIVE);
    let message =
        format!("{} device reads/s for {} gets/s: {share:.2} a get", figure(device_reads), figure(gets));
    match share >= least {
        true => check("device-reads", Verdict::Pass, message),
        false => check("device-reads", Verdict::Fail, format!("{message}; most gets were answered from RAM")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn healthy_figures_pass() {
        assert_eq!(little(10_000.0, 1_600_000.0, 16.0).verdict, Verdict::Pass);
        assert_eq!(overload(10_000.0, 9_990.0, 1e5, 16).verdict, Verdict::Pass);
        assert_eq!(generator(0.4).verdict, Verdict::Pass);
        assert_eq!(past_knee(16.0, 12.0).verdict, Verdict::Pass);
        assert_eq!(reads_per_get(990.0, 1000.0, 0.9).verdict, Verdict::Pass);
    }

    #[test]
    fn gets_from_ram_are_no_test_of_a_device() {
        assert_eq!(reads_per_get(10.0, 4000.0, 0.9).verdict, Verdict::Fail);
        assert_eq!(device_queue(31_790.0, 0.18, 12.0).verdict, Verdict::Warn);
    }
}
