//! A made-up document that looks like a real one: a sweep of two servers over a device, and a counter
//! shoot-out.

use larder_bench::latency::Latency;
use larder_bench::random::Random;
use larder_bench::result::*;
use larder_bench::stats::{Sample, capacity, curve};

const SERVERS: [(&str, f64, f64); 2] =
    [("larder 0.1.0", 92_000.0, 48_000.0), ("memcached 1.6.18", 78_000.0, 55_000.0)];
const SLO: Slo = Slo { quantile: 0.99, bound_ns: 1_000_000 };

/// `points` rates a server, each a run of `seconds`.
pub fn document(points: usize, seconds: usize) -> Document {
    let mut rng = Random::new(2026);
    let mut document = Document {
        schema: SCHEMA,
        title: "Latency against throughput: larder and memcached, 100 B values, get 90 set 10".to_string(),
        command: [
            "larder-bench",
            "sweep",
            "-s",
            "127.0.0.1:11211",
            "--rates",
            "5k:80k:5k",
            "--slo",
            "p99<1ms",
        ]
        .map(str::to_string)
        .to_vec(),
        started_unix_ms: 1_795_203_000_000,
        environment: environment(),
        checks: vec![
            check("host", Verdict::Warn, "2 cores are shared by server and generator"),
            check("little", Verdict::Pass, "X*R within 3 % of the connections at every closed point"),
        ],
        notes: vec![
            "memtier is not installed: its row was skipped.".to_string(),
            "<b>One host</b> stands for seven: seven network namespaces & one core.".to_string(),
        ],
        tables: vec![table()],
        counters: counters(&mut rng),
        ..Document::default()
    };
    for (server, most, idle) in SERVERS {
        let mut curve = Curve {
            label: server.to_string(),
            varied: "rate".to_string(),
            slo: Some(SLO),
            ..Curve::default()
        };
        for at in 0..points {
            let share = 0.08 + 0.94 * at as f64 / (points - 1).max(1) as f64;
            let run = run(&mut rng, server, most, idle, share, seconds, document.runs.len());
            curve.points.push(point(&run, most * share));
            document.runs.push(run);
        }
        let runs = &document.runs[document.runs.len() - points..];
        let samples: Vec<Sample> =
            curve.points.iter().zip(runs).map(|(point, run)| Sample::of_run(point.at, run)).collect();
        curve.slo_capacity = capacity(&samples, SLO);
        curve.knee = curve::knee(&samples);
        curve.max_rate = curve::max_rate(&samples);
        document.curves.push(curve);
    }
    document
}

fn check(name: &str, verdict: Verdict, message: &str) -> Check {
    Check { name: name.to_string(), verdict, message: message.to_string() }
}

fn environment() -> Environment {
    let facts = [
        ("CPU", "2 x Xeon at 2.80 GHz, 33 MiB L3"),
        ("memory", "23 GiB"),
        ("kernel", "6.18.2"),
        ("governor", "performance"),
        ("clock source", "tsc"),
        ("device", "vda, ext4, O_DIRECT"),
        ("larder", "0.1.0"),
        ("memcached", "1.6.18"),
    ];
    Environment { facts: facts.map(|(a, b)| (a.to_string(), b.to_string())).to_vec() }
}

fn table() -> Table {
    let columns = ["Number of items", "Start time", "Final time", "Time/s", "Operations/s", "seed"];
    let rows = [
        ["100K", "1795203435", "1795203437", "1.62", "61.7 K", "13 s, ~7.7K"],
        ["1M", "1795203670", "1795203686", "16.1", "62.1 K", "125 s, 8K"],
    ];
    Table {
        title: "php-loop: the document's table beside ours".to_string(),
        columns: columns.map(str::to_string).to_vec(),
        rows: rows.map(|row| row.map(str::to_string).to_vec()).to_vec(),
    }
}

fn run(rng: &mut Random, server: &str, most: f64, idle: f64, share: f64, seconds: usize, at: usize) -> Run {
    let offered = most * share;
    let served = offered.min(most * 0.985);
    let (mut slip, mut all, mut service) = (Latency::new(), Latency::new(), Latency::new());
    let (mut intervals, mut process, mut device) = (Vec::new(), Vec::new(), Vec::new());
    let mut queue_ns = 0.0;
    for second in 0..seconds {
        let mean = idle * 0.6 / (1.0 - share.min(0.985)) * (0.12 * rng.normal()).exp();
        if share > 0.985 {
            queue_ns += (share - 0.985) * 1e9 + 2e6;
        }
        let stall = second == seconds * 2 / 3 && at % 5 == 4;
        let mut response = Latency::new();
        let samples = 1500;
        let weight = (served / samples as f64).max(1.0) as u64;
        for sample in 0..samples {
            let own = idle + mean * rng.exponential();
            let slow = if rng.unit() < 0.002 { own * 8.0 } else { own };
            let late = (2_000.0 + 9_000.0 * rng.exponential()) as u64;
            let waits = if stall && sample % 10 < 2 { 3e8 * rng.unit() } else { 0.0 } + queue_ns;
            service.record_n(slow as u64, weight);
            slip.record_n(late + waits as u64, weight);
            response.record_n((slow + waits) as u64 + late, weight);
        }
        all.add(&response);
        let count = response.count();
        let gets = count * 9 / 10;
        let hits = (gets as f64 * (0.93 + 0.05 * (1.0 - (-(second as f64) / 5.0).exp()))) as u64;
        intervals.push(Interval {
            at_ms: second as u64 * 1000,
            count,
            hits,
            misses: gets - hits,
            errors: u64::from(stall),
            response,
        });
        let noise = 1.0 + 0.05 * rng.normal();
        process.push(ProcessSample {
            at_ms: (second as u64 + 1) * 1000,
            interval_ms: 1000,
            cpu_user_us: (served * 4.1 * noise) as u64,
            cpu_system_us: (served * 6.3 * noise) as u64,
            resident_bytes: (214 << 20) + (second as u64) * (1 << 20),
            switches: (served * 0.4 * noise) as u64,
        });
        device.push(DeviceSample {
            at_ms: (second as u64 + 1) * 1000,
            interval_ms: 1000,
            reads: served * 0.21 * noise,
            writes: 40.0 + 30.0 * rng.unit(),
            read_bytes: served * 0.21 * 4096.0,
            written_bytes: 48e6 * noise,
            read_await_ms: 0.11 * noise,
            write_await_ms: 0.9 * noise,
            queue: 2.4 * noise,
            utilisation: (share * 0.8).min(1.0),
        });
    }
    let count: u64 = intervals.iter().map(|interval| interval.count).sum();
    let (hits, misses) =
        intervals.iter().fold((0, 0), |(hits, misses), i: &Interval| (hits + i.hits, misses + i.misses));
    let mut checks = vec![
        check("generator", Verdict::Pass, "busiest thread 48 %, 41 % of its ceiling of 174 K/s"),
        check("rate", Verdict::Pass, "99.97 % of the offered rate"),
        check("hits", Verdict::Pass, "97.9 % (model 98.1)"),
        check("values", Verdict::Pass, "18,750 looked at, 0 wrong"),
    ];
    if share > 0.985 {
        checks[1] =
            check("rate", Verdict::Fail, "offered 93,840/s, served 90,620/s: latency is queue length");
    }
    Run {
        label: format!("{} {:.0}/s", server.split(' ').next().unwrap_or(server), offered),
        server: server.to_string(),
        address: "127.0.0.1:11211".to_string(),
        protocol: "text".to_string(),
        workload: "zipf 0.99 over 1 M keys, 100 B, get 90 set 10".to_string(),
        load: Load {
            rate: Some(offered),
            arrival: "poisson".to_string(),
            threads: 1,
            connections: 16,
            pipeline: 64,
            multi_get: 1,
            quiet_sets: 1,
        },
        started_unix_ms: 1_795_203_000_000 + at as u64 * 40_000,
        seconds: seconds as f64,
        verbs: vec![Verb {
            name: "get".to_string(),
            count,
            hits,
            misses,
            response: all,
            service,
            ..Verb::default()
        }],
        intervals,
        slip,
        watch: Some(Watch {
            source: "local pid 4711".to_string(),
            process,
            device_name: Some("vda".to_string()),
            device,
            stats_growth: [("cmd_get".to_string(), count as f64), ("get_misses".to_string(), misses as f64)]
                .into(),
            stats_end: [("version".to_string(), "0.1.0".to_string())].into(),
        }),
        checks,
        ..Run::default()
    }
}

fn point(run: &Run, at: f64) -> Point {
    let response = run.response();
    Point {
        at,
        run: run.label.clone(),
        rate: run.rate(),
        mean_ns: response.mean_ns(),
        p50_ns: response.quantile_ns(0.5),
        p99_ns: response.quantile_ns(0.99),
        p999_ns: response.quantile_ns(0.999),
        server_cpu_us: Some(10.4),
        certified: run.is_certified(),
    }
}

/// The shape of seed 004, and a store that loses updates.
fn counters(rng: &mut Random) -> Vec<Counter> {
    let stores: [(&str, &str, f64, f64); 8] = [
        ("memcached", "1.6.18", 61_000.0, 0.92),
        ("larder", "0.1.0", 64_000.0, 0.95),
        ("redis", "7.0.15", 58_000.0, 0.97),
        ("mariadb-memory", "10.11", 9_000.0, 0.93),
        ("mariadb-innodb", "10.11", 310.0, 1.1),
        ("mariadb-orm", "10.11", 5_200.0, 0.94),
        ("postgresql", "15.18", 7_600.0, 1.05),
        ("broken-rmw", "get; set", 30_000.0, 1.0),
    ];
    let mut counters = Vec::new();
    for (store, version, alone, factor) in stores {
        for threads in 1..=10u32 {
            let rate = alone * f64::from(threads).powf(factor - 0.75) * (1.0 + 0.03 * rng.normal());
            let mut latency = Latency::new();
            (0..500)
                .for_each(|_| latency.record((f64::from(threads) / rate * 1e9 * rng.exponential()) as u64));
            let broken = store == "broken-rmw" && threads > 1;
            let verdict = if broken { Verdict::Fail } else { Verdict::Pass };
            let message = match broken {
                true => "value 4711 answered twice, by threads 1 and 3: an update was lost",
                false => "distinct, 1..N, in real-time order, final read is N",
            };
            counters.push(Counter {
                store: store.to_string(),
                version: version.to_string(),
                statement: format!("incr counter 1 -- as {store} has it"),
                threads,
                seconds: 10.0,
                count: (rate * 10.0) as u64,
                rate,
                latency,
                errors: 0,
                check: check("linearizable", verdict, message),
                ..Counter::default()
            });
        }
    }
    counters
}
