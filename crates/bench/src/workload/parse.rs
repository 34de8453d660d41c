//! The words of the command line that describe a workload.

use super::mix::VERBS;
use super::pattern::Pattern;
use super::sizes::{SIZE_MAX, Sizes, Table};
use super::verb::Verb;
use super::{Mix, Workload};
use std::fs;
use std::str::FromStr;

/// A count with an optional `k`, `m` or `g` (thousands, millions, billions), such as `50k` or `1.5m`.
///
/// # Errors
/// It is none.
pub fn count(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text[..at], 1e6),
        Some((at, 'g' | 'G' | 'b' | 'B')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    if factor == 1.0
        && let Ok(whole) = number.parse()
    {
        return Ok(whole);
    }
    let value = number.parse::<f64>().map_err(|_| "a number such as 5000, 50k or 1m".to_string())? * factor;
    if !(0.0..=1e18).contains(&value) {
        return Err("a number such as 5000, 50k or 1m".to_string());
    }
    Ok(value.round() as u64)
}

/// A number of bytes with an optional `k`, `m` or `g`, by 1024.
///
/// # Errors
/// It is none, or too many.
pub fn bytes(text: &str) -> Result<u32, String> {
    match capacity(text) {
        Ok(value) if value <= u64::from(SIZE_MAX) => Ok(value as u32),
        _ => Err(format!("`{text}`: a number of bytes such as 100 or 4k, at most {SIZE_MAX}")),
    }
}

/// The bytes that a cache holds, with an optional `k`, `m` or `g`, by 1024.
///
/// # Errors
/// It is no number of bytes.
pub fn capacity(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let value = number.parse::<u64>().ok().and_then(|value| value.checked_mul(1 << shift));
    value.ok_or_else(|| format!("`{text}`: a number of bytes such as 512m or 4g"))
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let number = |text: &str| text.parse::<f64>().map_err(|_| format!("`{text}` is no number"));
        let pattern = match (name, rest) {
            ("uniform" | "R", None) => Self::Uniform,
            ("gauss" | "G", None) => Self::Gauss,
            ("seq" | "sequential" | "S", None) => Self::Sequential,
            ("latest", None) => Self::Latest,
            ("zipf" | "Z", None) => Self::Zipf(0.99),
            ("zipf" | "Z", Some(exponent)) => Self::Zipf(number(exponent)?),
            ("hot", Some(rest)) => {
                let (share, weight) = rest.split_once('/').ok_or("hot:SHARE/WEIGHT, such as hot:20/80")?;
                Self::Hot { share: number(share)?, weight: number(weight)? }
            }
            _ => return Err("is one of uniform, zipf:EXP, gauss, seq, latest, hot:SHARE/WEIGHT".to_string()),
        };
        pattern.check().map(|()| pattern)
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(range) = text.strip_prefix('u') {
            let (from, to) = range.split_once(',').ok_or("a range is uFROM,TO, such as u100,200")?;
            let (from, to) = (bytes(from)?, bytes(to)?);
            if from > to {
                return Err("a range is uFROM,TO with the smaller size first".to_string());
            }
            return Ok(Self::Range(from, to));
        }
        if let Some(list) = text.strip_prefix("list:") {
            let rows: Result<Vec<_>, String> = list.split(',').map(|row| weighted(row, ':')).collect();
            return Ok(Self::Weighted(Table::new(text, &rows?)?));
        }
        if let Some(path) = text.strip_prefix("file:") {
            let table = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
            let lines = table.lines().map(str::trim).enumerate();
            let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
            // A first line that is no numbers names the columns.
            let lines = lines.filter(|(at, line)| *at > 0 || line.starts_with(|c: char| c.is_ascii_digit()));
            let rows = lines
                .map(|(at, line)| weighted(line, ',').map_err(|e| format!("{path}, line {}: {e}", at + 1)));
            let rows = rows.collect::<Result<Vec<_>, String>>()?;
            return Ok(Self::Weighted(Table::new(text, &rows).map_err(|e| format!("{path}: {e}"))?));
        }
        bytes(text).map(Self::Fixed)
    }
}

fn weighted(row: &str, separator: char) -> Result<(u32, f64), String> {
    let (size, weight) = row.split_once(separator).unwrap_or((row, "1"));
    let weight = weight.trim().parse().map_err(|_| format!("the weight `{weight}` is no number"))?;
    Ok((bytes(size.trim())?, weight))
}

impl FromStr for Mix {
    type Err = String;

    /// `get=90,set=10`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut weights = [0; VERBS];
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').ok_or("VERB=WEIGHT,..., such as get=90,set=10")?;
            let mut drawn = Verb::ALL.into_iter().filter(|verb| verb.is_drawn());
            let verb = drawn.clone().find(|verb| verb.name() == name).ok_or_else(|| {
                let names: Vec<_> = drawn.by_ref().map(Verb::name).collect();
                format!("`{name}` is none of {}", names.join(", "))
            })?;
            weights[verb as usize] = weight.parse().map_err(|_| format!("`{weight}` is no weight"))?;
        }
        Self::new(weights)
    }
}

/// memtier's `SETS:GETS`.
///
/// # Errors
/// It is none.
pub fn ratio(text: &str) -> Result<Mix, String> {
    let (sets, gets) = text.split_once(':').ok_or("SETS:GETS, such as 1:10")?;
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
    let mut weights = [0; VERBS];
    (weights[Verb::Get as usize], weights[Verb::Set as usize]) = (number(gets)?, number(sets)?);
    Mix::new(weights)
}

/// `60-600` or `60`, in seconds.
///
/// # Errors
/// It is none.
pub fn expiry(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number of seconds"));
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let range = (number(from)?, number(to)?);
    Workload { expiry_s: range, ..Workload::default() }.check().map(|()| range)
}

/// A time such as `500ms`, `2s`, `1m`, `1h`; a bare number is seconds.
///
/// # Errors
/// It is none.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time such as 500ms, 10s or 2m".to_string()),
    };
    match number.parse::<f64>() {
        Ok(number) if (0.0..=1e7).contains(&(number * factor)) => {
            Ok(std::time::Duration::from_secs_f64(number * factor))
        }
        _ => Err("a time such as 500ms, 10s or 2m".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood() {
        assert_eq!(count("50k"), Ok(50_000));
        assert_eq!(count("1.5m"), Ok(1_500_000));
        assert!(count("x").is_err() && count("").is_err() && count("-1").is_err());
        assert_eq!(bytes("4k"), Ok(4096));
        assert_eq!("zipf:1.2".parse(), Ok(Pattern::Zipf(1.2)));
        assert_eq!("hot:20/80".parse(), Ok(Pattern::Hot { share: 20.0, weight: 80.0 }));
        assert!("zipf:x".parse::<Pattern>().is_err() && "zipf:-1".parse::<Pattern>().is_err());
        assert_eq!("u10,20".parse(), Ok(Sizes::Range(10, 20)));
        assert!("u20,10".parse::<Sizes>().is_err());
        assert!("list:64:9,1024:1".parse::<Sizes>().is_ok());
        assert_eq!("get=9,set=1".parse::<Mix>(), ratio("1:9"));
        assert_eq!(
            "get=9,set=1".parse::<Mix>().map(|mix| mix.to_string()),
            Ok("get 90 %, set 10 %".to_string())
        );
        assert!("get=0".parse::<Mix>().is_err() && "gets=1".parse::<Mix>().is_err());
        assert!("push=1".parse::<Mix>().is_err_and(|why| why.contains("append, prepend")));
        assert_eq!(expiry("60-600"), Ok((60, 600)));
        assert!(expiry("9-1").is_err() && expiry("1-99999999").is_err());
        assert_eq!(duration("500ms"), Ok(std::time::Duration::from_millis(500)));
        assert!(duration("5x").is_err() && duration("").is_err());
    }
}
