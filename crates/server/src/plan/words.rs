//! The words of `--plan`: which items there will be, read from a sentence such as `500GB of 2KB sessions, ttl=24h`.
//!
//! Commas, semicolons and `and` part the sentence into clauses. A clause with a size or a number of items is a kind of
//! item; any other clause is about all kinds. A word that is not understood is refused by name, never guessed.

/// What a clause may say, for messages.
const FORMS: &str = "write one clause for each kind of item, such as \"500GB sessions 2KB ttl=24h\" or \
                     \"5m items 300B\", with ttl=, sets= and key= where they are known, and hot= for all";
/// Words without a meaning of their own.
const FILLERS: [&str; 8] = ["of", "with", "each", "a", "at", "in", "all", "items"];
/// Words that take a value.
const SETTINGS: [&str; 6] = ["ttl", "sets", "key", "keys", "hot", "items"];
/// The mean length of a key, in bytes, unless given.
pub(super) const KEY_BYTES: u64 = 30;
const KEY_BYTES_MAX: u64 = 250;
/// The largest value, in bytes, with room for its key below the largest `-I`.
const VALUE_BYTES_MAX: u64 = (1 << 30) - (1 << 20);
const ITEMS_MAX: f64 = 1e15;
const BYTES_MAX: f64 = 1e18;
const SETS_MAX: f64 = 1e12;
const KINDS_MAX: usize = 32;
const NAME_BYTES_MAX: usize = 40;
/// A century: more is no expiry.
const TTL_S_MAX: f64 = 100.0 * 366.0 * 86_400.0;
/// Sets may be so much fewer than a TTL asks for, as a part, before the two contradict each other.
const SETS_MIN: f64 = 0.95;

const _: () = assert!(TTL_S_MAX < u32::MAX as f64, "the store counts seconds in so many bits");

/// What there will be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    /// The kinds of items, one at least.
    pub kinds: Vec<Kind>,
    /// The part of the items that RAM is to hold, in percent, if that was said.
    pub hot_percent: Option<f64>,
    /// Whether kinds without a total of their own have a part of that before them.
    pub has_shared_total: bool,
}

/// A kind of item.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    pub name: String,
    /// Live ones at a time.
    pub items: u64,
    pub key_bytes: u64,
    pub value_bytes: u64,
    /// Seconds to live; `None` for no expiry.
    pub ttl_s: Option<f64>,
    /// Sets a second; `None` if that is not known.
    pub sets_per_s: Option<f64>,
}

/// How much there is of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Total {
    Bytes(f64),
    Items(f64),
}

/// A clause, as it was written.
#[derive(Clone, Debug, Default)]
struct Clause {
    name: Option<String>,
    sizes: Vec<f64>,
    items: Option<f64>,
    settings: Settings,
}

/// What may be said of one kind, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    /// `Some(None)`: said to be without.
    ttl_s: Option<Option<f64>>,
    sets_per_s: Option<f64>,
    key_bytes: Option<u64>,
    hot_percent: Option<f64>,
}

impl Clause {
    fn is_kind(&self) -> bool {
        !self.sizes.is_empty() || self.items.is_some()
    }
}

/// Reads the sentence.
///
/// # Errors
/// A sentence that names what is not understood, and what to write.
pub(super) fn read(text: &str) -> Result<Wanted, String> {
    let clauses = parts(text).iter().map(|words| clause(words)).collect::<Result<Vec<_>, _>>()?;
    let (kinds, others): (Vec<Clause>, Vec<Clause>) = clauses.into_iter().partition(Clause::is_kind);
    if kinds.is_empty() {
        return Err(format!("\"{}\" names no items: {FORMS}", shown(text)));
    }
    if kinds.len() > KINDS_MAX {
        return Err(format!(
            "{} kinds of items are too many; put alike ones together, {KINDS_MAX} at most",
            kinds.len()
        ));
    }
    let mut of_all = Settings::default();
    for Clause { name, settings, .. } in others {
        if let Some(name) = name {
            return Err(format!("\"{name}\" has no size: {FORMS}"));
        }
        of_all = Settings {
            ttl_s: settings.ttl_s.or(of_all.ttl_s),
            sets_per_s: settings.sets_per_s.or(of_all.sets_per_s),
            key_bytes: settings.key_bytes.or(of_all.key_bytes),
            hot_percent: settings.hot_percent.or(of_all.hot_percent),
        };
    }
    let hot_percent = kinds.iter().find_map(|kind| kind.settings.hot_percent).or(of_all.hot_percent);
    let (totals, has_shared_total) = totals(&kinds)?;
    let numbered = kinds.iter().enumerate().zip(totals);
    let mut kinds = numbered
        .map(|((at, clause), total)| kind(at, clause, total, &of_all))
        .collect::<Result<Vec<_>, _>>()?;
    share_sets(&mut kinds, of_all.sets_per_s);
    kinds.iter().try_for_each(check_sets)?;
    Ok(Wanted { kinds, hot_percent, has_shared_total })
}

/// Returns the words of each clause. Only a `=` keeps its place in a word.
fn parts(text: &str) -> Vec<Vec<String>> {
    let text = text.to_lowercase().replace([',', ';'], " , ");
    let text = text.split('=').map(str::trim).collect::<Vec<_>>().join("= ");
    let mut clauses = vec![Vec::new()];
    for word in text.split_whitespace() {
        match (word, clauses.last_mut()) {
            ("," | "and", _) | (_, None) => clauses.push(Vec::new()),
            (word, Some(clause)) => clause.push(word.trim_end_matches('.').to_string()),
        }
    }
    clauses.retain(|clause| !clause.is_empty());
    clauses
}

fn clause(words: &[String]) -> Result<Clause, String> {
    let mut clause = Clause::default();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let (bare, is_assigned) = word.strip_suffix('=').map_or((word, false), |bare| (bare, true));
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-') {
            let quantity = with_unit(word, &mut words);
            let is_count = words.next_if(|next| matches!(*next, "item" | "items")).is_some();
            match size(&quantity) {
                // "1m items" are a million; "1MiB items" are of that size.
                _ if is_count && count(&quantity).is_ok() => {
                    put(&mut clause.items, count(&quantity)?, "numbers of items")?;
                }
                size => clause.sizes.push(size?),
            }
        } else if FILLERS.contains(&bare) && !is_assigned {
            // It says nothing by itself.
        } else if SETTINGS.contains(&bare) {
            let value =
                words.next().ok_or_else(|| format!("\"{bare}\" has no value; write {}", form_of(bare)))?;
            let value = with_unit(value, &mut words);
            set(&mut clause, bare, &value)?;
        } else if is_assigned {
            return Err(format!("\"{bare}=\" is not understood; ttl=, sets=, key=, items= and hot= are"));
        } else {
            let is_name = bare.len() <= NAME_BYTES_MAX
                && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_:.".contains(&byte));
            if !is_name {
                return Err(format!("\"{}\" is not understood: {FORMS}", shown(bare)));
            }
            if let Some(name) = &clause.name {
                return Err(format!("\"{bare}\" is not understood behind \"{name}\": {FORMS}"));
            }
            clause.name = Some(bare.to_string());
        }
    }
    if clause.sizes.len() > 2 {
        return Err(format!("a clause with three sizes is not understood: {FORMS}"));
    }
    Ok(clause)
}

fn form_of(setting: &str) -> &'static str {
    match setting {
        "ttl" => "ttl=24h, or ttl=none",
        "sets" => "sets=2000/s",
        "items" => "items=5m",
        "hot" => "hot=5%",
        _ => "key=30B",
    }
}

fn put<T>(place: &mut Option<T>, value: T, what: &str) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("two {what} in one clause are not understood; part the clauses by commas")),
    }
}

fn set(clause: &mut Clause, setting: &str, value: &str) -> Result<(), String> {
    let settings = &mut clause.settings;
    match setting {
        "ttl" => put(&mut settings.ttl_s, ttl(value)?, "ttl="),
        "sets" => put(&mut settings.sets_per_s, rate(value)?, "sets="),
        "items" => put(&mut clause.items, count(value)?, "numbers of items"),
        "hot" => put(&mut settings.hot_percent, percent(value)?, "hot="),
        _ => {
            let bytes = size(value)?;
            if bytes > KEY_BYTES_MAX as f64 {
                return Err(format!("keys of {value} are too long; a key has {KEY_BYTES_MAX} bytes at most"));
            }
            put(&mut settings.key_bytes, bytes as u64, "key=")
        }
    }
}

/// Returns a number with the unit that follows it, if that is a word of its own.
fn with_unit<'a>(word: &str, words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> String {
    let is_bare = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let unit =
        words.next_if(|next| is_bare && (size_unit(next).or(time_unit(next)).is_some() || is_count(next)));
    format!("{word}{}", unit.unwrap_or_default())
}

/// Returns the parts of a quantity: its number and the unit behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

/// Returns the bytes of a unit: KB is 1000 bytes, KiB and the daemon's k are 1024.
fn size_unit(unit: &str) -> Option<f64> {
    if matches!(unit, "b" | "byte" | "bytes") {
        return Some(1.0);
    }
    let (letter, rest) = unit.split_at_checked(1)?;
    let power = "kmgtp".find(letter)? as i32 + 1;
    match rest {
        "b" => Some(1000_f64.powi(power)),
        "" | "ib" => Some(1024_f64.powi(power)),
        _ => None,
    }
}

fn size(text: &str) -> Result<f64, String> {
    let wrong =
        || format!("\"{}\" is not a size; write a number with its unit, such as 2KB or 500GB", shown(text));
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let bytes = number * size_unit(unit).ok_or_else(wrong)?;
    match bytes {
        1.0..=BYTES_MAX => Ok(bytes),
        _ => Err(format!(
            "\"{}\" is out of bounds; sizes are from 1 byte to {} TB",
            shown(text),
            BYTES_MAX / 1e12
        )),
    }
}

fn is_count(unit: &str) -> bool {
    count_unit(unit).is_some()
}

fn count_unit(unit: &str) -> Option<f64> {
    match unit {
        "" => Some(1.0),
        "k" | "thousand" => Some(1e3),
        "m" | "million" => Some(1e6),
        "g" | "billion" => Some(1e9),
        "t" | "trillion" => Some(1e12),
        _ => None,
    }
}

fn count(text: &str) -> Result<f64, String> {
    let number = split(text).and_then(|(number, unit)| Some(number * count_unit(unit)?));
    match number {
        Some(number @ 1.0..=ITEMS_MAX) => Ok(number.round()),
        Some(_) => Err(format!("\"{}\" items are out of bounds; give from 1 to {ITEMS_MAX:e}", shown(text))),
        None => Err(format!("\"{}\" is not a number of items; write one such as 5000000 or 5m", shown(text))),
    }
}

fn time_unit(unit: &str) -> Option<f64> {
    match unit {
        "s" | "sec" | "second" | "seconds" => Some(1.0),
        "m" | "min" | "minute" | "minutes" => Some(60.0),
        "h" | "hour" | "hours" => Some(3_600.0),
        "d" | "day" | "days" => Some(86_400.0),
        "w" | "week" | "weeks" => Some(7.0 * 86_400.0),
        "y" | "year" | "years" => Some(365.0 * 86_400.0),
        _ => None,
    }
}

/// Reads a time to live; `None` for none.
fn ttl(text: &str) -> Result<Option<f64>, String> {
    if matches!(text, "none" | "never" | "0") {
        return Ok(None);
    }
    let seconds = split(text).and_then(|(number, unit)| Some(number * time_unit(unit)?));
    match seconds {
        Some(seconds @ 1.0..=TTL_S_MAX) => Ok(Some(seconds)),
        Some(_) => Err(format!("ttl {} is out of bounds; give from 1s to 100y, or none", shown(text))),
        None => Err(format!(
            "\"{}\" is not a time to live; write one such as 30s, 24h or 7d, or none",
            shown(text)
        )),
    }
}

/// Reads a number of sets, by the second if nothing else follows.
fn rate(text: &str) -> Result<f64, String> {
    let (number, every) = text.split_once('/').unwrap_or((text, "s"));
    let rate = split(number).and_then(|(number, unit)| Some(number * count_unit(unit)? / time_unit(every)?));
    match rate {
        Some(rate) if rate > 0.0 && rate <= SETS_MAX => Ok(rate),
        _ => Err(format!("\"{}\" is not a rate; write one such as sets=2000/s or sets=5m/day", shown(text))),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
    number
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("\"{}\" is not a part; write hot=5% for what RAM is to hold", shown(text)))
}

/// Returns how much there is of each kind, and whether some share a total: those without one have equal parts of that
/// before them.
fn totals(kinds: &[Clause]) -> Result<(Vec<Total>, bool), String> {
    let own = |clause: &Clause| match (clause.items, clause.sizes.as_slice()) {
        (Some(items), _) => Some(Total::Items(items)),
        (None, [one, other]) => Some(Total::Bytes(one.max(*other))),
        (None, _) => None,
    };
    let mut totals = Vec::new();
    let mut is_shared = false;
    let mut rest = kinds;
    while let Some((first, others)) = rest.split_first() {
        let Some(total) = own(first) else {
            let name = first.name.as_deref().unwrap_or("the first kind of item");
            return Err(format!("{name} has no total: write how much there is, as in \"500GB {name} 2KB\""));
        };
        let without = others.iter().take_while(|clause| own(clause).is_none()).count();
        let part = match total {
            Total::Bytes(bytes) => Total::Bytes(bytes / (without + 1) as f64),
            Total::Items(_) if without > 0 => {
                return Err(format!(
                    "a kind of item has no total behind one that is counted in items: {FORMS}"
                ));
            }
            items => items,
        };
        is_shared |= without > 0;
        totals.extend(std::iter::repeat_n(part, without + 1));
        rest = others.get(without..).unwrap_or_default();
    }
    Ok((totals, is_shared))
}

fn kind(at: usize, clause: &Clause, total: Total, of_all: &Settings) -> Result<Kind, String> {
    let name = clause
        .name
        .clone()
        .unwrap_or_else(|| if at == 0 { "items".into() } else { format!("items-{}", at + 1) });
    let value_bytes = match (clause.items, clause.sizes.as_slice()) {
        (_, [one]) => *one,
        (None, [one, other]) => one.min(*other),
        _ => return Err(format!("{name} need one size, that of a value: {FORMS}")),
    };
    if value_bytes > VALUE_BYTES_MAX as f64 {
        return Err(format!(
            "{name} are too large: a value has 1023 MiB at most, so store larger ones in parts"
        ));
    }
    let items = match total {
        Total::Items(items) => items,
        Total::Bytes(bytes) => bytes / value_bytes,
    };
    if items < 1.0 {
        return Err(format!(
            "{name} are less in all than one of them: write the total, then the size of one"
        ));
    }
    Ok(Kind {
        name,
        items: items.min(BYTES_MAX).round() as u64,
        key_bytes: clause.settings.key_bytes.or(of_all.key_bytes).unwrap_or(KEY_BYTES),
        value_bytes: value_bytes.round() as u64,
        ttl_s: clause.settings.ttl_s.or(of_all.ttl_s).flatten(),
        sets_per_s: clause.settings.sets_per_s,
    })
}

/// Gives the kinds without sets of their own a part of those of all, by their items, or as many as their TTL asks for.
fn share_sets(kinds: &mut [Kind], of_all: Option<f64>) {
    let items: f64 =
        kinds.iter().filter(|kind| kind.sets_per_s.is_none()).map(|kind| kind.items as f64).sum();
    for kind in kinds.iter_mut().filter(|kind| kind.sets_per_s.is_none()) {
        let shared = of_all.map(|sets| sets * kind.items as f64 / items);
        kind.sets_per_s = shared.or(kind.ttl_s.map(|ttl_s| kind.items as f64 / ttl_s));
    }
}

/// Refuses fewer sets than keep the items there.
fn check_sets(kind: &Kind) -> Result<(), String> {
    let (Some(sets), Some(ttl_s)) = (kind.sets_per_s, kind.ttl_s) else { return Ok(()) };
    let wanted = kind.items as f64 / ttl_s;
    if sets >= wanted * SETS_MIN {
        return Ok(());
    }
    Err(format!(
        "{sets:.3} sets a second with their TTL keep {:.0} {} at most, not {}: give sets={:.0}/s or more, a \
         longer ttl, or fewer of them",
        sets * ttl_s,
        kind.name,
        kind.items,
        wanted.ceil()
    ))
}

/// Returns as much of a text as a message shows.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}
