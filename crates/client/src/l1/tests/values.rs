//! Values that tell what they are.

/// A value that tells its key, its version and its length.
pub fn value(key: u64, version: u64, len: usize) -> Vec<u8> {
    let seed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ version.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut state = seed ^ len as u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub fn name(key: u64) -> Vec<u8> {
    format!("key-{key}").into_bytes()
}
