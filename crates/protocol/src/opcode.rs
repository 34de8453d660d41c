//! The opcodes of the binary wire, and what distinguishes them.

pub(crate) const GET: u8 = 0x00;
pub(crate) const SET: u8 = 0x01;
pub(crate) const ADD: u8 = 0x02;
pub(crate) const REPLACE: u8 = 0x03;
pub(crate) const DELETE: u8 = 0x04;
pub(crate) const INCREMENT: u8 = 0x05;
pub(crate) const DECREMENT: u8 = 0x06;
pub(crate) const QUIT: u8 = 0x07;
pub(crate) const FLUSH: u8 = 0x08;
pub(crate) const NOOP: u8 = 0x0a;
pub(crate) const VERSION: u8 = 0x0b;
pub(crate) const GETK: u8 = 0x0c;
pub(crate) const APPEND: u8 = 0x0e;
pub(crate) const PREPEND: u8 = 0x0f;
pub(crate) const STAT: u8 = 0x10;
pub(crate) const TOUCH: u8 = 0x1c;
pub(crate) const GAT: u8 = 0x1d;
pub(crate) const SASL_LIST: u8 = 0x20;
pub(crate) const SASL_AUTH: u8 = 0x21;
pub(crate) const SASL_STEP: u8 = 0x22;
pub(crate) const GATK: u8 = 0x23;

/// The opcode that asks the same and always answers.
pub(crate) fn loud(opcode: u8) -> u8 {
    match opcode {
        0x09 => GET,
        0x0d => GETK,
        0x11 => SET,
        0x12 => ADD,
        0x13 => REPLACE,
        0x14 => DELETE,
        0x15 => INCREMENT,
        0x16 => DECREMENT,
        0x17 => QUIT,
        0x18 => FLUSH,
        0x19 => APPEND,
        0x1a => PREPEND,
        0x1e => GAT,
        0x24 => GATK,
        other => other,
    }
}

/// Whether the answer to a read repeats the key.
pub(crate) fn wants_key(opcode: u8) -> bool {
    matches!(loud(opcode), GETK | GATK)
}
