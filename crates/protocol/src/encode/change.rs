//! Lines of a subscription: its number, and the leased keys that have changed. They are Larder's own.

use super::number;

/// Tokens in one line, so that a line has at most 2,104 bytes.
const TOKENS_MAX: usize = 100;

/// Appends the reply to `mi`: the number of the subscription.
pub fn subscription_line(out: &mut Vec<u8>, subscription: u64) {
    out.extend_from_slice(b"MI ");
    number::push(out, subscription);
    out.extend_from_slice(b"\r\n");
}

/// Appends lines that tell which keys have changed, by the tokens that they were leased with. Nothing for none.
pub fn changed_line(out: &mut Vec<u8>, tokens: &[u64]) {
    for tokens in tokens.chunks(TOKENS_MAX) {
        out.extend_from_slice(b"IN");
        for token in tokens {
            out.push(b' ');
            number::push(out, *token);
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the line that tells that every leased key may have changed.
pub fn all_changed_line(out: &mut Vec<u8>) {
    out.extend_from_slice(b"IN *\r\n");
}
