//! A size as an operator reads it.

use std::fmt;

/// Shows a number of bytes in the largest unit that leaves a readable number, exact when that unit divides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 1u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.iter().find(|(_, unit)| self.0 >= *unit) {
            Some((name, unit)) if self.0.is_multiple_of(*unit) => write!(f, "{} {name}", self.0 / unit),
            Some((name, unit)) => write!(f, "{:.1} {name}", self.0 as f64 / *unit as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        let sizes = [0, 1023, 4096, 65 << 20, 3 << 29, 511_984 << 20, 64 << 40];
        let shown = sizes.map(|n| Bytes(n).to_string());
        assert_eq!(shown, ["0 bytes", "1023 bytes", "4 KiB", "65 MiB", "1.5 GiB", "500.0 GiB", "64 TiB"]);
    }
}
