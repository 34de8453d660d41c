//! A page to cache: as long as the document's or of any other length, and made here.

/// The length of the document's page.
pub const BYTES: u32 = 28_579;

const WORDS: [&str; 12] =
    ["cache", "page", "reads", "writes", "a", "the", "of", "miss", "tier", "value", "fills", "hit"];

/// Text with some markup, always the same for a length.
pub fn page(bytes: u32) -> String {
    let bytes = bytes as usize;
    let mut page = String::from("<!DOCTYPE html>\n<html><head><title>A page</title></head><body>\n");
    let mut paragraph = 0usize;
    while page.len() < bytes {
        paragraph += 1;
        page += &format!("<h2>Part {paragraph}</h2>\n<p>");
        for word in 0..60 {
            page += WORDS[(word * 7 + paragraph * 5 + word * word) % WORDS.len()];
            page += if word % 12 == 11 { ".\n" } else { " " };
        }
        page += "</p>\n";
    }
    page.truncate(bytes);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_long_as_it_should_be() {
        for bytes in [0, 1, 100, BYTES, 640 << 10] {
            assert_eq!(page(bytes).len(), bytes as usize);
        }
        assert!(page(BYTES).is_ascii());
    }
}
