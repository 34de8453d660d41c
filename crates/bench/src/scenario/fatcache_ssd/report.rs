//! Tables, checks and notes of the arrangements that were measured.

use super::phases::EXTSTORE_KEEPS_RATE;
use super::{CONNECTIONS, Found, device, mcperf, seed};
use crate::checks::{check, figure, hosts, labels, queueing};
use crate::result::{Check, Run, Verdict};
use crate::scenario::Stage;
use crate::scenario::part::{marked, row};
use crate::scenario::server::Make;

/// More than this share from RAM is no test of an SSD.
const RAM_MAX: f64 = 0.05;
/// Fewer reads of the device for each get than this, and most gets did not reach it. Neighbours share a page,
/// so that one read can serve two gets at once.
const READS_MIN: f64 = 0.5;

/// The share of gets that RAM answered, 0 to 1; none when nothing was found.
fn ram_share((ram, ssd): (f64, f64)) -> Option<f64> {
    (ram + ssd > 0.0).then(|| ram / (ram + ssd))
}

/// Adds tables, checks, notes and runs to the scenario's part.
pub(super) fn report(stage: &mut Stage<'_>, found: &mut [Found]) {
    stage.part.tables.extend(seed::tables());
    summary(stage, found);
    mcperf::tables(stage, found);
    device::table(stage, found);
    for one in found.iter() {
        judge(stage, one);
    }
    for one in found.iter_mut() {
        stage.part.runs.extend([one.set.take(), one.get.take()].into_iter().flatten());
    }
    let rates = match stage.options.as_seed {
        true => {
            "as in the document, the rates are 1000 sets and 40 gets a second of each connection, whether or \
                 not the servers can do that"
        }
        false => {
            "rates are the document's 1000 sets and 40 gets a second of each connection, or 60 % of what was \
                  reached in a closed loop where that is less: beyond, latency is the length of a queue"
        }
    };
    stage.part.note(rates);
    stage.part.note(
        "the document had one machine for the servers and one for the load, and an SSD of 600 GB; here the \
         servers share one file on the device of this host, read with O_DIRECT by Larder",
    );
    if found.iter().any(|one| one.arrangement.make == Some(Make::Extstore)) {
        stage.part.note(format!(
            "extstore is filled at {} sets a second, and that is its most here: it drops what comes faster",
            figure(EXTSTORE_KEEPS_RATE)
        ));
    }
    if found.iter().any(|one| one.arrangement.make.is_none()) {
        stage.part.note(
            "server runs already: it has the RAM, the SSD and the threads that it has, keeps the keys mcp:*, \
             and its device is not watched",
        );
    }
    stage
        .part
        .note("gets read the older half of the keys, each once, since what was stored last is in RAM still");
}

fn summary(stage: &mut Stage<'_>, found: &[Found]) {
    let mut rows =
        vec![row([&"document x8", &"1,000,000", &"93,532", &"-", &"4,000", &"32,000", &"-", &"1.0"])];
    for one in found {
        let rate = |run: &Option<Run>| run.as_ref().map_or(0.0, Run::rate);
        let is_sound = |run: &Option<Run>| run.as_ref().is_none_or(Run::is_certified);
        let servers = f64::from(one.arrangement.servers);
        let get = rate(&one.get);
        let found = device::reads_a_get(one);
        let reads = found.map_or("-".to_string(), |reads| figure(device::hundredths(reads)));
        let share = one.hits.and_then(ram_share);
        // The page cache is RAM, whatever the server's own counters say.
        let has_read = found.is_none_or(|reads| reads >= READS_MIN);
        let is_ssd = share.is_some_and(|share| share <= RAM_MAX) && has_read;
        let name = match is_ssd {
            true => one.arrangement.name.to_string(),
            false if one.hits.is_none() => format!("{} (RAM or SSD)", one.arrangement.name),
            false => format!("{} (RAM)", one.arrangement.name),
        };
        rows.push(row([
            &name,
            &figure(one.keys as f64),
            &marked(figure((rate(&one.set) / servers).round()), is_sound(&one.set)),
            &marked(figure((one.set_most / servers).round()), one.is_set_most_certified),
            &marked(figure((get / servers).round()), is_sound(&one.get)),
            &marked(figure(get.round()), is_sound(&one.get)),
            &share.map_or("-".to_string(), |share| figure((share * 1000.0).round() / 10.0)),
            &reads,
        ]));
    }
    let columns = [
        "",
        "keys a server",
        "set/s a server",
        "at most",
        "get/s a server",
        "get/s in all",
        "% from RAM",
        "reads a get",
    ];
    stage.part.table("set and get at a rate", &columns, rows);
}

fn judge(stage: &mut Stage<'_>, one: &Found) {
    let name = one.arrangement.name;
    for (verb, run) in [("set", &one.set), ("get", &one.get)] {
        for check in run.iter().flat_map(|run| load(stage, one, run)).collect::<Vec<_>>() {
            stage.part.check_of(&format!("{name}, {verb}"), check);
        }
    }
    let Some(get) = &one.get else { return };
    for check in [Some(tier(one)), Some(device_reads(one, get)), device_queue(get)].into_iter().flatten() {
        stage.part.check_of(&format!("{name}, get"), check);
    }
}

/// Checks the load of one run: overload, the generator, percentiles, and hosts that began together.
fn load(stage: &Stage<'_>, one: &Found, run: &Run) -> Vec<Check> {
    let response = run.response();
    let connections = CONNECTIONS as u32 * one.arrangement.servers;
    let cpu_s = (run.generator.cpu_user_us + run.generator.cpu_system_us) as f64 / 1e6;
    let cpus = stage.host.load_cpus.len().max(1) as f64;
    let printed: Vec<(f64, u64)> =
        mcperf::PERCENTILES.iter().map(|p| (*p, response.quantile_ns(p / 100.0))).collect();
    let mut checks = vec![
        queueing::overload(run.load.rate.unwrap_or(0.0), run.rate(), response.mean_ns(), connections),
        queueing::generator(cpu_s / run.seconds.max(1e-9) / cpus),
        labels::percentiles(&printed, &response),
    ];
    if run.hosts.len() > 1 {
        checks.push(hosts::fairness(&run.hosts.iter().map(|host| host.rate).collect::<Vec<_>>()));
        checks.push(hosts::overlap(&run.hosts));
    }
    checks
}

/// Checks that RAM served few of the gets.
fn tier(one: &Found) -> Check {
    let Some(hits) = one.hits else {
        let message = "the server has no counters that tell RAM from SSD: its gets may be from either";
        return check("ssd", Verdict::Skipped, message);
    };
    let Some(share) = ram_share(hits) else {
        return check("ssd", Verdict::Fail, "no get was answered from any tier");
    };
    let is_ssd = share <= RAM_MAX;
    let verdict = match one.arrangement.make {
        _ if is_ssd => Verdict::Pass,
        Some(Make::Larder) => Verdict::Fail,
        _ => Verdict::Warn,
    };
    let more = if is_ssd { "" } else { ": this is no figure of an SSD, and the table says RAM" };
    let (share, most) = (share * 100.0, RAM_MAX * 100.0);
    check("ssd", verdict, format!("RAM served {share:.1} % of the gets ({most:.0} % is the most){more}"))
}

/// Checks that gets reached the device.
fn device_reads(one: &Found, get: &Run) -> Check {
    let Some(reads) = device::reads(get) else {
        let message = "no block device is known for the servers' files";
        return check("device-reads", Verdict::Skipped, message);
    };
    let found = queueing::reads_per_get(reads, get.rate(), READS_MIN);
    // The page cache of another's design is no fault of the measurement.
    let keeps_verdict = one.arrangement.is_our_larder() || found.verdict != Verdict::Fail;
    Check { verdict: if keeps_verdict { found.verdict } else { Verdict::Warn }, ..found }
}

/// Checks the device's queue against its rate and waiting time, where it was read at all.
fn device_queue(get: &Run) -> Option<Check> {
    let sample = device::busiest(get)?;
    let await_ms = device::hundredths(sample.read_await_ms);
    Some(queueing::device_queue(sample.reads, await_ms, sample.queue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ram_is_not_called_ssd() {
        assert_eq!(ram_share((0.0, 0.0)), None);
        assert!(ram_share((4.0, 96.0)).is_some_and(|share| share <= RAM_MAX));
        assert!(ram_share((6.0, 94.0)).is_some_and(|share| share > RAM_MAX));
    }
}
