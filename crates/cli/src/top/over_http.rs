//! The prefixes that a daemon counts itself, over HTTP.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Name, Of, TopArguments, View, show};
use crate::exit::{Failure, Outcome};
use crate::http::HttpSource;
use crate::screen::sleep_until;

/// What `/api/v1/top` shows.
#[derive(Clone, Debug, Default, Deserialize)]
struct Counted {
    is_counting: bool,
    prefixes: Vec<Prefix>,
}

/// The commands on keys with a prefix, since the daemon began to count.
#[derive(Clone, Debug, Default, Deserialize)]
struct Prefix {
    prefix: String,
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

impl Prefix {
    /// Returns what came since `before`. After a reset of the daemon's counters all is new.
    fn since(&self, before: Option<&Prefix>) -> Prefix {
        let is_reset =
            |before: &&Prefix| self.gets < before.gets || self.sets < before.sets || self.hits < before.hits;
        let Some(before) = before.filter(|before| !is_reset(before)) else { return self.clone() };
        Prefix {
            prefix: self.prefix.clone(),
            gets: self.gets - before.gets,
            hits: self.hits - before.hits,
            sets: self.sets - before.sets,
            deletes: self.deletes.saturating_sub(before.deletes),
        }
    }

    fn commands(&self) -> u64 {
        self.gets + self.sets + self.deletes
    }
}

/// Shows so many views.
///
/// # Errors
/// Others than prefixes are to be shown, the daemon cannot be asked, or counts none.
pub(super) fn run(arguments: &TopArguments, http: &HttpSource, views: u64, stop: &AtomicBool) -> Outcome<()> {
    if arguments.of != Of::Prefixes {
        let advice =
            "the daemon counts prefixes only; leave out --http to watch keys or clients over its port";
        return Err(Failure::Usage(advice.to_string()));
    }
    let mut before = ask(http)?;
    for _ in 0..views {
        let began = Instant::now();
        sleep_until(began + arguments.interval, stop);
        if stop.load(Relaxed) {
            break;
        }
        let now = ask(http)?;
        show(arguments, &view(&before, &now, arguments.names, began.elapsed()))?;
        before = now;
    }
    Ok(())
}

fn ask(http: &HttpSource) -> Outcome<Counted> {
    let counted: Counted = http.json("/api/v1/top")?;
    if !counted.is_counting {
        let advice =
            "the daemon counts no prefixes; start it with -D :, or send `stats detail on` to its port";
        return Err(Failure::of(advice));
    }
    Ok(counted)
}

fn view(before: &Counted, now: &Counted, names: usize, passed: Duration) -> View {
    let before: HashMap<&str, &Prefix> =
        before.prefixes.iter().map(|prefix| (prefix.prefix.as_str(), prefix)).collect();
    let since = |prefix: &Prefix| prefix.since(before.get(prefix.prefix.as_str()).copied());
    let mut new: Vec<Prefix> =
        now.prefixes.iter().map(since).filter(|prefix| prefix.commands() > 0).collect();
    new.sort_by_key(|prefix| std::cmp::Reverse(prefix.commands()));
    let counted = new.iter().map(Prefix::commands).sum();
    let name = |prefix: Prefix| Name {
        count: prefix.commands(),
        name: prefix.prefix,
        error: 0,
        gets: Some(prefix.gets),
        hits: Some(prefix.hits),
        bytes: None,
        cost: None,
    };
    View {
        seconds: passed.as_secs_f64(),
        counted,
        skipped: 0,
        names: new.into_iter().take(names).map(name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(prefixes: &[(&str, u64)]) -> Counted {
        let prefix = |(prefix, gets): &(&str, u64)| {
            let (prefix, gets) = (prefix.to_string(), *gets);
            Prefix { prefix, gets, hits: gets / 2, ..Prefix::default() }
        };
        Counted { is_counting: true, prefixes: prefixes.iter().map(prefix).collect() }
    }

    #[test]
    fn a_view_is_of_the_interval() {
        let (before, now) = (
            counted(&[("a", 100), ("b", 10), ("c", 5)]),
            counted(&[("a", 104), ("b", 20), ("c", 5), ("d", 1)]),
        );
        let view = view(&before, &now, 2, Duration::from_secs(2));
        let names: Vec<_> =
            view.names.iter().map(|name| (name.name.as_str(), name.count, name.hits)).collect();
        assert_eq!(names, [("b", 10, Some(5)), ("a", 4, Some(2))]);
        assert_eq!((view.counted, view.seconds), (15, 2.0));
    }

    #[test]
    fn counters_that_were_reset_are_all_new() {
        let view = view(&counted(&[("a", 100)]), &counted(&[("a", 7)]), 20, Duration::from_secs(1));
        assert_eq!(view.counted, 7);
    }
}
