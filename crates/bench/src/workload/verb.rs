//! The verbs of requests.

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads one key or several.
    Get,
    /// Stores a value.
    Set,
    /// Adds one to a counter.
    Incr,
    /// Removes a key.
    Delete,
    /// Gives a key another expiry.
    Touch,
}

impl Verb {
    /// All of them, in the order of a result's rows.
    pub const ALL: [Self; 5] = [Self::Get, Self::Set, Self::Incr, Self::Delete, Self::Touch];

    /// Its name in a result.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Incr => "incr",
            Self::Delete => "delete",
            Self::Touch => "touch",
        }
    }
}
