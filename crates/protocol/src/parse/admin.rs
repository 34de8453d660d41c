//! The grammar of the administrative text commands, and the end of unknown verbs. Syntax only: the server
//! carries commands out.

use super::classic::{is_noreply, reply};
use super::frame::Frame;
use super::number;
use super::step::Step;
use crate::reply::Verb;
use crate::request::{Admin, Automove, Clock, Crawler, Lru, Request, ShutdownMode, Slabs, WatchClasses};
use crate::text;
use crate::token::{self, Tokens};

/// Parses a line whose verb is none of the data commands.
pub(super) fn parse<'a>(frame: Frame<'a>, verb: &'a [u8], mut tokens: Tokens<'a>) -> Step<'a> {
    let noreply = is_noreply(frame.line);
    let how = || reply(Verb::Admin, noreply);
    let command = match verb {
        b"cache_memlimit" => {
            memory_limit(tokens.next()).map(|megabytes| Admin::MemoryLimit(megabytes, how()))
        }
        b"shutdown" => Ok(Admin::Shutdown(shutdown(tokens), how())),
        b"lru" => lru(tokens).map(|command| Admin::Lru(command, how())),
        b"slabs" => slabs(tokens).map(|command| Admin::Slabs(command, how())),
        b"lru_crawler" => crawler(tokens).map(|command| Admin::Crawler(command, how())),
        b"watch" => Ok(Admin::Watch(watch(tokens), how())),
        b"extstore" => extstore(tokens).map(|(option, value)| Admin::Extstore(option, value, how())),
        b"refresh_certs" => Ok(Admin::RefreshCerts(how())),
        b"config" => cluster(tokens).map(|()| Admin::Cluster(how())),
        b"debugtime" => clock(tokens.next()).map(|clock| Admin::DebugTime(clock, how())),
        _ => return unknown(frame, tokens, noreply),
    };
    match command {
        Ok(command) => frame.request(Request::Admin(command)),
        Err(line) => frame.reject(line, noreply),
    }
}

/// No such verb. A browser that was talked into speaking to a cache gets nothing to read.
fn unknown<'a>(frame: Frame<'a>, arguments: Tokens<'a>, noreply: bool) -> Step<'a> {
    let is_http = !arguments.rest().is_empty() && token::last(frame.line).starts_with(b"HTTP/");
    if is_http {
        return Step::Close;
    }
    frame.reject(text::ERROR, noreply)
}

fn memory_limit(megabytes: Option<&[u8]>) -> Result<u32, &'static str> {
    match megabytes.and_then(number_32) {
        None => Err(text::ERROR),
        Some(..8) => Err(text::MEMLIMIT_TOO_SMALL),
        Some(1_000_000_001..) => Err(text::MEMLIMIT_NOT_BYTES),
        Some(megabytes) => Ok(megabytes),
    }
}

fn cluster(mut tokens: Tokens<'_>) -> Result<(), &'static str> {
    match (tokens.next(), tokens.next(), tokens.next()) {
        (Some(b"get"), Some(b"cluster"), None) => Ok(()),
        _ => Err(text::ERROR),
    }
}

fn shutdown(mut tokens: Tokens<'_>) -> ShutdownMode {
    match (tokens.next(), tokens.next()) {
        (None, _) => ShutdownMode::Now,
        (Some(b"graceful"), None) => ShutdownMode::Graceful,
        _ => ShutdownMode::Invalid,
    }
}

fn lru(mut tokens: Tokens<'_>) -> Result<Lru, &'static str> {
    match tokens.next() {
        Some(b"tune") => {
            let mut share = || tokens.next().and_then(number_32).ok_or(text::ERROR);
            let (hot_percent, warm_percent) = (share()?, share()?);
            let mut factor = || tokens.next().and_then(decimal).ok_or(text::ERROR);
            let (hot_factor, warm_factor) = (factor()?, factor()?);
            if hot_percent.saturating_add(warm_percent) > 80 {
                Err(text::LRU_SHARES)
            } else if hot_factor > 0.0 && warm_factor > 0.0 {
                Ok(Lru::Tune { hot_percent, warm_percent, hot_factor, warm_factor })
            } else {
                Err(text::LRU_FACTORS)
            }
        }
        Some(b"mode") => match tokens.next() {
            Some(b"flat") => Ok(Lru::Mode { segmented: false }),
            Some(b"segmented") => Ok(Lru::Mode { segmented: true }),
            _ => Err(text::ERROR),
        },
        Some(b"temp_ttl") => {
            let seconds = tokens.next().and_then(number::low_signed_32).ok_or(text::ERROR)?;
            Ok(Lru::TempTtl(u32::try_from(seconds).ok()))
        }
        _ => Err(text::ERROR),
    }
}

fn slabs(mut tokens: Tokens<'_>) -> Result<Slabs, &'static str> {
    match (tokens.next(), tokens.next(), tokens.next(), tokens.next()) {
        (Some(b"reassign"), Some(source), Some(destination), None) => {
            let class = |token| number::low_signed_32(token).ok_or(text::BAD_FORMAT);
            Ok(Slabs::Reassign { source: class(source)?, destination: class(destination)? })
        }
        (Some(b"automove"), Some(b"ratio" | b"freeratio"), Some(value), _) => {
            decimal(value).map(|_| Slabs::Automove(Automove::Tuning)).ok_or(text::ERROR)
        }
        (Some(b"automove"), Some(b"window"), Some(value), _) => {
            number_32(value).map(|_| Slabs::Automove(Automove::Tuning)).ok_or(text::ERROR)
        }
        (Some(b"automove"), Some(b"ratio" | b"freeratio" | b"window"), None, _) => Err(text::ERROR),
        (Some(b"automove"), Some(level), ..) => match number_32(level).ok_or(text::BAD_FORMAT)? {
            level @ 0..=2 => Ok(Slabs::Automove(Automove::Level(level))),
            _ => Err(text::ERROR),
        },
        _ => Err(text::ERROR),
    }
}

fn crawler(mut tokens: Tokens<'_>) -> Result<Crawler<'_>, &'static str> {
    match (tokens.next(), tokens.next(), tokens.next()) {
        (Some(b"enable"), None, _) => Ok(Crawler::Enable),
        (Some(b"disable"), None, _) => Ok(Crawler::Disable),
        (Some(b"crawl"), Some(classes), None) => Ok(Crawler::Crawl(classes)),
        (Some(b"metadump"), Some(which), None) => Ok(Crawler::Metadump(which)),
        (Some(b"mgdump"), Some(which), None) => Ok(Crawler::Mgdump(which)),
        (Some(b"tocrawl"), Some(number), None) => {
            number_32(number).map(Crawler::ToCrawl).ok_or(text::BAD_FORMAT)
        }
        (Some(b"sleep"), Some(us), None) => match number_32(us).ok_or(text::BAD_FORMAT)? {
            us @ ..=1_000_000 => Ok(Crawler::Sleep(us)),
            _ => Err(text::CRAWLER_SLEEP),
        },
        _ => Err(text::ERROR),
    }
}

fn watch(tokens: Tokens<'_>) -> Option<WatchClasses> {
    let mut classes = WatchClasses::default();
    for name in tokens {
        classes.0 |= WatchClasses::named(name)?.0;
    }
    Some(if classes == WatchClasses::default() { WatchClasses::FETCHERS } else { classes })
}

fn extstore(mut tokens: Tokens<'_>) -> Result<(&[u8], &[u8]), &'static str> {
    let option = tokens.next().ok_or(text::ERROR)?;
    let rest = token::trim_end(tokens.rest());
    let (first, second) = (tokens.next().ok_or(text::ERROR)?, tokens.next());
    let valid = match option {
        b"free_memchunks" => {
            number_32(first).is_some_and(|class| class < 64) && second.and_then(number_32).is_some()
        }
        b"item_size" | b"item_age" | b"low_ttl" | b"recache_rate" | b"compact_under" | b"drop_under"
        | b"max_sleep" | b"drop_unread" => number_32(first).is_some(),
        b"max_frag" => decimal(first).is_some(),
        _ => false,
    };
    if valid { Ok((option, rest)) } else { Err(text::ERROR) }
}

fn clock(what: Option<&[u8]>) -> Result<Clock, &'static str> {
    match what {
        Some(b"p") => Ok(Clock::Pause),
        Some(b"r") => Ok(Clock::Resume),
        Some(seconds) => number::signed_64(seconds).map(Clock::Shift).ok_or(text::ERROR),
        None => Err(text::ERROR),
    }
}

fn number_32(token: &[u8]) -> Option<u32> {
    number::digits(token).and_then(|value| u32::try_from(value).ok())
}

/// A finite number with a fraction, of sane length.
fn decimal(token: &[u8]) -> Option<f64> {
    let token = std::str::from_utf8(token).ok().filter(|token| token.len() < 32)?;
    token.parse().ok().filter(|value: &f64| value.is_finite())
}
