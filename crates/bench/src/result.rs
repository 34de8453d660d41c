//! A command's results, as they are written to `result.json` and read back by `report` and `compare`.
//!
//! Every time is on one axis: `at_ms` counts milliseconds from the start of the measured window (after the
//! warm-up) of the run it belongs to. Rates are per second, latencies are [`Latency`] in nanoseconds, sizes
//! are bytes. Fields are only ever added; [`SCHEMA`] rises when one changes its meaning.

pub mod memtier;

use crate::latency::Latency;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the form below.
pub const SCHEMA: u32 = 1;

/// The whole of a `result.json`: one command's findings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// The title, a short line.
    pub title: String,
    /// The command that repeats it, word by word.
    pub command: Vec<String>,
    /// When it began, in milliseconds of the Unix clock.
    pub started_unix_ms: u64,
    /// Where it ran.
    pub environment: Environment,
    /// Single measurements, in the order they were made.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// Latency against throughput, one a server and sweep; its points name runs.
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// Counter shoot-outs, one row a store and number of threads.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// Tables that a scenario prints, a document's figures with ours.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Checks over the whole document; each run has its own besides.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Differences from the document that a scenario follows, and why; skipped parts, by name.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The host, its kernel, and the versions of what took part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Names and values in the order to show them: CPU model, cores, memory, kernel, governor, clock source,
    /// file system and device of the data, versions of the programs.
    pub facts: Vec<(String, String)>,
}

/// One measurement of one server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// Unique in the document, such as `larder 20000/s #2`.
    pub label: String,
    /// The server: its name and version as it reports them.
    pub server: String,
    /// Where it was, as given: `127.0.0.1:11211`, `unix:/path`, `redis://...`.
    pub address: String,
    /// `text`, `meta`, `binary`, `resp2`.
    pub protocol: String,
    /// The version and the cipher of TLS; none without it.
    #[serde(default)]
    pub tls: Option<String>,
    /// The workload in words: keys, sizes, mix, expiry.
    pub workload: String,
    /// How requests were offered.
    pub load: Load,
    /// The measured window's start, in milliseconds of the Unix clock, and its length in seconds.
    pub started_unix_ms: u64,
    /// The measured window's length.
    pub seconds: f64,
    /// A row a verb: `get`, `set`, `incr`, `delete`, `touch`, `gat`, `gets`, `cas`, `append`, `prepend`.
    pub verbs: Vec<Verb>,
    /// All verbs, one entry a second, in order.
    pub intervals: Vec<Interval>,
    /// How late requests were sent: actual less intended time, all verbs.
    pub slip: Latency,
    /// Response latencies of all verbs, as [`Document::to_json`] fills it in.
    #[serde(default)]
    pub response_ns: Quantiles,
    /// Requests that were due but never sent since too many were in flight.
    #[serde(default)]
    pub dropped: u64,
    /// What verification found.
    #[serde(default)]
    pub verified: Verified,
    /// The first few errors in the server's words.
    #[serde(default)]
    pub errors_said: Vec<String>,
    /// The generator's own cost and room.
    #[serde(default)]
    pub generator: Generator,
    /// The server and its device, watched from outside, when it could be.
    #[serde(default)]
    pub watch: Option<Watch>,
    /// A row a generating host, when there were several.
    #[serde(default)]
    pub hosts: Vec<Host>,
    /// Checks of this run; it is certified when none of them failed.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Whether the run was cut short (Ctrl-C, a dead server), and why.
    #[serde(default)]
    pub cut_short: Option<String>,
}

/// How requests were offered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Load {
    /// Requests a second over all connections in an open loop; none in a closed loop.
    pub rate: Option<f64>,
    /// `constant`, `poisson`, `burst:N`, `trace`; `closed` for a closed loop.
    pub arrival: String,
    /// Generating threads over all hosts.
    pub threads: u32,
    /// Connections over all threads and hosts.
    pub connections: u32,
    /// Requests in flight on a connection in a closed loop; the bound of them in an open loop.
    pub pipeline: u32,
    /// Keys in one get.
    pub multi_get: u32,
    /// Sets in a row of which only the last was answered; they count once in the histograms, and each in `hits`.
    #[serde(default)]
    pub quiet_sets: u32,
}

/// One verb's share of a run. A get of several keys counts once in the histograms, and each key in `hits` or
/// `misses`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verb {
    /// `get`, `set`, `incr` and so on, as in [`Run::verbs`].
    pub name: String,
    /// Requests answered in the window.
    pub count: u64,
    /// Keys found; of a cas, those stored.
    pub hits: u64,
    /// Keys not found; of a cas, also those that another client had written.
    pub misses: u64,
    /// Requests answered by an error.
    pub errors: u64,
    /// Bytes sent, requests with their framing.
    pub bytes_out: u64,
    /// Bytes received, replies with their framing.
    pub bytes_in: u64,
    /// From the intended time to the last byte of the reply: a user's wait.
    pub response: Latency,
    /// From the actual send to the last byte of the reply, as a clock at the send would report it.
    pub service: Latency,
    /// Of `response`, as [`Document::to_json`] fills it in.
    #[serde(default)]
    pub response_ns: Quantiles,
}

/// What people quote of a histogram, in nanoseconds, for readers that do not decode one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The largest.
    pub max: u64,
}

impl From<&Latency> for Quantiles {
    fn from(latency: &Latency) -> Self {
        let at = |quantile| latency.quantile_ns(quantile);
        Self {
            mean: latency.mean_ns(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: latency.max_ns(),
        }
    }
}

/// One second of a run, all verbs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Its start.
    pub at_ms: u64,
    /// Requests answered.
    pub count: u64,
    /// Keys found.
    pub hits: u64,
    /// Keys not found.
    pub misses: u64,
    /// Requests answered by an error.
    pub errors: u64,
    /// Response latencies.
    pub response: Latency,
}

/// Verified values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verified {
    /// `off`, `sample`, `full`.
    pub mode: String,
    /// Values looked at.
    pub checked: u64,
    /// Of these, keys that were read back after the load, since sets had no replies or values were changed.
    #[serde(default)]
    pub read_back: u64,
    /// Values that differ from those stored under their keys.
    pub wrong: u64,
    /// Of the wrong ones, those that a later set, acknowledged before the get began, had replaced.
    #[serde(default)]
    pub stale: u64,
    /// Stored keys that a get missed, once each until they were stored again, although nothing deleted them and they
    /// do not expire; from the prefill on.
    #[serde(default)]
    pub lost: u64,
    /// Items that the server counts as evicted, from before the prefill to the end; none when it does not say.
    #[serde(default)]
    pub evicted: Option<u64>,
    /// Misses in the window of keys that this run never stored.
    #[serde(default)]
    pub cold: u64,
    /// The first few wrong ones, in words.
    #[serde(default)]
    pub examples: Vec<String>,
}

/// The cost of generating the load, and the generator's ceiling.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of the generating threads in user space, in microseconds.
    pub cpu_user_us: u64,
    /// The same in the kernel.
    pub cpu_system_us: u64,
    /// The busiest thread's CPU time as a share of the window, 0 to 1; under `--spin` without its idle
    /// waiting.
    pub busiest_thread: f64,
    /// The longest that a thread could have run and had to wait for a CPU, as a share of the window.
    #[serde(default)]
    pub most_waiting_thread: f64,
    /// The longest that a thread ran (idle spinning left out) or waited for a CPU, as a share of the window.
    #[serde(default)]
    pub most_occupied_thread: f64,
    /// How much later than it was due the first request was sent, in microseconds; the latest of all
    /// threads.
    #[serde(default)]
    pub start_late_us: f64,
    /// Requests a second against the null server with the same shape, when calibrated.
    #[serde(default)]
    pub ceiling: Option<f64>,
    /// How far apart the repeats of the calibration were, as a share of the ceiling.
    #[serde(default)]
    pub ceiling_spread: f64,
}

/// Samples of the server's process, its host's device and its own counters.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Watch {
    /// Where it was seen from: `local pid 4711`, `ssh db1 pid 4711`.
    pub source: String,
    /// The process over time.
    pub process: Vec<ProcessSample>,
    /// The device's name, such as `vda`, when there is one.
    #[serde(default)]
    pub device_name: Option<String>,
    /// The device over time, as iostat shows it.
    #[serde(default)]
    pub device: Vec<DeviceSample>,
    /// The server's own counters: their growth over the window.
    #[serde(default)]
    pub stats_growth: BTreeMap<String, f64>,
    /// The server's own gauges at the window's end.
    #[serde(default)]
    pub stats_end: BTreeMap<String, String>,
}

/// A process over one interval that ended at `at_ms`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessSample {
    /// The interval's end.
    pub at_ms: u64,
    /// The interval's length.
    pub interval_ms: u64,
    /// CPU time in user space, in microseconds.
    pub cpu_user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub cpu_system_us: u64,
    /// Resident memory at its end, in bytes.
    pub resident_bytes: u64,
    /// Context switches of all threads, given up or taken away.
    pub switches: u64,
}

/// A block device over one interval that ended at `at_ms`; the terms are iostat's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceSample {
    /// The interval's end.
    pub at_ms: u64,
    /// The interval's length.
    pub interval_ms: u64,
    /// Reads completed a second.
    pub reads: f64,
    /// Writes completed a second.
    pub writes: f64,
    /// Bytes read a second.
    pub read_bytes: f64,
    /// Bytes written a second.
    pub written_bytes: f64,
    /// Mean time of a read in the device and its queue, in milliseconds.
    pub read_await_ms: f64,
    /// The same of a write.
    pub write_await_ms: f64,
    /// Mean requests in the queue.
    pub queue: f64,
    /// Share of the time with at least one request, 0 to 1.
    pub utilisation: f64,
}

/// One generating host of a fleet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    /// Its name, as given.
    pub name: String,
    /// Requests answered.
    pub count: u64,
    /// Requests a second.
    pub rate: f64,
    /// Response latencies, all verbs.
    pub response: Latency,
    /// How much later than planned it began, in microseconds on the common clock.
    pub start_skew_us: f64,
    /// Its monotonic clock less the coordinator's, in microseconds.
    #[serde(default)]
    pub clock_offset_us: f64,
    /// Connections it had.
    #[serde(default)]
    pub connections: u32,
    /// Uncertainty of its clock's offset, in microseconds.
    pub clock_error_us: f64,
    /// The share of its window that all others were running too, 0 to 1.
    pub overlap: f64,
}

/// Latency against throughput of one server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Curve {
    /// The line's name, such as `larder 0.1.0`.
    pub label: String,
    /// The varied quantity: `rate` or `connections`.
    pub varied: String,
    /// Its points in rising order of the varied quantity; repeats are neighbours.
    pub points: Vec<Point>,
    /// The service level asked for, when one was.
    #[serde(default)]
    pub slo: Option<Slo>,
    /// The highest rate within the service level, with its 95 % interval: least, estimate, most.
    #[serde(default)]
    pub slo_capacity: Option<Estimate>,
    /// The highest rate seen, with its 95 % interval.
    #[serde(default)]
    pub max_rate: Option<Estimate>,
    /// Where rate divided by mean latency is highest.
    #[serde(default)]
    pub knee: Option<Estimate>,
}

/// A service level: a quantile of the response latency that must not be exceeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// 0 to 1; 0.99 for p99. For the mean it is 0.
    pub quantile: f64,
    /// The bound in nanoseconds.
    pub bound_ns: u64,
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Lower end.
    pub least: f64,
    /// Best guess.
    pub estimate: f64,
    /// Upper end.
    pub most: f64,
}

/// One point of a curve; latencies are response times in nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// The setting: a rate, or a number of connections.
    pub at: f64,
    /// The run behind it.
    pub run: String,
    /// Requests a second that were answered.
    pub rate: f64,
    /// Mean latency.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The server's CPU time a request, in microseconds, when watched.
    #[serde(default)]
    pub server_cpu_us: Option<f64>,
    /// Whether the generator was trusted at this point.
    pub certified: bool,
}

/// One store's counter under a number of threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counter {
    /// The store, such as `memcached`, `mariadb-innodb`.
    pub store: String,
    /// Its version as it reports it.
    pub version: String,
    /// The exact statement or request of one increment.
    pub statement: String,
    /// Threads, each with a connection of its own.
    pub threads: u32,
    /// The measured time.
    pub seconds: f64,
    /// Increments that were answered.
    pub count: u64,
    /// Increments a second.
    pub rate: f64,
    /// Their latencies.
    pub latency: Latency,
    /// Increments that failed or whose answer never came.
    pub errors: u64,
    /// Whether the history of answers is linearizable.
    pub check: Check,
    /// The cost of the threads, and what they can do at most.
    #[serde(default)]
    pub generator: Generator,
    /// The checks of every load: errors, the threads' own limit, Little's law.
    #[serde(default)]
    pub checks: Vec<Check>,
}

impl Counter {
    /// Whether its rate may be quoted: no check failed.
    pub fn is_certified(&self) -> bool {
        self.failed().next().is_none()
    }

    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        std::iter::once(&self.check).chain(&self.checks).filter(|check| check.verdict == Verdict::Fail)
    }
}

/// A rectangular table; cells are text that is ready to show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// Column names.
    pub columns: Vec<String>,
    /// Rows of as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// A check and its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// A short name, such as `little`, `rate`, `hits`, `generator`.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The figures behind it, in one line.
    #[serde(rename = "says")]
    pub message: String,
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    #[default]
    Pass,
    /// Worth a look; the figure still counts.
    Warn,
    /// The figure must not be used.
    Fail,
    /// Could not be checked.
    Skipped,
}

impl Document {
    /// The document as it is written to a file, quantiles beside the histograms.
    ///
    /// # Errors
    /// A figure has no form in JSON.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut filled = self.clone();
        for run in &mut filled.runs {
            run.response_ns = Quantiles::from(&run.response());
            for verb in &mut run.verbs {
                verb.response_ns = Quantiles::from(&verb.response);
            }
        }
        let mut json = serde_json::to_vec_pretty(&filled)?;
        json.push(b'\n');
        Ok(json)
    }
}

impl Interval {
    /// Counts another thread's, host's or second's requests into this one.
    pub fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.hits += more.hits;
        self.misses += more.misses;
        self.errors += more.errors;
        if more.count > 0 {
            self.response.add(&more.response);
        }
    }
}

impl Verb {
    /// Counts another thread's or host's row of the same verb into this one.
    pub fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.hits += more.hits;
        self.misses += more.misses;
        self.errors += more.errors;
        self.bytes_out += more.bytes_out;
        self.bytes_in += more.bytes_in;
        if more.count > 0 {
            self.response.add(&more.response);
            self.service.add(&more.service);
        }
    }
}

impl Run {
    /// Whether its figures may be quoted: it ran to its end and no check failed.
    pub fn is_certified(&self) -> bool {
        self.cut_short.is_none() && self.failed().next().is_none()
    }

    /// The checks that failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.verdict == Verdict::Fail)
    }

    /// Requests answered, all verbs.
    pub fn count(&self) -> u64 {
        self.verbs.iter().map(|verb| verb.count).sum()
    }

    /// Requests a second, all verbs; 0 for an empty window.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.count() as f64 / self.seconds } else { 0.0 }
    }

    /// Keys a second of the gets, where each asks for several.
    pub fn key_rate(&self) -> Option<f64> {
        self.keys_of("get").filter(|_| self.load.multi_get > 1)
    }

    /// Sets a second, where only the last of some in a row is answered.
    pub fn quiet_set_rate(&self) -> Option<f64> {
        self.keys_of("set").filter(|_| self.load.quiet_sets > 1)
    }

    /// Keys a second of a verb's requests; none if there were none.
    fn keys_of(&self, name: &str) -> Option<f64> {
        let rows = self.verbs.iter().filter(|row| row.name == name);
        let keys: u64 = rows.map(|row| row.hits + row.misses).sum();
        (keys > 0 && self.seconds > 0.0).then(|| keys as f64 / self.seconds)
    }

    /// The server's CPU time a request in microseconds, when it was watched: over the part of the window that
    /// was.
    pub fn server_cpu_us(&self) -> Option<f64> {
        let watch = self.watch.as_ref().filter(|watch| !watch.process.is_empty())?;
        let spent: u64 = watch.process.iter().map(|sample| sample.cpu_user_us + sample.cpu_system_us).sum();
        let watched_ms: u64 = watch.process.iter().map(|sample| sample.interval_ms).sum();
        let requests = self.rate() * watched_ms as f64 / 1000.0;
        (requests > 0.0).then(|| spent as f64 / requests)
    }

    /// Response latencies, all verbs.
    pub fn response(&self) -> Latency {
        self.of_all(|verb| &verb.response)
    }

    /// Service times of all verbs together.
    pub fn service(&self) -> Latency {
        self.of_all(|verb| &verb.service)
    }

    fn of_all(&self, latency: impl Fn(&Verb) -> &Latency) -> Latency {
        let mut all = Latency::new();
        self.verbs.iter().for_each(|verb| all.add(latency(verb)));
        all
    }
}
