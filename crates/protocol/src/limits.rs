//! Every number that a peer can push against, in one place. What an item may weigh is the server's to decide.

/// The longest key a client may use, in bytes (memcached's `KEY_MAX_LENGTH`).
pub const KEY_BYTES_MAX: usize = 250;

/// The bounds of the wire. There is one set, [`Limits::MEMCACHED`]; the fields are public so that
/// buffers can be sized by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A command line longer than this that has not ended yet closes the connection, unless it is a
    /// multi-get. A longer line that arrived whole is served, as memcached does.
    pub line_bytes_max: usize,
    /// The longest line of all, terminator included: what a multi-get may grow to. memcached has no bound
    /// here.
    pub get_line_bytes_max: usize,
    /// How many blanks may stand before `get` for the line to count as a multi-get.
    pub leading_blanks_max: usize,
    /// The longest key, in bytes; for a base64 key the longest encoded form.
    pub key_bytes_max: usize,
    /// The most tokens a meta command may have, verb and key included.
    pub meta_tokens_max: usize,
    /// The longest opaque token, its `O` included.
    pub opaque_bytes_max: usize,
    /// The longest message with credentials, in bytes. memcached takes at most 255 of them out of its file.
    pub login_bytes_max: usize,
    /// The longest value a text line may announce. Far above what a server will store: up to here the data
    /// is swallowed, beyond it the line is not believed.
    pub value_bytes_max: u32,
    /// The most a binary request can be before its value: header, extras and key.
    pub binary_head_bytes_max: usize,
}

impl Limits {
    /// memcached's numbers, and our own where it has none (`get_line_bytes_max`, `login_bytes_max`).
    pub const MEMCACHED: Limits = Limits {
        line_bytes_max: 2048,
        get_line_bytes_max: 1024 * 1024,
        leading_blanks_max: 100,
        key_bytes_max: KEY_BYTES_MAX,
        meta_tokens_max: 20,
        opaque_bytes_max: 32,
        login_bytes_max: 2048,
        value_bytes_max: i32::MAX as u32 - 2,
        binary_head_bytes_max: 24 + 20 + KEY_BYTES_MAX,
    };
}

/// Short for the one set there is.
pub(crate) const LIMITS: Limits = Limits::MEMCACHED;
