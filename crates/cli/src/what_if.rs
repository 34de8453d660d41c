//! `larder what-if`: what a server would miss with other options, tried on its traffic.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use larder_client::{Client, Error};
use serde::Serialize;

use crate::connect::One;
use crate::exit::{Failure, Outcome, Verdict, print, print_json};
use crate::figures::stats;
use crate::units::{bytes, duration, show_bytes, show_count, show_seconds};

const DAY_S: f64 = 86_400.0;
/// How often a trial is looked at, and how long the server may take to begin it.
const PAUSE: Duration = Duration::from_millis(250);
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// Tries other options on the server's traffic, without changing it
///
/// Two shadows that begin empty see a sample of the traffic: one of the cache as it is, one with these options. Once
/// both have filled, they tell what would be missed. Without an option, the present trial is shown.
#[derive(Debug, Args)]
pub struct WhatIfArguments {
    /// Another memory limit, as -m
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// Another size of the whole SSD
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    ssd: Option<u64>,
    /// Another admission to the SSD
    #[arg(long, value_name = "WORD", value_parser = ["all", "returning"])]
    ssd_admission: Option<String>,
    /// Another write limit
    #[arg(long, value_name = "SIZE/s", value_parser = bytes, conflicts_with = "no_ssd_write_limit")]
    ssd_write_limit: Option<u64>,
    /// No write limit
    #[arg(long)]
    no_ssd_write_limit: bool,
    /// Another typical item size
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    item_size: Option<u64>,
    /// A time after which every item expires at the latest
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl_max: Option<Duration>,
    /// Wait for a result, at most so long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    wait: Option<Duration>,
    /// End the trial
    #[arg(long)]
    end: bool,
    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    one: One,
}

impl WhatIfArguments {
    /// Returns the words of the command to the server.
    fn words(&self) -> Vec<String> {
        if self.end {
            return vec!["end".to_string()];
        }
        let write_limit = if self.no_ssd_write_limit { Some(0) } else { self.ssd_write_limit };
        let numbers = [
            ("memory_bytes", self.memory),
            ("ssd_bytes", self.ssd),
            ("ssd_write_limit", write_limit),
            ("item_size", self.item_size),
            ("ttl_max", self.ttl_max.map(|time| time.as_secs().max(1))),
        ];
        let numbers = numbers.into_iter().filter_map(|(name, number)| Some(format!("{name}={}", number?)));
        numbers.chain(self.ssd_admission.iter().map(|word| format!("ssd_admission={word}"))).collect()
    }
}

/// The lines of `stats what_if`.
struct Lines(Vec<(String, String)>);

impl Lines {
    fn ask(client: &Client, words: &[String]) -> Outcome<Lines> {
        let command = std::iter::once("what_if").chain(words.iter().map(String::as_str));
        match stats(client, &command.collect::<Vec<_>>().join(" ")) {
            Err(Error::Refused { .. }) => {
                Err(Failure::of("the server tries no options: what-if asks a Larder"))
            }
            lines => Ok(Lines(lines?)),
        }
    }

    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }
}

/// What a trial has found.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Trial {
    state: String,
    options: BTreeMap<String, String>,
    seconds: u64,
    gets: u64,
    /// Misses of all gets as the cache is, and with the options; unless the state is `ready`, not known.
    miss_ratio_as_it_is: Option<f64>,
    miss_ratio: Option<f64>,
    miss_ratio_low: Option<f64>,
    miss_ratio_high: Option<f64>,
    ssd_bytes_written_a_day_as_it_is: u64,
    ssd_bytes_written_a_day: u64,
}

/// Runs the verb.
///
/// # Errors
/// The server cannot be asked, or refuses the options.
pub fn run(arguments: &WhatIfArguments) -> Outcome<Verdict> {
    let client = arguments.one.client()?;
    let words = arguments.words();
    let ordered = Lines::ask(&client, &words)?;
    let begun = Instant::now();
    let mut lines = match ordered.text("state") {
        "off" => {
            return Err(Failure::of("the server has no shadows; start it with --shadow-memory, without -M"));
        }
        "refused" => return Err(Failure::of(ordered.text("error"))),
        "ordered" => wait_until(&client, begun + BEGINS_WITHIN, |lines| {
            lines.number("trial") >= ordered.number("trial")
        })?,
        _ => ordered,
    };
    if let Some(wait) = arguments.wait.filter(|_| lines.text("state") != "ready") {
        lines = wait_until(&client, begun + wait, |lines| !matches!(lines.text("state"), "filling" | "few"))?;
    }
    if lines.text("state") == "refused" {
        return Err(Failure::of(lines.text("error")));
    }
    let trial = trial(&lines);
    match arguments.json {
        true => print_json(&trial)?,
        false => print(&page(&trial))?,
    }
    Ok(Verdict::Fine)
}

/// Asks for the trial until it is as wanted, or the time has come.
fn wait_until(client: &Client, until: Instant, is_wanted: impl Fn(&Lines) -> bool) -> Outcome<Lines> {
    loop {
        let lines = Lines::ask(client, &[])?;
        if is_wanted(&lines) || Instant::now() >= until {
            return Ok(lines);
        }
        thread::sleep(PAUSE);
    }
}

fn trial(lines: &Lines) -> Trial {
    let state = lines.text("state").to_string();
    let seconds = lines.number("window_seconds");
    let a_day = |name: &str| (lines.number(name) / seconds.max(1.0) * DAY_S) as u64;
    let gets = lines.number("window_gets");
    let is_ready = state == "ready";
    let known = |name: &str| lines.text(name).parse().ok().filter(|_| is_ready);
    let tried = lines.0.iter().filter_map(|(name, value)| {
        name.strip_prefix("tried_").map(|option| (option.to_string(), value.clone()))
    });
    Trial {
        options: tried.collect(),
        seconds: seconds as u64,
        gets: gets as u64,
        miss_ratio_as_it_is: is_ready.then(|| lines.number("window_misses") / gets.max(1.0)),
        miss_ratio: known("miss_ratio"),
        miss_ratio_low: known("miss_ratio_low"),
        miss_ratio_high: known("miss_ratio_high"),
        ssd_bytes_written_a_day_as_it_is: a_day("ssd_bytes_written_as_it_is"),
        ssd_bytes_written_a_day: a_day("ssd_bytes_written"),
        state,
    }
}

/// Returns what the trial has found, in words.
fn page(trial: &Trial) -> String {
    let mut page = String::new();
    if !trial.options.is_empty() {
        let options: Vec<_> = trial.options.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let _ = writeln!(page, "Tried: {}.", options.join(", "));
    }
    let ratios = (trial.miss_ratio_as_it_is, trial.miss_ratio, trial.miss_ratio_low, trial.miss_ratio_high);
    let (Some(now), Some(ratio), Some(low), Some(high)) = ratios else {
        return page + unknown(&trial.state);
    };
    let percent = |ratio: f64| format!("{:.2} %", ratio * 100.0);
    let _ = writeln!(
        page,
        "{} of the gets would miss (between {} and {}) instead of {}.",
        percent(ratio),
        percent(low),
        percent(high),
        percent(now)
    );
    if trial.ssd_bytes_written_a_day + trial.ssd_bytes_written_a_day_as_it_is > 0 {
        let _ = writeln!(
            page,
            "{} would be written to the SSD a day instead of {}.",
            show_bytes(trial.ssd_bytes_written_a_day),
            show_bytes(trial.ssd_bytes_written_a_day_as_it_is)
        );
    }
    let _ = writeln!(page, "Seen: {} gets in {}.", show_count(trial.gets), show_seconds(trial.seconds));
    page
}

/// Returns why nothing is known, and what to do.
fn unknown(state: &str) -> &'static str {
    match state {
        "none" => "Nothing is tried; give an option to try, such as --ttl-max 1h.\n",
        "few" => "The sample has missed too little yet; ask again with larder what-if, or give --wait.\n",
        _ => "The shadows have not filled yet; ask again with larder what-if, or give --wait.\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Verb {
        #[command(flatten)]
        arguments: WhatIfArguments,
    }

    fn words(line: &str) -> Vec<String> {
        Verb::parse_from(line.split(' ')).arguments.words()
    }

    fn lines(state: &str) -> Lines {
        let line = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        let found = [
            ("state", state),
            ("trial", "3"),
            ("tried_ttl_max", "60"),
            ("window_seconds", "100"),
            ("window_gets", "20000"),
            ("window_misses", "2000"),
            ("miss_ratio", if state == "ready" { "0.150000" } else { "unknown" }),
            ("miss_ratio_low", "0.140000"),
            ("miss_ratio_high", "0.160000"),
            ("ssd_bytes_written_as_it_is", "1000000"),
            ("ssd_bytes_written", "500000"),
        ];
        Lines(found.map(line).into())
    }

    #[test]
    fn options_become_words_of_the_server() {
        assert_eq!(words("what-if"), Vec::<String>::new());
        assert_eq!(words("what-if --memory 2g --ttl-max 1h"), ["memory_bytes=2147483648", "ttl_max=3600"]);
        let limited = words("what-if --ssd-admission returning --no-ssd-write-limit");
        assert_eq!(limited, ["ssd_write_limit=0", "ssd_admission=returning"]);
        assert_eq!(words("what-if --end"), ["end"]);
    }

    #[test]
    fn a_result_is_told_beside_what_the_cache_does() {
        let page = page(&trial(&lines("ready")));
        let wanted = "Tried: ttl_max 60.\n\
                      15.00 % of the gets would miss (between 14.00 % and 16.00 %) instead of 10.00 %.\n\
                      432 MB would be written to the SSD a day instead of 864 MB.\n\
                      Seen: 20.0k gets in 1m 40s.\n";
        assert_eq!(page, wanted);
    }

    #[test]
    fn a_trial_that_tells_nothing_yet_says_what_to_do() {
        assert!(page(&trial(&lines("filling"))).contains("--wait"));
        assert!(page(&trial(&lines("few"))).contains("too little"));
        assert!(page(&trial(&Lines(vec![("state".into(), "none".into())]))).contains("--ttl-max"));
    }
}
