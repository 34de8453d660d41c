//! The flags of the meta commands: one letter each, some with a token glued on.

use super::number;
use crate::limits::LIMITS;
use crate::request::{Exptime, Lease};
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
    pub(super) announce: bool,
    pub(super) opaque_too_long: bool,
    /// `T` stands behind `N`.
    pub(super) touch_is_last: bool,
    /// `R` stands behind `T`.
    pub(super) recache_sees_touch: bool,
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
        match found.set(letter, argument) {
            Ok(()) => {}
            Err(Fault::Unknown) => {
                error = Some(text::META_INVALID);
                break;
            }
            // memcached has no words of its own for this one, so an error before it keeps the say.
            Err(Fault::ClientFlags) => error = error.or(Some(text::BAD_FORMAT)),
            Err(Fault::Token(line)) => error = Some(line),
        }
    }
    // A line with too many tokens is refused for that, whatever errors single tokens have.
    let count = if error.is_some() { before + tokens.count() } else { count };
    if count > LIMITS.meta_tokens_max {
        return Err(text::META_TOO_MANY);
    }
    match error {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

/// Why one flag is refused.
enum Fault {
    /// There is no such flag.
    Unknown,
    /// The client flags of `F` are no number.
    ClientFlags,
    /// The token is malformed, as this line tells.
    Token(&'static str),
}

impl Flags {
    /// Returns the expiry of an item that the command creates, if it may: that of `T` if it stands behind `N`.
    pub(super) fn created(&self) -> Option<Exptime> {
        if self.touch_is_last { self.touch } else { self.vivify }
    }

    /// Keeps what one flag says, whose letter stands before `argument`.
    // Left to itself, the compiler makes a call for each flag of a get.
    #[inline(always)]
    fn set(&mut self, letter: u8, argument: &[u8]) -> Result<(), Fault> {
        let exptime = |argument| number::low_signed_32(argument).map(Exptime::from);
        match letter {
            b'k' | b's' | b't' | b'c' | b'f' | b'h' | b'l' | b'P' | b'L' => {}
            b'O' => self.opaque_too_long = 1 + argument.len() > LIMITS.opaque_bytes_max,
            b'A' => {
                self.announce = true;
                Lease::read(argument).ok_or(Fault::Token(text::META_BAD_TOKEN))?;
            }
            b'b' => self.base64 = true,
            b'v' => self.value = true,
            b'q' => self.quiet = true,
            b'u' => self.no_bump = true,
            b'I' => self.stale = true,
            b'x' => self.empty_value = true,
            b'N' => take(&mut self.vivify, exptime(argument), text::META_BAD_TOKEN)?,
            // memcached applies N, R and T in the order in which they come.
            b'T' => {
                self.touch_is_last = self.vivify.is_some();
                take(&mut self.touch, exptime(argument), text::META_BAD_TOKEN)?;
            }
            b'R' => {
                self.recache_sees_touch = self.touch.is_some();
                take(&mut self.recache, number::low_signed_32(argument), text::META_BAD_TOKEN)?;
            }
            b'C' => take(&mut self.compare, number::unsigned(argument), text::META_BAD_TOKEN)?,
            b'E' => take(&mut self.new_cas, number::unsigned(argument), text::META_BAD_TOKEN)?,
            b'D' => take(&mut self.delta, number::unsigned(argument), text::META_BAD_DELTA)?,
            b'J' => {
                self.initial = number::unsigned(argument).ok_or(Fault::Token(text::META_BAD_INITIAL))?;
            }
            b'F' => self.client_flags = number::low_unsigned_32(argument).ok_or(Fault::ClientFlags)?,
            // Without a letter of its own the mode is whatever byte comes next, which is no mode.
            b'M' => self.mode = Some(argument.first().copied().unwrap_or(b' ')),
            _ => return Err(Fault::Unknown),
        }
        Ok(())
    }
}

#[inline]
fn take<T>(field: &mut Option<T>, value: Option<T>, complaint: &'static str) -> Result<(), Fault> {
    *field = value;
    if field.is_some() { Ok(()) } else { Err(Fault::Token(complaint)) }
}
