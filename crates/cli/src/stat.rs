//! `larder stat`: one line of figures for each interval, as vmstat has it.

mod columns;

use std::io::{IsTerminal, stdout};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use clap::Args;

use crate::connect::One;
use crate::exit::{Outcome, Verdict, print};
use crate::figures::Figures;
use crate::http::HttpSource;
use crate::latencies::Latencies;
use crate::screen::{sleep_until, stop_on_signals, width};
use crate::units;
use columns::{Step, header, json, line};

/// The lines between two headers on a terminal.
const HEADER_EVERY: u64 = 20;

/// Shows what a server does, a line for each interval
///
/// Without an interval it shows one line, with the averages since the server's start. Columns that do not fit on the
/// terminal are left out. With --http there are times too, of all requests of an interval; with --server beside it,
/// only these come over HTTP.
#[derive(Debug, Args)]
pub struct StatArguments {
    /// Show a line each so often
    #[arg(long, short, value_name = "TIME", value_parser = units::duration)]
    interval: Option<Duration>,
    /// End after so many lines
    #[arg(long, short = 'n', value_name = "N", requires = "interval")]
    count: Option<u64>,
    /// Print each line as an object of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    http: HttpSource,
    #[command(flatten)]
    one: One,
}

/// Runs the verb.
///
/// # Errors
/// The server cannot be asked.
pub fn run(arguments: &StatArguments) -> Outcome<Verdict> {
    let StatArguments { http, one, .. } = arguments;
    let client = one.client()?;
    let stop = stop_on_signals();
    let sample = || -> Outcome<Sample> {
        if !http.is_given() {
            return Ok((Figures::ask(&client)?, None));
        }
        let is_over_http = one.server.is_none();
        let figures = if is_over_http { Figures::over_http(http) } else { Figures::ask(&client) };
        Ok((figures?, Some(Latencies::of(&http.text("/metrics")?))))
    };
    let mut before = None;
    let mut now = sample()?;
    let mut lines = 0;
    let Some(interval) = arguments.interval else {
        return show(arguments, &step(None, &now), 0).map(|()| Verdict::Fine);
    };
    let mut next = Instant::now();
    while !stop.load(Relaxed) {
        if before.is_some() {
            show(arguments, &step(before.as_ref(), &now), lines)?;
            lines += 1;
        }
        if arguments.count.is_some_and(|count| lines >= count) {
            break;
        }
        next += interval;
        sleep_until(next, &stop);
        before = Some(std::mem::replace(&mut now, sample()?));
    }
    Ok(Verdict::Fine)
}

/// Figures and times at one time.
type Sample = (Figures, Option<Latencies>);

fn step<'a>(before: Option<&'a Sample>, now: &'a Sample) -> Step<'a> {
    let latencies = now.1.as_ref().map(|now| match before {
        Some((_, Some(before))) => now.since(before),
        _ => now.clone(),
    });
    Step { before: before.map(|(figures, _)| figures), now: &now.0, latencies }
}

fn show(arguments: &StatArguments, step: &Step<'_>, number: u64) -> Outcome<()> {
    if arguments.json {
        return print(&format!("{}\n", json(step)));
    }
    let out = stdout();
    let columns = width(&out);
    let wants_header = number == 0 || (out.is_terminal() && number.is_multiple_of(HEADER_EVERY));
    if wants_header {
        print(&(header(step, columns) + "\n"))?;
    }
    print(&(line(step, columns) + "\n"))
}
