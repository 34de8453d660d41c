//! The one record format of both tiers: a 32-byte header, the key, the value.

use crate::clock::{Expiry, Seconds};

/// Bytes of a record before its key.
pub const HEADER_BYTES: usize = 32;
/// RAM records begin on multiples of this many bytes.
pub const RAM_ALIGN: usize = 8;
/// Bytes of the trailer of a promoted record: the place of its copy on the SSD, 8, and the whole generation of
/// the segment there, 4.
pub(crate) const SSD_COPY_BYTES: usize = 12;

/// The item has been read since it was stored.
pub(crate) const FETCHED: u8 = 1;
/// Marked stale by `md I` or an older `ms I`: readable, and due to be recached.
pub(crate) const STALE: u8 = 2;
/// A client has been told to recache it.
pub(crate) const WIN_SENT: u8 = 4;
/// Stored under a key that was sent base64-encoded.
pub(crate) const KEY_BINARY: u8 = 8;
/// RAM only: the record ends with the place of its unchanged copy on the SSD.
pub(crate) const HAS_SSD_COPY: u8 = 16;
/// Stored in place of the key's former version.
pub(crate) const STORED_AGAIN: u8 = 32;

/// What precedes key and value.
///
/// ```text
///  0           4        8         16        20         24      28     29     30    32
/// +-----------+--------+---------+---------+----------+-------+------+------+-----+-----
/// | value_len | client |   cas   | expires | accessed | epoch | key  | item | tag | key,
/// |           | flags  |         |         |          |       | len  | flags|     | value
/// +-----------+--------+---------+---------+----------+-------+------+------+-----+-----
/// ```
/// All integers little endian. `expires` is in seconds of the store's clock, 0 for never; `epoch` counts the
/// flushes before the record was written; `tag` is the key's in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct RecordHeader {
    pub value_len: u32,
    pub client_flags: u32,
    pub cas: u64,
    pub expires: u32,
    pub accessed: u32,
    pub epoch: u32,
    pub key_len: u8,
    pub item_flags: u8,
    pub tag: u16,
}

/// Why an item is not to be seen.
#[derive(Clone, Copy)]
pub(crate) enum Gone {
    Expired,
    Flushed,
}

impl RecordHeader {
    /// Returns why the item is not to be seen; `None` if it is.
    pub(crate) fn gone(&self, now: Seconds, epoch: u32) -> Option<Gone> {
        if self.epoch < epoch {
            return Some(Gone::Flushed);
        }
        Expiry::from_raw(self.expires).has_passed(now).then_some(Gone::Expired)
    }

    /// Returns whether the item has expired or been flushed.
    pub(crate) fn is_gone(&self, now: Seconds, epoch: u32) -> bool {
        self.gone(now, epoch).is_some()
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.value_len.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.client_flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.cas.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.expires.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.accessed.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[28] = self.key_len;
        bytes[29] = self.item_flags;
        bytes[30..32].copy_from_slice(&self.tag.to_le_bytes());
        bytes
    }

    /// Decodes the front of `bytes`; `None` when there are too few.
    #[inline]
    pub(crate) fn decode(bytes: &[u8]) -> Option<RecordHeader> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Some(RecordHeader {
            value_len: word(0),
            client_flags: word(4),
            cas: u64::from(word(8)) | u64::from(word(12)) << 32,
            expires: word(16),
            accessed: word(20),
            epoch: word(24),
            key_len: bytes[28],
            item_flags: bytes[29],
            tag: u16::from_le_bytes([bytes[30], bytes[31]]),
        })
    }

    /// Returns the header of a record that is stored in place of its key's former version, or of a new one.
    #[inline]
    pub(crate) fn stored_again(self, is_stored_again: bool) -> RecordHeader {
        let flag = if is_stored_again { STORED_AGAIN } else { 0 };
        RecordHeader { item_flags: self.item_flags & !STORED_AGAIN | flag, ..self }
    }

    /// Marks the record whose header begins `bytes` as read at second `now`, in place. The header is valid
    /// between any two of the bytes written.
    #[inline]
    pub(crate) fn mark_read(bytes: &mut [u8], now: u32) {
        bytes[20..24].copy_from_slice(&now.to_le_bytes());
        bytes[29] |= FETCHED;
    }

    /// Marks the record whose header begins `bytes` as one without a copy on the SSD, by changing one byte.
    pub(crate) fn forget_ssd_copy(bytes: &mut [u8]) {
        bytes[29] &= !HAS_SSD_COPY;
    }

    /// Header, key and value, in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        HEADER_BYTES + usize::from(self.key_len) + self.value_len as usize
    }

    /// What the record takes in a RAM segment: with its trailer, rounded up.
    #[inline]
    pub(crate) fn ram_bytes(&self) -> usize {
        let ssd_copy = if self.item_flags & HAS_SSD_COPY != 0 { SSD_COPY_BYTES } else { 0 };
        (self.bytes() + ssd_copy).next_multiple_of(RAM_ALIGN)
    }
}

/// A record found in memory: header, key and value of one contiguous run of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub header: RecordHeader,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads the record at the front of `bytes`; `None` when it does not fit, as damaged bytes may say.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Record<'a>> {
        let header = RecordHeader::decode(bytes)?;
        let key_end = HEADER_BYTES + usize::from(header.key_len);
        let value_end = key_end.checked_add(header.value_len as usize)?;
        Some(Record { header, key: bytes.get(HEADER_BYTES..key_end)?, value: bytes.get(key_end..value_end)? })
    }
}

/// Header and key of a record in the log, whose value may go on in later segments.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub header: RecordHeader,
    pub key: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads header and key at the front of `bytes`; `None` when they do not fit.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Head<'a>> {
        let header = RecordHeader::decode(bytes)?;
        Some(Head { header, key: bytes.get(HEADER_BYTES..HEADER_BYTES + usize::from(header.key_len))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_survives_encoding() {
        let header = RecordHeader {
            value_len: 0x0102_0304,
            client_flags: u32::MAX,
            cas: 0xFEDC_BA98_7654_3210,
            expires: 5,
            accessed: 6,
            epoch: 7,
            key_len: 250,
            item_flags: STALE | HAS_SSD_COPY,
            tag: 0xBEEF,
        };
        assert_eq!(RecordHeader::decode(&header.encode()), Some(header));
        assert_eq!(RecordHeader::decode(&[0; 31]), None);
    }

    #[test]
    fn a_record_that_claims_more_than_is_there_is_not_read() {
        let header = RecordHeader { value_len: u32::MAX, key_len: 3, ..RecordHeader::default() };
        assert!(Record::parse(&[&header.encode()[..], b"abc"].concat()).is_none());
    }
}
