//! A line as tokens: what stands between blanks. Only the space separates; a tab is a byte like any other.

use memchr::{memchr, memrchr};

/// The tokens of a line, front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// The tokens of `line`, which has lost its line end.
    #[inline]
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Tokens { rest: line }
    }

    /// What has not been handed out yet, from its first token on.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        trim_start(self.rest)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let line = trim_start(self.rest);
        if line.is_empty() {
            self.rest = line;
            return None;
        }
        let end = memchr(b' ', line).unwrap_or(line.len());
        let (token, rest) = line.split_at_checked(end)?;
        self.rest = rest;
        Some(token)
    }
}

/// Without the blanks in front.
#[inline]
pub(crate) fn trim_start(mut line: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = line {
        line = rest;
    }
    line
}

/// Without the blanks at the end.
#[inline]
pub(crate) fn trim_end(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b' '] = line {
        line = rest;
    }
    line
}

/// The last token; empty when there is none.
#[inline]
pub(crate) fn last(line: &[u8]) -> &[u8] {
    let line = trim_end(line);
    let start = memrchr(b' ', line).map_or(0, |blank| blank + 1);
    line.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_of_any_number_separate() {
        let words = |line| Tokens::new(line).collect::<Vec<&[u8]>>();
        assert_eq!(words(b""), Vec::<&[u8]>::new());
        assert_eq!(words(b"   "), Vec::<&[u8]>::new());
        assert_eq!(words(b"  get  a\tb   c "), [&b"get"[..], b"a\tb", b"c"]);
        assert_eq!(last(b"set a 0 0 2 noreply  "), b"noreply");
        assert_eq!(last(b"noreply"), b"noreply");
        assert_eq!(last(b"  "), b"");
    }

    #[test]
    fn rest_starts_at_a_token() {
        let mut tokens = Tokens::new(b"get   a b ");
        tokens.next();
        assert_eq!(tokens.rest(), b"a b ");
    }
}
