//! JSON, written: objects, strings and lists. The daemon reads none.

/// Returns an object of JSON, whose values are JSON already.
pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let members: Vec<String> =
        members.into_iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
    format!("{{{}}}", members.join(","))
}

/// Returns a string of JSON.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a list of JSON, whose elements are JSON already.
pub fn list(elements: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", elements.into_iter().collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_and_values_are_not() {
        let text = object([("a", quoted("b\"\n")), ("c", list(["1".to_string(), "2".to_string()]))]);
        assert_eq!(text, "{\"a\":\"b\\\"\\u000a\",\"c\":[1,2]}");
    }
}
