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
    /// Reads one key and gives it another expiry.
    Gat,
    /// Reads one key with its unique number, which the [`Self::Cas`] that follows has to name.
    Gets,
    /// Stores a value if the key still has the unique number that was read.
    Cas,
    /// Adds bytes behind a value.
    Append,
    /// Adds bytes in front of a value.
    Prepend,
    /// Opens a new connection in place of one, and asks for the server's version on it.
    Connect,
}

impl Verb {
    /// All of them, in the order of a result's rows.
    pub const ALL: [Self; 11] = [
        Self::Get,
        Self::Set,
        Self::Incr,
        Self::Delete,
        Self::Touch,
        Self::Gat,
        Self::Gets,
        Self::Cas,
        Self::Append,
        Self::Prepend,
        Self::Connect,
    ];

    /// Whether it asks for values.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Gat | Self::Gets)
    }

    /// Whether it changes a value that has to be there.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Cas | Self::Append | Self::Prepend)
    }

    /// Whether it adds to a value.
    pub fn is_addition(self) -> bool {
        matches!(self, Self::Append | Self::Prepend)
    }

    /// Whether a mix can name it: a gets comes with the cas that follows it.
    pub fn is_drawn(self) -> bool {
        self != Self::Gets
    }

    /// Its name in a result.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Incr => "incr",
            Self::Delete => "delete",
            Self::Touch => "touch",
            Self::Gat => "gat",
            Self::Gets => "gets",
            Self::Cas => "cas",
            Self::Append => "append",
            Self::Prepend => "prepend",
            Self::Connect => "connect",
        }
    }
}
