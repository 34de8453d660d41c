//! `larder-bench calibrate`: the highest rate of this generator, and how late it sends.

use super::summary::wrap;
use super::{Exit, Failure, load, output};
use crate::calibrate::{NullProcess, shape_of};
use crate::engine::{Arrival, Load, Plan, Unseen, WhenFull, execute};
use crate::result::{Document, Run};
use crate::show;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Find the limits of this generator with a shape of load: its ceiling, the shortest latency it can
/// see, and how late it sends at half the ceiling. It runs against a null server in a process of its own; the
/// address is not used.
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct Args {
    #[command(flatten)]
    load: load::Args,
    /// Write the three runs to a file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

/// Runs it.
///
/// # Errors
/// The null server does not come up, or the result cannot be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let plan = args.load.plan()?;
    let stop = output::stop_on_signals();
    let program = std::env::current_exe().map_err(Failure::error)?;
    let server = NullProcess::start(&program, &plan)?;
    let length = plan.duration.min(Duration::from_secs(60));
    let shape = shape_of(&plan, server.address.clone(), length);
    let measured = |label: &str, plan: &Plan, stop: &AtomicBool| -> Result<Run, Failure> {
        let run = execute(&Plan { label: label.to_string(), ..plan.clone() }, &Unseen, stop)?;
        match &run.cut_short {
            Some(why) => Err(Failure::error(format!("{label}: {why}"))),
            None => Ok(run),
        }
    };
    let ceiling = measured("ceiling", &shape, &stop)?;
    let width = output::width();
    let tell = |line: String| println!("{}", wrap(&line, width, "          "));
    tell(format!(
        "ceiling   {} with {} connections, {}; {:.2} us CPU a request, busiest thread {:.0} %",
        show::rate(ceiling.rate()),
        shape.connections,
        shape.load,
        cpu_us(&ceiling),
        ceiling.generator.busiest_thread * 100.0
    ));
    let mut single = shape.clone();
    single.load = Load::Closed { pipeline: 1 };
    (single.threads, single.connections) = (1, 1);
    let floor = measured("floor", &single, &stop)?;
    let time = |quantile| show::time(floor.response().quantile_ns(quantile) as f64);
    tell(format!("floor     p50 {}, p99 {} with one request in flight", time(0.5), time(0.99)));
    let mut half = shape;
    half.load = Load::Open {
        rate: (ceiling.rate() / 2.0).max(1.0),
        arrival: Arrival::Poisson,
        max_in_flight: 100_000,
        when_full: WhenFull::Wait,
    };
    let slip = measured("slip", &half, &stop)?;
    let time = |quantile| show::time(slip.slip.quantile_ns(quantile) as f64);
    tell(format!("slip      p50 {}, p99 {} at {}", time(0.5), time(0.99), show::rate(slip.rate())));
    tell(format!(
        "certified up to {} in an open loop (70 % of the ceiling)",
        show::rate(ceiling.rate() * 0.7)
    ));
    if let Some(path) = &args.json {
        let runs = vec![ceiling, floor, slip];
        let document = Document { title: "calibration".to_string(), runs, ..output::document() };
        output::write_json(path, &document)?;
    }
    Ok(Exit::Ok)
}

fn cpu_us(run: &Run) -> f64 {
    (run.generator.cpu_user_us + run.generator.cpu_system_us) as f64 / run.count().max(1) as f64
}
