//! A command line in one string, split into words as a shell would, without running anything.

/// Splits at blanks; quotes and backslashes keep blanks as a POSIX shell does. Nothing is expanded.
///
/// # Errors
/// A quote has no end.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err(format!("`{line}`: a quote ' has no end")),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err(format!("`{line}`: a quote \" has no end")),
                        },
                        Some(c) => word.push(c),
                        None => return Err(format!("`{line}`: a quote \" has no end")),
                    }
                }
            }
            '\\' => match chars.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err(format!("`{line}`: ends with a backslash")),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// A word that a POSIX shell reads as it is.
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let good: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  ssh  -o BatchMode=yes ", &["ssh", "-o", "BatchMode=yes"]),
            ("ssh -o 'ProxyCommand=nc %h 22'", &["ssh", "-o", "ProxyCommand=nc %h 22"]),
            (r#"a"b c"d"#, &["ab cd"]),
            (r#""say \"hi\" \n""#, &[r#"say "hi" \n"#]),
            (r"a\ b '' \'", &["a b", "", "'"]),
        ];
        for (line, want) in good {
            assert_eq!(
                split(line).as_deref(),
                Ok(&want.iter().map(ToString::to_string).collect::<Vec<_>>()[..])
            );
        }
        for bad in ["'a", "\"a", "a\\", "\"a\\"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_quoted_word_comes_back() {
        for word in ["plain", "", "it's", "a b\"c\\d", "''"] {
            assert_eq!(split(&quote(word)), Ok(vec![word.to_string()]));
        }
    }
}
