//! The grammar of `ml`, Larder's own meta command: `ml <key> L<count> P<milliseconds> <flag>*` asks whether a cost may
//! pass a rate limit.

use std::ops::RangeInclusive;
use std::time::Duration;

use larder_rate::{Algorithm, Limit, PERIOD_MS_MAX, PERIOD_MS_MIN};

use super::frame::Frame;
use super::number;
use super::step::Step;
use crate::limits::LIMITS;
use crate::reply::{Reply, Verb};
use crate::request::{Check, Key, Request};
use crate::text;
use crate::token::Tokens;

/// What the flags tell.
#[derive(Default)]
struct Flags {
    base64: bool,
    quiet: bool,
    count: Option<u64>,
    period_ms: Option<u64>,
    burst: Option<u64>,
    cost: Option<u64>,
    mode: Option<u8>,
}

impl Flags {
    fn read(tokens: Tokens<'_>) -> Result<Flags, &'static str> {
        let mut found = Flags::default();
        let mut seen = 0_u128;
        // The verb and the key.
        if 2 + tokens.count() > LIMITS.meta_tokens_max {
            return Err(text::META_TOO_MANY);
        }
        for token in tokens {
            let Some((&letter, argument)) = token.split_first() else { continue };
            let bit = 1_u128.checked_shl(u32::from(letter)).filter(|_| letter < 127).unwrap_or(0);
            if bit == 0 || seen & bit != 0 {
                return Err(text::META_DUPLICATE);
            }
            seen |= bit;
            found.set(letter, argument)?;
        }
        Ok(found)
    }

    fn set(&mut self, letter: u8, argument: &[u8]) -> Result<(), &'static str> {
        let number = |bounds: RangeInclusive<u64>| {
            number::digits(argument).filter(|number| bounds.contains(number)).ok_or(text::META_BAD_TOKEN)
        };
        match letter {
            b'k' | b'r' | b'w' | b'a' => {}
            b'O' if 1 + argument.len() > LIMITS.opaque_bytes_max => return Err(text::META_OPAQUE_TOO_LONG),
            b'O' => {}
            b'b' => self.base64 = true,
            b'q' => self.quiet = true,
            b'M' => self.mode = Some(argument.first().copied().unwrap_or(b' ')),
            b'L' => self.count = Some(number(1..=u64::MAX)?),
            b'P' => self.period_ms = Some(number(PERIOD_MS_MIN..=PERIOD_MS_MAX)?),
            b'B' => self.burst = Some(number(1..=u64::MAX)?),
            b'D' => self.cost = Some(number(0..=u64::MAX)?),
            _ => return Err(text::META_INVALID),
        }
        Ok(())
    }

    fn limit(&self) -> Result<Limit, &'static str> {
        let (Some(count), Some(period_ms)) = (self.count, self.period_ms) else {
            return Err(text::LIMIT_INCOMPLETE);
        };
        let algorithm = match self.mode {
            None | Some(b'G') => Algorithm::Gcra { burst: self.burst.unwrap_or(count) },
            Some(b'F') => Algorithm::FixedWindow,
            Some(b'S') => Algorithm::SlidingWindow,
            Some(_) => return Err(text::LIMIT_MODE),
        };
        Ok(Limit { count, period: Duration::from_millis(period_ms), algorithm })
    }
}

fn check<'a>(mut tokens: Tokens<'a>) -> Result<Check<'a>, &'static str> {
    let key = tokens.next().filter(|key| key.len() <= LIMITS.key_bytes_max).ok_or(text::BAD_FORMAT)?;
    let found = Flags::read(tokens)?;
    let key = match found.base64 {
        true => Key::decode(key).ok_or(text::META_BAD_KEY)?,
        false => Key::plain(key),
    };
    let reply = Reply::Meta {
        verb: Verb::Check,
        flags: tokens.rest(),
        quiet: found.quiet,
        base64: found.base64,
        value: false,
        leased: false,
    };
    Ok(Check { key, limit: found.limit()?, cost: found.cost.unwrap_or(1), reply })
}

/// `ml <key> <flag>*`
pub(super) fn parse<'a>(frame: Frame<'a>, tokens: Tokens<'a>) -> Step<'a> {
    match check(tokens) {
        Ok(check) => frame.request(Request::Check(check)),
        Err(line) => frame.reject(line, false),
    }
}
