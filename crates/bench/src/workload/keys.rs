//! How a key is called: a prefix and its number with leading zeros, so that every key is as long as the
//! others.

use crate::random::mix;

/// The longest key that memcached and its relatives take.
pub const KEY_BYTES_MAX: usize = 250;
/// Decimal digits of the largest number.
const DIGITS_MAX: usize = 20;

/// The names of keys.
#[derive(Clone, Debug)]
pub struct Names {
    prefix: Vec<u8>,
    digits: usize,
    prefix_hash: u64,
}

impl Names {
    /// Names for the numbers below `keys`, of `bytes` bytes each when that is given.
    ///
    /// # Errors
    /// They do not fit, or the prefix has a space or a control character.
    pub fn new(prefix: &[u8], bytes: Option<usize>, keys: u64) -> Result<Self, String> {
        if let Some(byte) = prefix.iter().find(|byte| **byte <= b' ' || **byte == 0x7f) {
            return Err(format!("--key-prefix: `{}` cannot be part of a key", byte.escape_ascii()));
        }
        let needed = keys.saturating_sub(1).checked_ilog10().unwrap_or(0) as usize + 1;
        let digits = match bytes {
            None => needed,
            Some(bytes) => bytes.saturating_sub(prefix.len()),
        };
        if digits < needed {
            let least = prefix.len() + needed;
            return Err(format!("--key-size: {keys} keys with this prefix need at least {least} bytes"));
        }
        if prefix.len() + digits >= KEY_BYTES_MAX {
            return Err(format!("--key-size: a key has to be shorter than {KEY_BYTES_MAX} bytes"));
        }
        Ok(Self { prefix: prefix.to_vec(), digits, prefix_hash: hash_of(prefix, digits) })
    }

    /// Returns one fixed name, that of the number 0.
    pub fn one(name: &str) -> Self {
        let prefix = name.as_bytes().to_vec();
        Self { prefix_hash: hash_of(&prefix, 0), prefix, digits: 0 }
    }

    /// The names of counters: one letter longer, so that they never meet those of values.
    ///
    /// # Errors
    /// They would be too long.
    pub fn counters(&self) -> Result<Self, String> {
        let mut prefix = self.prefix.clone();
        prefix.push(b'n');
        if prefix.len() + self.digits > KEY_BYTES_MAX {
            return Err(format!("--key-size: a key has to be shorter than {KEY_BYTES_MAX} bytes"));
        }
        Ok(Self { prefix_hash: hash_of(&prefix, self.digits), prefix, digits: self.digits })
    }

    /// Bytes of a name.
    pub fn bytes(&self) -> usize {
        self.prefix.len() + self.digits
    }

    /// Appends the name of a number.
    pub fn write(&self, out: &mut Vec<u8>, key: u64) {
        out.extend_from_slice(&self.prefix);
        let mut zeros = self.digits;
        while zeros > DIGITS_MAX {
            out.push(b'0');
            zeros -= 1;
        }
        let mut digits = [b'0'; DIGITS_MAX];
        let mut rest = key;
        for digit in digits.iter_mut().rev() {
            if rest == 0 {
                break;
            }
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&digits[DIGITS_MAX - zeros..]);
    }

    /// The number that a name stands for, if it is one of these.
    pub fn number(&self, name: &[u8]) -> Option<u64> {
        let digits = name.strip_prefix(self.prefix.as_slice())?;
        if digits.len() != self.digits {
            return None;
        }
        digits.iter().try_fold(0u64, |sum, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        })
    }

    /// A hash of the name; it never changes, since values in servers carry it.
    pub fn hash(&self, key: u64) -> u64 {
        mix(self.prefix_hash ^ mix(key))
    }

    /// The client flags of a key's value: 1 to 99, as short as those of most clients and never none.
    pub fn flags(&self, key: u64) -> u32 {
        (self.hash(key) % FLAGS_MAX) as u32 + 1
    }
}

/// See [`Names::flags`].
const FLAGS_MAX: u64 = 99;

fn hash_of(prefix: &[u8], digits: usize) -> u64 {
    prefix.iter().fold(mix(digits as u64), |hash, byte| mix(hash ^ u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equally_long_and_lead_back() {
        for (bytes, keys, shown) in [(None, 1000, "k:042"), (Some(8), 1000, "k:000042"), (Some(30), 50, "")] {
            let names = Names::new(b"k:", bytes, keys).expect("it fits");
            let mut name = Vec::new();
            names.write(&mut name, 42);
            assert_eq!(name.len(), names.bytes());
            assert_eq!(names.number(&name), Some(42));
            assert!(shown.is_empty() || name == shown.as_bytes());
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        assert!(Names::new(b"k:", Some(4), 1000).is_err());
        assert!(Names::new(b"k ", None, 1000).is_err());
        assert!(Names::new(b"k", Some(251), 1000).is_err());
    }

    #[test]
    fn a_counter_is_no_value() {
        let items = Names::new(b"k:", None, 100).expect("it fits");
        let counters = items.counters().expect("it fits");
        let mut name = Vec::new();
        counters.write(&mut name, 7);
        assert_eq!(name, b"k:n07");
        assert_eq!(items.number(&name), None);
        assert_ne!(items.hash(7), counters.hash(7));
    }
}
