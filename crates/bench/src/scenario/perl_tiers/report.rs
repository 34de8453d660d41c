//! The tables and checks of what was found.

use super::found::Found;
use super::plan::Plan;
use super::row::{FRESH, Loop, Promise, ROWS, Row, Worker};
use super::seed;
use super::site::Site;
use super::value;
use super::worker::Ran;
use crate::checks::tiers::{Costs, first_tier};
use crate::checks::{check, figure};
use crate::result::Verdict;
use crate::scenario::Stage;
use crate::scenario::part::table;

/// What the tables are made of.
struct Report<'a> {
    far: &'a [Site],
    near: &'a Site,
    plan: &'a Plan,
    found: &'a Found,
}

/// Adds the tables, checks and notes to the stage's part.
pub fn report(stage: &mut Stage<'_>, far: &[Site], near: &Site, plan: &Plan, found: &Found) {
    let report = Report { far, near, plan, found };
    let Some((first, _)) = plan.groups.first().copied() else { return };
    let with_document = stage.part.name == super::SCENARIO.name && first == value::BYTES;
    for group in plan.groups.iter().filter(|(bytes, _)| *bytes == first) {
        let (columns, rows) = report.in_full(*group, with_document);
        stage.part.table(&format!("{}, us an iteration", report.named(*group)), &columns, rows);
    }
    report.by_size(stage);
    report.gains(stage, first);
    report.promises(stage);
    report.golden(stage, (first, 0));
    report.raw(stage);
    report.notes(stage, with_document);
}

impl Report<'_> {
    fn named(&self, (bytes, site): (u32, usize)) -> String {
        format!("{} bytes, {}", figure(bytes.into()), self.far[site].name)
    }

    fn shown(&self, row: &Row) -> &'static str {
        row.shown(self.far.iter().all(Site::is_ours), self.near.is_ours())
    }

    /// The rows of a group, beside the document's, and what was read where.
    fn in_full(&self, group: (u32, usize), with_document: bool) -> (Vec<&'static str>, Vec<Vec<String>>) {
        let columns =
            vec!["", "theirs get", "get", "theirs set+get", "set+get", "set", "spread %", "near %", "gets"];
        let is_shown = |at: &usize| with_document || !columns[*at].starts_with("theirs");
        let shown: Vec<usize> = (0..columns.len()).filter(is_shown).collect();
        let rows = self.plan.rows.iter().map(|at| {
            let cells = self.cells(&ROWS[*at], group);
            shown.iter().map(|at| cells[*at].clone()).collect()
        });
        let rows = rows.collect();
        (shown.iter().map(|at| columns[*at]).collect(), rows)
    }

    fn cells(&self, row: &Row, group: (u32, usize)) -> [String; 9] {
        let cell = |which| self.found.cell(row.name, which, group);
        let shown = |us: Option<f64>| us.map_or("-".to_string(), figure);
        let median = |which| shown(self.found.us(row.name, which, group));
        let theirs = row.theirs.and_then(seed::row_of).map(seed::Row::iterations_us);
        let read = [cell(Loop::Get), cell(Loop::SetGet)];
        let sum = |of: fn(&Ran) -> u64| read.iter().flatten().map(|cell| cell.sum(of)).sum::<u64>();
        let spread = read.iter().flatten().filter_map(|cell| cell.us());
        let spread = spread.map(|(median, least, most)| 100.0 * (most - least) / median).reduce(f64::max);
        let gets = sum(|ran| ran.iterations);
        [
            self.shown(row).to_string(),
            shown(theirs.map(|us| us.0)),
            median(Loop::Get),
            shown(theirs.map(|us| us.1)),
            median(Loop::SetGet),
            median(Loop::Set),
            spread.map_or("-".to_string(), |spread| format!("{spread:.0}")),
            shown((gets > 0).then(|| 100.0 * sum(|ran| ran.near) as f64 / gets as f64)),
            figure(gets as f64),
        ]
    }

    /// A table for each loop and distance, with a column for each size.
    fn by_size(&self, stage: &mut Stage<'_>) {
        for (site, place) in self.far.iter().enumerate() {
            let mut sizes: Vec<u32> =
                self.plan.groups.iter().filter(|group| group.1 == site).map(|group| group.0).collect();
            sizes.sort_unstable();
            if sizes.len() < 2 {
                continue;
            }
            for which in [Loop::Get, Loop::SetGet] {
                let names: Vec<String> =
                    sizes.iter().map(|bytes| format!("{} B", figure((*bytes).into()))).collect();
                let columns: Vec<&str> =
                    std::iter::once("").chain(names.iter().map(String::as_str)).collect();
                let rows = self.plan.rows.iter().map(|at| {
                    let us = |bytes: &u32| self.found.us(ROWS[*at].name, which, (*bytes, site));
                    let cells = sizes.iter().map(|bytes| us(bytes).map_or("-".to_string(), figure));
                    std::iter::once(self.shown(&ROWS[*at]).to_string()).chain(cells).collect()
                });
                let title = format!("us a {} by bytes of the value, {}", which.name(), place.name);
                stage.part.table(&title, &columns, rows.collect());
            }
        }
    }

    /// What two tiers gain over the remote one alone, and cost over the near one alone.
    fn gains(&self, stage: &mut Stage<'_>, first: u32) {
        let mut rows = Vec::new();
        for group in &self.plan.groups {
            for at in &self.plan.rows {
                let row = &ROWS[*at];
                let Some((near, far)) = row.tiers else { continue };
                if group.0 != first && row.worker == Worker::Perl {
                    continue;
                }
                let us = |name, which| self.found.us(name, which, *group);
                let Some(get) = us(row.name, Loop::Get) else { continue };
                let far_get = us(far, Loop::Get);
                let cell = |value: Option<f64>| value.map_or("-".to_string(), figure);
                let set = us(row.name, Loop::SetGet).zip(us(far, Loop::Set)).map(|(both, set)| both - set);
                rows.push(vec![
                    row.name.to_string(),
                    self.named(*group),
                    cell(far_get.map(|far| far / get)),
                    cell(us(near, Loop::Get).map(|near| get / near)),
                    cell(set),
                ]);
                if let (Some(far_get), true) = (far_get, row.promise != Promise::NearLost) {
                    let verdict = if get < far_get { Verdict::Pass } else { Verdict::Warn };
                    let message = format!(
                        "{}: {} us, {} without a tier",
                        self.named(*group),
                        figure(get),
                        figure(far_get)
                    );
                    stage.part.check_of(row.name, check("tiers-gain", verdict, message));
                }
            }
        }
        let columns = ["", "", "get: remote / this", "get: this / near alone", "set+get - remote set, us"];
        if !rows.is_empty() {
            stage.part.table("what two tiers gain over the remote one alone", &columns, rows);
        }
    }

    /// Whether each row read from where its name says.
    fn promises(&self, stage: &mut Stage<'_>) {
        for at in &self.plan.rows {
            let row = &ROWS[*at];
            let cells = self.found.cells.iter().filter(|cell| cell.row == *at);
            let mut complaints = Vec::new();
            let (mut near, mut far, mut loops) = (0, 0, 0);
            for cell in cells {
                let group = self.named((cell.bytes, cell.site));
                let ours = self.far[cell.site].is_ours() && self.near.is_ours();
                for slice in &cell.slices {
                    let complaint = slice.complaint(row, cell.which, ours);
                    complaints.extend(complaint.map(|why| format!("{group}, {}: {why}", cell.which.name())));
                    (near, far, loops) = (near + slice.ran.near, far + slice.ran.far, loops + 1);
                }
            }
            let name = self.shown(row);
            let counts =
                format!("{loops} loops, {} gets near, {} remote", figure(near as f64), figure(far as f64));
            let made = match complaints.first() {
                None if loops == 0 => check("hits", Verdict::Skipped, "it did not run"),
                None => check("hits", Verdict::Pass, counts),
                Some(first) => {
                    let message = format!("{} of {counts} broke its promise; {first}", complaints.len());
                    check("hits", Verdict::Fail, message)
                }
            };
            stage.part.check_of(name, made);
        }
    }

    /// Whether the law that finds the document's fault in its figures finds it in ours where it is, and only there.
    fn golden(&self, stage: &mut Stage<'_>, group: (u32, usize)) {
        let us = |name, which| self.found.us(name, which, group);
        for row in self.plan.rows.iter().map(|at| &ROWS[*at]) {
            let Some((near, far)) = row.tiers else { continue };
            let costs = |name| Some((us(name, Loop::Get)?, us(name, Loop::SetGet)?));
            let (Some(l1), Some(l2), Some(measured)) = (costs(near), costs(far), us(row.name, Loop::Get))
            else {
                continue;
            };
            let (l1_set, l2_set) = ((l1.1 - l1.0).max(0.0), (l2.1 - l2.0).max(0.0));
            let costs = Costs { l1_get: l1.0, l1_set, l2_get: l2.0, l2_set };
            let law = first_tier(&costs, measured, false);
            let is_lost = row.promise == Promise::NearLost;
            let verdict = match (law.verdict, is_lost) {
                (Verdict::Fail, true) | (Verdict::Pass, false) => Verdict::Pass,
                _ => Verdict::Warn,
            };
            let expected = if is_lost { "has the document's fault" } else { "has it not" };
            let made = check("tiers-golden", verdict, format!("{expected}: {}", law.message));
            stage.part.check_of(row.name, made);
        }
    }

    /// Every loop as it was measured.
    fn raw(&self, stage: &mut Stage<'_>) {
        let rows = self.found.cells.iter().map(|cell| {
            let row = &ROWS[cell.row];
            let seconds: Vec<String> =
                cell.slices.iter().map(|slice| format!("{:.6}", slice.ran.seconds)).collect();
            let each: Vec<String> =
                cell.slices.iter().map(|slice| slice.ran.iterations.to_string()).collect();
            vec![
                self.shown(row).to_string(),
                cell.which.name().to_string(),
                cell.bytes.to_string(),
                self.far[cell.site].name.clone(),
                each.join(" "),
                seconds.join(" "),
                cell.sum(|ran| ran.misses).to_string(),
                cell.sum(|ran| ran.wrong).to_string(),
                cell.sum(|ran| ran.near).to_string(),
                cell.sum(|ran| ran.far).to_string(),
            ]
        });
        let columns = [
            "",
            "loop",
            "bytes",
            "remote server",
            "iterations of each round",
            "seconds of each round",
            "misses",
            "wrong",
            "gets near",
            "gets remote",
        ];
        let title = format!("{}: every loop", stage.part.name);
        stage.part.raw.push(table(&title, &columns, rows.collect()));
    }

    fn notes(&self, stage: &mut Stage<'_>, with_document: bool) {
        let least = |first_only: bool| {
            let first = self.plan.groups.first().copied();
            let cells =
                self.found.cells.iter().filter(|cell| !first_only || first == Some((cell.bytes, cell.site)));
            cells.map(|cell| cell.sum(|ran| ran.iterations)).min().unwrap_or(0)
        };
        let rounds = match self.plan.rounds {
            1 => "one round".to_string(),
            rounds => format!("{rounds} rounds"),
        };
        stage.part.note(format!(
            "figures are microseconds an iteration, the median of {rounds} in which the rows take turns \
             (`spread %`: between the fastest and the slowest); a loop has {} iterations in all rounds \
             together, or as many as its time allowed: at least {} in the first table and {} in the others; \
             no figure is scaled or computed from others",
            figure(self.plan.count as f64),
            figure(least(true) as f64),
            figure(least(false) as f64)
        ));
        stage.part.note(format!(
            "`Tiered` of Larder's client uses a value for {} s and then asks whether it is current; the \
             document's tiers never ask, and would not see a change by another host",
            FRESH.as_secs()
        ));
        if stage.options.wanted.value.is_none() {
            stage.part.note("values are made by this program; every one that is read is compared");
        }
        if with_document {
            stage.part.note(
                "the document's modules are written again from its description: Tiered, TieredFast and \
                 TieredLmc are Cache::Mmap, Cache::FastMmap and a local server before the remote one; \
                 TieredLmc loses the near value in a variable that ends too soon",
            );
        }
    }
}
