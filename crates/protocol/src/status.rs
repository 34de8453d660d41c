//! The statuses of the binary wire, and the words that go with them.

pub(crate) const OK: u16 = 0x00;
pub(crate) const NOT_FOUND: u16 = 0x01;
pub(crate) const EXISTS: u16 = 0x02;
pub(crate) const TOO_LARGE: u16 = 0x03;
pub(crate) const INVALID: u16 = 0x04;
pub(crate) const NOT_STORED: u16 = 0x05;
pub(crate) const NON_NUMERIC: u16 = 0x06;
pub(crate) const AUTH: u16 = 0x20;
pub(crate) const AUTH_CONTINUE: u16 = 0x21;
pub(crate) const UNKNOWN: u16 = 0x81;
pub(crate) const OUT_OF_MEMORY: u16 = 0x82;
pub(crate) const INTERNAL: u16 = 0x84;

/// The words that go with a status.
pub(crate) fn words(status: u16) -> &'static str {
    match status {
        NOT_FOUND => "Not found",
        EXISTS => "Data exists for key.",
        TOO_LARGE => "Too large.",
        INVALID => "Invalid arguments",
        NOT_STORED => "Not stored.",
        NON_NUMERIC => "Non-numeric server-side value for incr or decr",
        AUTH => "Auth failure.",
        UNKNOWN => "Unknown command",
        OUT_OF_MEMORY => "Out of memory",
        _ => "",
    }
}
