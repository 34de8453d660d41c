//! The files or devices of the SSD tier, their sizes, and this process's share of them. It opens nothing.

use std::path::PathBuf;

use super::values;

/// One file or block device of the SSD tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SsdPath {
    /// The file or block device, as given; a relative path counts from the directory the daemon is started
    /// in.
    pub path: PathBuf,
    /// Bytes of it to use. `None`: the whole block device, or the present length of the file; a file that
    /// does not exist yet needs a size.
    pub size_bytes: Option<u64>,
}

/// The part of each SSD path that this process uses, when several processes share one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SsdShare {
    /// The number of the part, from 1 to `parts`.
    pub part: u32,
    /// The number of parts.
    pub parts: u32,
}

impl SsdShare {
    /// All of it: part 1 of 1.
    pub const WHOLE: SsdShare = SsdShare { part: 1, parts: 1 };
    /// The most processes that may share one path.
    pub const PARTS_MAX: u32 = 1024;
}

/// The smallest size a path may be given. Less is almost always a path that ends in a colon and digits.
pub const SSD_BYTES_MIN: u64 = values::MIB;

/// Reads `PATH[:SIZE]`. A path may hold colons: the last piece is the size if it reads as one.
///
/// # Errors
/// No path, or a size below 1 MiB.
pub fn ssd_path(text: &str) -> Result<SsdPath, String> {
    let text = text.trim();
    let (path, size_bytes) = match text.rsplit_once(':') {
        Some((path, last)) => match values::size(last, 1) {
            Ok(size) => (path, Some(size)),
            Err(error) if values::is_size(last) => return Err(error),
            Err(_) => (text, None),
        },
        None => (text, None),
    };
    if path.is_empty() {
        return Err(format!("\"{text}\" has no path; write PATH:SIZE, such as /var/lib/larder/ssd:100g"));
    }
    if let Some(size) = size_bytes.filter(|size| *size < SSD_BYTES_MIN) {
        return Err(format!(
            "\"{text}\" is a size of {}; give 1m or more (a path that ends in a colon and a number needs its \
             size behind it, PATH:SIZE)",
            values::show_size(size)
        ));
    }
    Ok(SsdPath { path: PathBuf::from(path), size_bytes })
}

/// Reads the value of memcached's `-o ext_path`: `PATH:SIZE[:BUCKET]`. The bucket selects the items that memcached
/// would put there. Larder has one ring for all items, so the bucket is cut off. The rest is for [`ssd_path`].
///
/// # Errors
/// The size is missing or has no suffix, or as [`ssd_path`].
pub fn ext_path(text: &str) -> Result<&str, String> {
    const BUCKETS: [&str; 6] = ["compact", "lowttl", "chunked", "default", "coldcompact", "old"];
    let body = match text.rsplit_once(':') {
        Some((body, last)) if BUCKETS.contains(&last) => body,
        _ => text,
    };
    let ssd = ssd_path(body)?;
    if ssd.size_bytes.is_none() || body.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("\"{text}\" lacks a size with its unit; write PATH:SIZE, such as /data/file:9G"));
    }
    Ok(body)
}

/// Reads `I/N`: part I, from 1 to N, of N parts.
///
/// # Errors
/// The text is not of that form, I is not within 1..=N, or N is over 1024.
pub fn ssd_share(text: &str) -> Result<SsdShare, String> {
    let wrong = || format!("\"{text}\" is not a share; write I/N with I from 1 to N, such as 1/8");
    let (part, parts) = text.trim().split_once('/').ok_or_else(wrong)?;
    let read = |n: &str| n.trim().parse::<u32>().map_err(|_| wrong());
    let (part, parts) = (read(part)?, read(parts)?);
    if part < 1 || part > parts {
        return Err(wrong());
    }
    if parts > SsdShare::PARTS_MAX {
        return Err(format!("\"{text}\": at most {} processes can share a device", SsdShare::PARTS_MAX));
    }
    Ok(SsdShare { part, parts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::GIB;

    fn read(text: &str) -> (String, Option<u64>) {
        let ssd = ssd_path(text).unwrap();
        (ssd.path.display().to_string(), ssd.size_bytes)
    }

    #[test]
    fn a_size_is_the_last_piece_if_it_reads_as_one() {
        assert_eq!(read("/d/f:9G"), ("/d/f".to_string(), Some(9 * GIB)));
        assert_eq!(read("/dev/nvme0n1"), ("/dev/nvme0n1".to_string(), None));
        assert_eq!(read("/d/a:b/f"), ("/d/a:b/f".to_string(), None));
        assert_eq!(read("/d/a:b:2t"), ("/d/a:b".to_string(), Some(2048 * GIB)));
        assert_eq!(read("/d/a:12:1g"), ("/d/a:12".to_string(), Some(GIB)));
    }

    #[test]
    fn a_size_that_is_too_large_is_no_part_of_the_path() {
        for text in ["/d/f:99999999999t", "/d/f:99999999999999999999999", "/d/f:20000p"] {
            assert!(ssd_path(text).unwrap_err().contains("larger than any size"), "{text}");
        }
        assert_eq!(read("/d/f:12x"), ("/d/f:12x".to_string(), None));
    }

    #[test]
    fn a_missing_path_or_a_tiny_size_is_refused() {
        assert!(ssd_path("").unwrap_err().contains("no path"));
        assert!(ssd_path(":1g").unwrap_err().contains("no path"));
        assert!(ssd_path("/dev/disk:7").unwrap_err().contains("PATH:SIZE"));
        assert!(ssd_path("/d/f:0").is_err());
    }

    #[test]
    fn ext_path_needs_a_size_and_drops_the_bucket() {
        assert_eq!(ext_path("/data/file:9G"), Ok("/data/file:9G"));
        assert_eq!(ext_path("/data/file:64m:lowttl"), Ok("/data/file:64m"));
        assert!(ext_path("/data/file").unwrap_err().contains("size"));
        assert!(ext_path("/data/file:90000000").unwrap_err().contains("unit"));
        assert!(ext_path("/data/file:9G:else").is_err());
    }

    #[test]
    fn shares_are_counted_from_one() {
        assert_eq!(ssd_share("3/8"), Ok(SsdShare { part: 3, parts: 8 }));
        for text in ["0/8", "9/8", "8", "a/b", "1/0", "", "1/2/3", "-1/2"] {
            assert!(ssd_share(text).is_err(), "{text}");
        }
        assert!(ssd_share("1/2000").is_err());
    }
}
