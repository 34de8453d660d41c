//! `stats what_if`: what the cache would miss with other options, tried on its traffic by shadows.

use larder_store::Admission;
use larder_store::shadow::{Changes, Tried};

use super::Lines;
use crate::curves::{Order, Trial};
use crate::shared::Shared;

/// Executes the command: begins a trial of `NAME=VALUE ...`, ends it with `end`, and returns the lines of the present
/// one.
pub(super) fn lines<'a>(shared: &Shared, words: impl Iterator<Item = &'a [u8]>) -> Lines {
    if shared.curves.latest().is_none() {
        return vec![("state".into(), "off".into())];
    }
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    let order = match &words[..] {
        [] => None,
        [word] if word == "end" => Some(Order::End),
        words => match changes(words.iter().map(|word| &**word), shared.config.ssd.is_empty()) {
            Ok(changes) => Some(Order::Begin(changes)),
            Err(error) => return refused(&error),
        },
    };
    match order {
        Some(order) => {
            let number = shared.curves.give_order(order);
            vec![("state".into(), "ordered".into()), ("trial".into(), number.to_string())]
        }
        None => shared.curves.latest().map_or_else(Lines::new, |curve| shown(&curve.trial)),
    }
}

fn refused(error: &str) -> Lines {
    vec![("state".into(), "refused".into()), ("error".into(), error.to_string())]
}

/// Returns the options of `NAME=VALUE` words; sizes are in bytes, times in seconds.
fn changes<'a>(words: impl Iterator<Item = &'a str>, has_no_ssd: bool) -> Result<Changes, String> {
    let mut changes = Changes::default();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("{word} is not NAME=VALUE"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{name} takes a whole number, not {value}"));
        let seconds = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        if has_no_ssd && name.starts_with("ssd") {
            return Err(format!("{name} needs an SSD, and there is none"));
        }
        match name {
            "memory_bytes" => changes.memory_bytes = Some(number()?),
            "ssd_bytes" => changes.ssd_bytes = Some(number()?),
            "ssd_write_limit" => changes.ssd_write_limit = Some(number()?),
            "item_size" => changes.item_bytes = Some(seconds(number()?).max(1)),
            "ttl_max" => changes.ttl_max = Some(seconds(number()?).max(1)),
            "ssd_admission" => {
                changes.admission = Some(match value {
                    "all" => Admission::All,
                    "returning" => Admission::Returning,
                    _ => return Err(format!("ssd_admission is all or returning, not {value}")),
                });
            }
            _ => {
                return Err(format!(
                    "{name} cannot be tried; give memory_bytes, ssd_bytes, ssd_admission, ssd_write_limit, \
                     item_size or ttl_max"
                ));
            }
        }
    }
    Ok(changes)
}

fn shown(trial: &Trial) -> Lines {
    let number = ("trial".into(), trial.number.to_string());
    if let Some(error) = &trial.refused {
        let mut lines = refused(error);
        lines.push(number);
        return lines;
    }
    let Some(tried) = &trial.tried else {
        return vec![("state".into(), "none".into()), number];
    };
    let mut lines: Lines = vec![("state".into(), tried.state.name().into()), number];
    let mut add = |name: &'static str, value: String| lines.push((name.into(), value));
    named(&tried.changes).into_iter().for_each(|(name, value)| add(name, value));
    let Tried { window, estimate, ssd_bytes_written: [now, then], .. } = tried;
    add("sample_rate", tried.scale.to_string());
    add("window_seconds", window.at.0.to_string());
    add("window_gets", window.gets.to_string());
    add("window_misses", window.misses.to_string());
    let ratio = |of: fn(&larder_store::shadow::Estimate) -> f64| {
        estimate.as_ref().map_or("unknown".to_string(), |estimate| format!("{:.6}", of(estimate)))
    };
    add("miss_ratio", ratio(|estimate| estimate.miss_ratio));
    add("miss_ratio_low", ratio(|estimate| estimate.low));
    add("miss_ratio_high", ratio(|estimate| estimate.high));
    add("ssd_bytes_written_as_it_is", now.to_string());
    add("ssd_bytes_written", then.to_string());
    lines
}

/// Returns the options that are tried, as they were given.
fn named(changes: &Changes) -> Vec<(&'static str, String)> {
    let Changes { memory_bytes, ssd_bytes, admission, item_bytes, ssd_write_limit, ttl_max } = *changes;
    let numbers = [
        ("tried_memory_bytes", memory_bytes),
        ("tried_ssd_bytes", ssd_bytes),
        ("tried_ssd_write_limit", ssd_write_limit),
        ("tried_item_size", item_bytes.map(u64::from)),
        ("tried_ttl_max", ttl_max.map(u64::from)),
    ];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?.to_string())));
    let admission = admission.map(|admission| ("tried_ssd_admission", admission.name().to_string()));
    numbers.chain(admission).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Changes, String> {
        changes(text.split(' '), false)
    }

    #[test]
    fn options_are_names_and_values() {
        let wanted = Changes {
            admission: Some(Admission::Returning),
            ttl_max: Some(60),
            ssd_write_limit: Some(0),
            ..Changes::default()
        };
        assert_eq!(parsed("ssd_admission=returning ttl_max=60 ssd_write_limit=0"), Ok(wanted));
        assert_eq!(named(&wanted).len(), 3);
    }

    #[test]
    fn a_wrong_option_is_told_what_would_be_right() {
        for (text, part) in [
            ("ttl_max", "NAME=VALUE"),
            ("ttl_max=soon", "whole number"),
            ("ssd_admission=auto", "all or returning"),
            ("threads=4", "give memory_bytes"),
        ] {
            let error = parsed(text).expect_err("it is wrong");
            assert!(error.contains(part), "{error}");
        }
        assert!(changes(["ssd_bytes=5"].into_iter(), true).expect_err("no SSD").contains("there is none"));
    }
}
