//! A page to cache: as long as the document's, and made here.

/// The length of the document's page.
pub const BYTES: usize = 28_579;

const WORDS: [&str; 12] =
    ["cache", "page", "reads", "writes", "a", "the", "of", "miss", "tier", "value", "fills", "hit"];

/// Text with some markup, always the same.
pub fn page() -> String {
    let mut page = String::from("<!DOCTYPE html>\n<html><head><title>A page</title></head><body>\n");
    let mut paragraph = 0usize;
    while page.len() < BYTES {
        paragraph += 1;
        page += &format!("<h2>Part {paragraph}</h2>\n<p>");
        for word in 0..60 {
            page += WORDS[(word * 7 + paragraph * 5 + word * word) % WORDS.len()];
            page += if word % 12 == 11 { ".\n" } else { " " };
        }
        page += "</p>\n";
    }
    page.truncate(BYTES);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_long_as_the_documents() {
        assert_eq!(page().len(), BYTES);
        assert!(page().is_ascii());
    }
}
