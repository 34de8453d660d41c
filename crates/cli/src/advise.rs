//! `larder advise`: which size of a cache costs the least, by what its server estimates of other sizes.

use std::fmt::Write as _;

use clap::Args;
use larder_client::Error;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::connect::One;
use crate::exit::{Failure, Outcome, Verdict, print, print_json};
use crate::figures::stats;
use crate::http::{HttpSource, text_of};
use crate::prefixes::{Prefix, Prefixes};
use crate::units::{show_bytes, show_whole};

const GB: f64 = 1e9;
const DAY_S: f64 = 86_400.0;
const MONTH_S: f64 = 30.0 * DAY_S;
const MILLION: f64 = 1e6;

/// Names the size of RAM and SSD that costs the least
///
/// The server estimates what it would miss with other sizes (stats mrc). What a size costs in a month of 30 days is the
/// price of its RAM and its SSD, and the cost of its misses at the present rate of gets. Prices may be in any currency.
/// If a prefix of keys writes far more to the SSD than it gives hits (stats prefixes), it is named.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    /// The price of a GB of RAM for a month
    #[arg(long, value_name = "PRICE", value_parser = price)]
    price_ram: f64,
    /// The price of a GB of SSD for a month
    #[arg(long, value_name = "PRICE", value_parser = price)]
    price_ssd: f64,
    /// The cost of a million misses
    #[arg(long, value_name = "PRICE", value_parser = price)]
    cost_of_miss: f64,
    /// Print the numbers as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    http: HttpSource,
    #[command(flatten)]
    one: One,
}

/// Parses a price: a number that is not below 0.
fn price(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("\"{text}\" is no price; give a number such as 2.5"))
}

/// A size and what it would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Size {
    memory_bytes: u64,
    ssd_bytes: u64,
    is_today: bool,
    /// Whether its shadow has filled: before, it may come to miss less.
    is_full: bool,
    miss_ratio: f64,
    miss_ratio_low: f64,
    miss_ratio_high: f64,
    ssd_bytes_written_a_day: u64,
    cost: Cost,
}

/// What a size costs in a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Cost {
    ram: f64,
    ssd: f64,
    misses: f64,
    all: f64,
    /// With the misses at the ends of their interval.
    low: f64,
    high: f64,
}

/// Runs the verb.
///
/// # Errors
/// The server cannot be asked, estimates nothing, or not yet.
pub fn run(arguments: &AdviseArguments) -> Outcome<Verdict> {
    let (lines, prefixes) = match arguments.http.alone(&arguments.one)? {
        Some(http) => (lines_of(&http.json("/api/v1/mrc")?), None),
        None => {
            let client = arguments.one.client()?;
            match stats(&client, "mrc") {
                Err(Error::Refused { .. }) => {
                    return Err(Failure::of("the server estimates no other sizes: advise asks a Larder"));
                }
                lines => (lines?, Prefixes::ask(&client)?),
            }
        }
    };
    let sizes = sizes(&Lines(lines), arguments).map_err(Failure::of)?;
    let best = cheapest(&sizes);
    let prefixes = prefixes.unwrap_or_default();
    let costly = prefixes.costly().map(|prefix| Costly::of(&prefixes, prefix));
    match arguments.json {
        true => print_json(&Advice { sizes: &sizes, cheapest: best, costly_prefix: costly })?,
        false => print(&(page(&sizes, best) + &costly.map_or(String::new(), |costly| costly.said())))?,
    }
    Ok(Verdict::Fine)
}

#[derive(Serialize)]
struct Advice<'a> {
    sizes: &'a [Size],
    cheapest: Option<&'a Size>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costly_prefix: Option<Costly>,
}

/// A prefix that writes out of proportion to what it gives.
#[derive(Debug, Serialize)]
struct Costly {
    prefix: String,
    /// Of all bytes written to the SSD, of all hits, and of the bytes on the SSD, from 0 to 1.
    written_share: f64,
    hits_share: f64,
    ssd_share: f64,
    /// Sampled items that the shares rest on.
    items: u64,
}

impl Costly {
    fn of(prefixes: &Prefixes, prefix: &Prefix) -> Costly {
        Costly {
            prefix: prefix.shown(),
            written_share: prefixes.share(prefix, |row| row.ssd_bytes_written),
            hits_share: prefixes.share(prefix, |row| row.hits),
            ssd_share: prefixes.share(prefix, |row| row.ssd_bytes),
            items: prefix.items,
        }
    }

    fn said(&self) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        format!(
            "\nThe prefix {} causes {} of the bytes written to the SSD and {} of the hits (by {} \
             sampled items). A shorter time to live, or not to store these items, spares the SSD.\n",
            self.prefix,
            percent(self.written_share),
            percent(self.hits_share),
            show_whole(self.items),
        )
    }
}

/// Returns the lines of `stats mrc` that `/api/v1/mrc` shows as an object.
fn lines_of(shown: &Map<String, Value>) -> Vec<(String, String)> {
    let own = shown.iter().filter(|(_, value)| !value.is_array());
    let mut lines: Vec<_> = own.map(|(name, value)| (name.clone(), text_of(value))).collect();
    for point in shown.get("points").and_then(Value::as_array).into_iter().flatten() {
        let [axis, times] = ["axis", "times"].map(|name| point.get(name).map(text_of).unwrap_or_default());
        let members = point.as_object().into_iter().flatten();
        lines.extend(members.map(|(name, value)| (format!("{axis}:{times}:{name}"), text_of(value))));
    }
    lines
}

/// The lines of `stats mrc`.
struct Lines(Vec<(String, String)>);

impl Lines {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }

    /// Returns what the lines of each size begin with.
    fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(name, _)| name.strip_suffix(":miss_ratio"))
    }
}

/// Returns the sizes of which the misses are known, today's once, smallest first.
///
/// # Errors
/// None is known; the text says why.
fn sizes(lines: &Lines, prices: &AdviseArguments) -> Result<Vec<Size>, String> {
    let seconds = lines.number("window_seconds").unwrap_or(0.0).max(1.0);
    let gets = lines.number("window_gets").unwrap_or(0.0) / seconds;
    let of = |prefix: &str| {
        let number = |name: &str| lines.number(&format!("{prefix}:{name}"));
        let mut size = Size {
            memory_bytes: number("memory_bytes")? as u64,
            ssd_bytes: number("ssd_bytes")? as u64,
            is_today: prefix.ends_with(":1"),
            is_full: number("is_full")? > 0.0,
            miss_ratio: number("miss_ratio")?,
            miss_ratio_low: number("miss_ratio_low")?,
            miss_ratio_high: number("miss_ratio_high")?,
            ssd_bytes_written_a_day: (number("ssd_bytes_written")? / seconds * DAY_S) as u64,
            cost: Cost::default(),
        };
        size.cost = size.cost(prices, gets);
        Some(size)
    };
    let mut sizes: Vec<Size> = lines.prefixes().filter_map(of).collect();
    sizes.sort_by_key(|size| (size.memory_bytes, size.ssd_bytes));
    // Both axes have today's.
    sizes.dedup_by_key(|size| (size.memory_bytes, size.ssd_bytes));
    match sizes.is_empty() {
        false => Ok(sizes),
        true => Err(why_unknown(lines)),
    }
}

/// Returns why no size is known, and what to do.
fn why_unknown(lines: &Lines) -> String {
    let states = ["ram_state", "ssd_state"].map(|name| lines.text(name));
    let why = match lines.text("state") {
        Some("on") if states.contains(&Some("few")) => {
            "its sample is too small yet; wait for more traffic, or start it with a larger --shadow-memory"
        }
        Some("on") => "the cache has not filled yet; ask again when it has",
        _ => "it has no shadows; start it with --shadow-memory, without -M",
    };
    format!("the server estimates no other sizes: {why}")
}

impl Size {
    /// Returns what it costs in a month with so many gets a second.
    fn cost(&self, prices: &AdviseArguments, gets: f64) -> Cost {
        let ram = self.memory_bytes as f64 / GB * prices.price_ram;
        let ssd = self.ssd_bytes as f64 / GB * prices.price_ssd;
        let of = |ratio: f64| gets * ratio * MONTH_S / MILLION * prices.cost_of_miss;
        let misses = of(self.miss_ratio);
        Cost {
            ram,
            ssd,
            misses,
            all: ram + ssd + misses,
            low: ram + ssd + of(self.miss_ratio_low),
            high: ram + ssd + of(self.miss_ratio_high),
        }
    }

    fn shown(&self) -> String {
        match self.ssd_bytes {
            0 => format!("{} of RAM", show_bytes(self.memory_bytes)),
            ssd => format!("{} of RAM and {} of SSD", show_bytes(self.memory_bytes), show_bytes(ssd)),
        }
    }
}

fn cheapest(sizes: &[Size]) -> Option<&Size> {
    sizes.iter().min_by(|one, other| one.cost.all.total_cmp(&other.cost.all))
}

/// Returns the table and what follows from it.
fn page(sizes: &[Size], best: Option<&Size>) -> String {
    let mut page = format!(
        "{:>9} {:>9} {:>9} {:>15} {:>15} {:>12}\n",
        "RAM", "SSD", "misses", "between", "cost a month", "written/day"
    );
    for size in sizes {
        let between = format!("{:.2}-{:.2} %", size.miss_ratio_low * 100.0, size.miss_ratio_high * 100.0);
        let note = match (size.is_today, best == Some(size)) {
            (true, true) => "  today's, the cheapest",
            (true, false) => "  today's",
            (false, true) => "  the cheapest",
            (false, false) => "",
        };
        let _ = writeln!(
            page,
            "{:>9} {:>9} {:>7.2} % {between:>15} {:>15} {:>12}{note}",
            show_bytes(size.memory_bytes),
            show_bytes(size.ssd_bytes),
            size.miss_ratio * 100.0,
            money(size.cost.all),
            show_bytes(size.ssd_bytes_written_a_day),
        );
    }
    if let Some(best) = best {
        page.push_str(&conclusion(sizes, best));
    }
    page
}

/// Returns what the cheapest size would cost and write, and how sure that is.
fn conclusion(sizes: &[Size], best: &Size) -> String {
    let mut text = format!(
        "\nThe cheapest of these is {}: {} a month, between {} and {}.",
        best.shown(),
        money(best.cost.all),
        money(best.cost.low),
        money(best.cost.high)
    );
    if best.ssd_bytes > 0 {
        let _ = write!(text, " It would write {} a day.", show_bytes(best.ssd_bytes_written_a_day));
    }
    if let Some(today) = sizes.iter().find(|size| size.is_today && *size != best) {
        let saved = today.cost.all - best.cost.all;
        let _ = write!(text, " Today's size costs {} more", money(saved));
        text.push_str(if best.cost.high < today.cost.all {
            "."
        } else {
            ", which is less than the estimate is sure of."
        });
    }
    if !best.is_full {
        text.push_str(" Its shadow has not filled yet, so it may come to miss less.");
    }
    text + "\n"
}

/// Returns an amount of money: whole from a hundred on.
fn money(amount: f64) -> String {
    if amount >= 100.0 { show_whole(amount.round() as u64) } else { format!("{amount:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Verb {
        #[command(flatten)]
        arguments: AdviseArguments,
    }

    fn prices(ram: &str, ssd: &str, miss: &str) -> AdviseArguments {
        let words = ["advise", "--price-ram", ram, "--price-ssd", ssd, "--cost-of-miss", miss];
        Verb::parse_from(words).arguments
    }

    #[test]
    fn curves_over_http_are_the_lines_of_the_port() {
        let shown = r#"{"state":"on","window_gets":9,"points":[
            {"axis":"ram","times":0.25,"miss_ratio":0.5,"is_full":1},
            {"axis":"ram","times":1,"miss_ratio":"unknown"}]}"#;
        let lines = Lines(lines_of(&serde_json::from_str(shown).expect("an object")));
        assert_eq!((lines.text("state"), lines.number("window_gets")), (Some("on"), Some(9.0)));
        assert_eq!(lines.number("ram:0.25:miss_ratio"), Some(0.5));
        assert_eq!(lines.text("ram:1:miss_ratio"), Some("unknown"));
        assert_eq!(lines.prefixes().collect::<Vec<_>>(), ["ram:0.25", "ram:1"]);
    }

    fn lines(points: &[(&str, u64, u64, [&str; 3])]) -> Lines {
        let line = |name: &str, value: &str| (name.to_string(), value.to_string());
        let mut lines = vec![
            line("state", "on"),
            line("ram_state", "ready"),
            line("window_seconds", "1000"),
            line("window_gets", "1000000"),
        ];
        for (prefix, memory, ssd, [ratio, low, high]) in points {
            let own = [
                ("memory_bytes", memory.to_string()),
                ("ssd_bytes", ssd.to_string()),
                ("is_full", "1".to_string()),
                ("miss_ratio", ratio.to_string()),
                ("miss_ratio_low", low.to_string()),
                ("miss_ratio_high", high.to_string()),
                ("ssd_bytes_written", "5000".to_string()),
            ];
            lines.extend(own.map(|(name, value)| (format!("{prefix}:{name}"), value)));
        }
        Lines(lines)
    }

    fn example() -> Lines {
        let today = ["0.100000", "0.100000", "0.100000"];
        lines(&[
            ("ram:1", 10_000_000_000, 100_000_000_000, today),
            ("ram:2", 20_000_000_000, 100_000_000_000, ["0.090000", "0.080000", "0.110000"]),
            ("ram:4", 40_000_000_000, 100_000_000_000, ["unknown", "unknown", "unknown"]),
            ("ssd:1", 10_000_000_000, 100_000_000_000, today),
            ("ssd:2", 10_000_000_000, 200_000_000_000, ["0.040000", "0.030000", "0.050000"]),
        ])
    }

    #[test]
    fn a_size_costs_its_memory_and_its_misses() {
        // 1,000 gets a second are 2,592 million a month.
        let sizes = sizes(&example(), &prices("3", "0.1", "2")).expect("known");
        let costs: Vec<_> = sizes.iter().map(|size| (size.is_today, size.cost.all.round())).collect();
        assert_eq!(costs, [(true, 558.0), (false, 257.0), (false, 537.0)]);
        assert_eq!((sizes[1].cost.low.round(), sizes[1].cost.high.round()), (206.0, 309.0));
        assert_eq!(sizes[1].ssd_bytes_written_a_day, 432_000);
        let page = page(&sizes, cheapest(&sizes));
        assert!(
            page.contains("The cheapest of these is 10.0 GB of RAM and 200 GB of SSD: 257 a month"),
            "{page}"
        );
        assert!(page.contains("Today's size costs 301 more.\n"), "{page}");
    }

    #[test]
    fn a_prefix_that_wears_the_ssd_and_gives_little_is_named() {
        let prefixes = Prefixes::of(&crate::prefixes::tests::lines("ready")).expect("there are rows");
        let costly = Costly::of(&prefixes, prefixes.costly().expect("it is scan"));
        let said = costly.said();
        assert!(
            said.contains("scan causes 40 % of the bytes written to the SSD and 2 % of the hits"),
            "{said}"
        );
        assert!(said.contains("(by 2,000 sampled items)"), "{said}");
    }

    #[test]
    fn what_costs_more_than_it_saves_is_not_advised() {
        let sizes = sizes(&example(), &prices("3", "0.1", "0.01")).expect("known");
        assert!(cheapest(&sizes).expect("there are some").is_today);
    }

    #[test]
    fn an_unsure_saving_is_called_one() {
        let sizes = sizes(&example(), &prices("0.1", "9", "2")).expect("known");
        let page = page(&sizes, cheapest(&sizes));
        assert!(page.contains("less than the estimate is sure of"), "{page}");
    }

    #[test]
    fn a_server_that_knows_nothing_yet_is_told_apart() {
        let with = |lines: &[(&str, &str)]| {
            let lines = lines.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            sizes(&Lines(lines), &prices("1", "1", "1")).expect_err("nothing is known")
        };
        assert!(with(&[("state", "off")]).contains("--shadow-memory"));
        assert!(with(&[("state", "on"), ("ram_state", "filling")]).contains("has not filled"));
        assert!(with(&[("state", "on"), ("ram_state", "few")]).contains("too small"));
    }

    #[test]
    fn prices_are_numbers_from_zero_on() {
        assert_eq!(price("2.5"), Ok(2.5));
        for wrong in ["", "-1", "nan", "inf", "3$"] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }
}
