//! The answers that no server may give, in words.

use std::fmt;

/// Why a value is not one that a get may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It is this write, and this later one had replaced it before the get began.
    Replaced(u32, u32),
    /// It is of another run, although this run's set had been acknowledged before the get began.
    OtherRun,
    /// It is this write, which was not begun yet.
    Unwritten(u32),
    /// It is this cas, which was refused.
    Refused(u32),
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced(write, by) => {
                write!(
                    f,
                    "is stale: write {write} of the key, and {by} was acknowledged before the get began"
                )
            }
            Self::OtherRun => {
                write!(
                    f,
                    "is of another run or writer, and a set of this run was acknowledged before the get began"
                )
            }
            Self::Unwritten(write) => write!(f, "is write {write} of the key, which was not sent yet"),
            Self::Refused(write) => write!(f, "is write {write} of the key, a cas that was refused"),
        }
    }
}

/// Why a cas may not be answered as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCas {
    /// It was stored upon this write, and this later one had replaced it before the cas began.
    Replaced(u32, u32),
    /// It was stored upon this write, as another one was.
    Again(u32),
    /// It was refused, and nothing else wrote the key.
    Needless,
}

impl fmt::Display for BadCas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced(write, by) => {
                write!(f, "was stored upon write {write}, and {by} was acknowledged before it began")
            }
            Self::Again(write) => write!(f, "was stored upon write {write}, and so was another one"),
            Self::Needless => write!(f, "was refused, and nothing else wrote the key since it was read"),
        }
    }
}

/// Why a value with what was added to it is not one that a get may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRow {
    /// What was added to is not one that a get may return.
    Stale(Stale),
    /// It has so few additions, where so many were acknowledged before the get began.
    Lost(u32, u32),
    /// It has this write more than once.
    Again(u32),
    /// It is not one set with what was prepended in front and what was appended behind.
    Order,
}

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(stale) => stale.fmt(f),
            Self::Lost(found, added) => write!(
                f,
                "has {found} additions, and {added} were acknowledged before the get began: some were lost"
            ),
            Self::Again(write) => write!(f, "has write {write} of the key more than once"),
            Self::Order => write!(f, "is not one set with what was prepended in front and appended behind"),
        }
    }
}
