//! The flags of the meta commands: one letter each, some with a token glued on.

use super::number;
use crate::limits::LIMITS;
use crate::request::Exptime;
use crate::text;
use crate::token::Tokens;

/// All that flags can say. Any flag is allowed on any command; those that mean nothing there are ignored.
#[derive(Default)]
pub(super) struct Flags {
    pub(super) base64: bool,
    pub(super) value: bool,
    pub(super) quiet: bool,
    pub(super) no_bump: bool,
    pub(super) stale: bool,
    pub(super) empty_value: bool,
    pub(super) opaque_too_long: bool,
    pub(super) vivify: Option<Exptime>,
    pub(super) touch: Option<Exptime>,
    pub(super) recache: Option<i32>,
    pub(super) compare: Option<u64>,
    pub(super) new_cas: Option<u64>,
    pub(super) client_flags: u32,
    pub(super) initial: u64,
    pub(super) delta: Option<u64>,
    pub(super) mode: Option<u8>,
}

/// Reads the flags of a command whose verb, key (and length) make `before` tokens. The first flag that is
/// unknown or comes twice ends it; of several bad tokens the last is the one that is named, as memcached has
/// it.
pub(super) fn read(tokens: Tokens<'_>, before: usize) -> Result<Flags, &'static str> {
    let mut found = Flags::default();
    let mut seen = 0u128;
    let mut error = None;
    let mut count = before;
    for token in tokens {
        count += 1;
        let Some((&letter, argument)) = token.split_first() else {
            continue;
        };
        let bit = 1u128.checked_shl(u32::from(letter)).filter(|_| letter < 127).unwrap_or(0);
        if bit == 0 || seen & bit != 0 {
            error = Some(text::META_DUPLICATE);
            break;
        }
        seen |= bit;
        let bad = match letter {
            b'O' => {
                found.opaque_too_long = token.len() > LIMITS.opaque_bytes_max;
                None
            }
            b'k' | b's' | b't' | b'c' | b'f' | b'h' | b'l' | b'P' | b'L' => None,
            b'b' => set(&mut found.base64),
            b'v' => set(&mut found.value),
            b'q' => set(&mut found.quiet),
            b'u' => set(&mut found.no_bump),
            b'I' => set(&mut found.stale),
            b'x' => set(&mut found.empty_value),
            b'N' => take(
                &mut found.vivify,
                number::low_signed_32(argument).map(Exptime::from),
                text::META_BAD_TOKEN,
            ),
            b'T' => take(
                &mut found.touch,
                number::low_signed_32(argument).map(Exptime::from),
                text::META_BAD_TOKEN,
            ),
            b'R' => take(&mut found.recache, number::low_signed_32(argument), text::META_BAD_TOKEN),
            b'C' => take(&mut found.compare, number::unsigned(argument), text::META_BAD_TOKEN),
            b'E' => take(&mut found.new_cas, number::unsigned(argument), text::META_BAD_TOKEN),
            b'D' => take(&mut found.delta, number::unsigned(argument), text::META_BAD_DELTA),
            b'J' => match number::unsigned(argument) {
                Some(initial) => {
                    found.initial = initial;
                    None
                }
                None => Some(text::META_BAD_INITIAL),
            },
            b'F' => match number::low_unsigned_32(argument) {
                Some(client_flags) => {
                    found.client_flags = client_flags;
                    None
                }
                // memcached has no words of its own for this one, so an error before it keeps the say.
                None => Some(error.unwrap_or(text::BAD_FORMAT)),
            },
            b'M' => {
                // Without a letter of its own the mode is whatever byte comes next, which is no mode.
                found.mode = Some(argument.first().copied().unwrap_or(b' '));
                None
            }
            _ => {
                error = Some(text::META_INVALID);
                break;
            }
        };
        error = bad.or(error);
    }
    // The number of tokens is looked at before any of them is, so it wins over what is wrong with one.
    let count = if error.is_some() { before + tokens.count() } else { count };
    if count > LIMITS.meta_tokens_max {
        return Err(text::META_TOO_MANY);
    }
    match error {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

#[inline]
fn set(flag: &mut bool) -> Option<&'static str> {
    *flag = true;
    None
}

#[inline]
fn take<T>(field: &mut Option<T>, value: Option<T>, complaint: &'static str) -> Option<&'static str> {
    let complaint = if value.is_none() { Some(complaint) } else { None };
    *field = value;
    complaint
}
