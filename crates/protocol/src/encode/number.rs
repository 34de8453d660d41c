//! Decimal numbers of the text wires.

/// Appends a number in decimal.
#[inline]
pub(super) fn push<N: itoa::Integer>(out: &mut Vec<u8>, value: N) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}
