//! Parses the file of users, and finds the user of a login.
//!
//! ```text
//! ops:a password              memcached's line: user, colon, password; this one may do everything
//! [write shop%3A]             from here on: stores and reads, keys that begin with "shop:" only
//! web:another one
//! [read]
//! dashboard:a third
//! ```
//!
//! A line with a colon means what it means to memcached. A line that opens a section has none, so memcached refuses a
//! file with sections instead of giving its users every right (docs/decisions/0013-users-and-their-roles.md).

use std::sync::Arc;

use larder_protocol::Limits;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::rights::{Rights, Role};

/// The most users; memcached has 8.
pub(super) const USERS_MAX: usize = 1000;
/// The longest line, in bytes; memcached's is 255. Any wire can send what fits.
pub(super) const LINE_BYTES_MAX: usize = 1000;
const _: () = assert!(2 * LINE_BYTES_MAX < Limits::MEMCACHED.login_bytes_max);

/// A user. The password is kept as a digest only: the memory of the daemon holds no passwords, and all comparisons have
/// the same length.
struct User {
    digest: [u8; 32],
    rights: Arc<Rights>,
}

/// All users; empty by default.
#[derive(Default)]
pub(super) struct Table {
    users: Vec<User>,
    /// The number of the first line whose user begins with `#`. To memcached that is a name like any other, and a line
    /// `# comment` without a colon is refused.
    commented_line: Option<usize>,
}

fn digest(user: &[u8], password: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // The length tells where the user ends.
    hasher.update((user.len() as u64).to_le_bytes());
    hasher.update(user);
    hasher.update(password);
    hasher.finalize().into()
}

impl Table {
    /// Reads the lines of a file. A user may stand there several times, with a password each.
    ///
    /// # Errors
    /// The first line that is wrong, and why. It shows nothing of the line, which may be a password.
    pub(super) fn parse(text: &[u8]) -> Result<Table, String> {
        let (mut users, mut commented_line) = (Vec::new(), None);
        let mut rights = Arc::new(Rights::admin());
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let wrong = |why: &str| format!("line {}: {why}", at + 1);
            if line.is_empty() {
                continue;
            }
            if line.first() == Some(&b'[') {
                rights = Arc::new(section(line).map_err(wrong)?);
                continue;
            }
            let (user, password) = credentials(line).map_err(wrong)?;
            if users.len() == USERS_MAX {
                return Err(wrong("there are more than 1,000 users"));
            }
            let digest = digest(user, password);
            if users.iter().any(|other: &User| other.digest == digest) {
                return Err(wrong("this user stands above with the same password; leave one of them out"));
            }
            users.push(User { digest, rights: rights.clone() });
            if user.first() == Some(&b'#') {
                commented_line.get_or_insert(at + 1);
            }
        }
        if users.is_empty() {
            return Err("there is no user in it; write lines of the form user:password".into());
        }
        Ok(Table { users, commented_line })
    }

    pub(super) fn users(&self) -> usize {
        self.users.len()
    }

    /// Returns the number of the first line that looks like a comment and lets a user in.
    pub(super) fn commented_line(&self) -> Option<usize> {
        self.commented_line
    }

    /// Returns the rights of the user with these credentials. Each user is compared, and each comparison takes the same
    /// time.
    pub(super) fn check(&self, user: &[u8], password: &[u8]) -> Option<Arc<Rights>> {
        let digest = digest(user, password);
        let (mut found, mut place) = (Choice::from(0), 0_u64);
        for (at, user) in self.users.iter().enumerate() {
            let is_this = user.digest.ct_eq(&digest);
            place.conditional_assign(&(at as u64), is_this);
            found |= is_this;
        }
        let user = bool::from(found).then(|| self.users.get(place as usize))??;
        Some(user.rights.clone())
    }
}

/// Reads `user:password`.
fn credentials(line: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    if line.len() > LINE_BYTES_MAX {
        return Err("it has more than 1,000 bytes");
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(
        "it is neither user:password nor a section: [read], [write] or [admin], and a key prefix behind",
    )?;
    let (user, password) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
    if user.is_empty() || password.is_empty() {
        return Err("an empty user or password would let anybody in");
    }
    // Neither wire could send them.
    if user.contains(&b' ') || line.iter().any(|byte| matches!(byte, 0 | b'\r')) {
        return Err("no client can send a user with a blank, or a NUL or carriage return");
    }
    Ok((user, password))
}

/// Reads `[ROLE]` or `[ROLE PREFIX]`.
fn section(line: &[u8]) -> Result<Rights, &'static str> {
    if line.contains(&b':') {
        return Err("a line that begins with [ opens a section; write a colon in its key prefix as %3A");
    }
    let inside = line.strip_prefix(b"[").and_then(|line| line.trim_ascii_end().strip_suffix(b"]"));
    let inside = inside.ok_or("a section is [read], [write] or [admin], with its closing ]")?;
    let mut words = inside.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let role = match words.next() {
        Some(b"read") => Role::Read,
        Some(b"write") => Role::Write,
        Some(b"admin") => Role::Admin,
        _ => return Err("the role of a section is read, write or admin"),
    };
    let prefix = words.next();
    if prefix.is_none() && inside.ends_with(b" ") {
        return Err("the section has a blank, and no key prefix behind it; without both it is for all keys");
    }
    let prefix = decoded(prefix.unwrap_or_default())?;
    if words.next().is_some() {
        return Err("a section has one key prefix; write a blank in it as %20");
    }
    if role == Role::Admin && !prefix.is_empty() {
        return Err("an admin reaches every key, by flush_all for one: leave out the key prefix");
    }
    Ok(Rights::new(role, &prefix))
}

/// Decodes `%` and two hexadecimal digits, as `lru_crawler metadump` writes keys.
fn decoded(mut text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::new();
    while let Some((first, rest)) = text.split_first() {
        text = rest;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, rest) = rest.split_at_checked(2).ok_or(BAD_ESCAPE)?;
        let byte = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
        bytes.push(byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(BAD_ESCAPE)?);
        text = rest;
    }
    Ok(bytes)
}

const BAD_ESCAPE: &str = "behind % there must be two hexadecimal digits; % itself is %25";

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(text: &str, user: &str, password: &str) -> Option<Rights> {
        let table = Table::parse(text.as_bytes()).expect("a valid file");
        table.check(user.as_bytes(), password.as_bytes()).map(|rights| (*rights).clone())
    }

    #[test]
    fn memcacheds_file_means_what_it_means_to_memcached() {
        let text = "foo:bar\nbaaaz:quux\r\ncolon:a:b: c \nlast:line";
        for (user, password) in [("foo", "bar"), ("baaaz", "quux"), ("colon", "a:b: c "), ("last", "line")] {
            assert_eq!(rights(text, user, password), Some(Rights::admin()), "{user}");
        }
        for (user, password) in
            [("foo", "ba"), ("foo", "barr"), ("fo", "obar"), ("foob", "ar"), ("", ""), ("quux", "bar")]
        {
            assert_eq!(rights(text, user, password), None, "{user}");
        }
    }

    #[test]
    fn a_user_behind_a_number_sign_is_let_in_as_by_memcached_and_warned_of() {
        let text = "ops:x\n\n#old:secret\n#older:y\n";
        assert_eq!(rights(text, "#old", "secret"), Some(Rights::admin()));
        assert_eq!(rights(text, "old", "secret"), None);
        let line = |text: &str| Table::parse(text.as_bytes()).ok().and_then(|table| table.commented_line());
        assert_eq!((line(text), line("a#b:x\nb:#\n")), (Some(3), None));
    }

    #[test]
    fn a_user_may_have_two_passwords_while_one_is_replaced() {
        let text = "app:old\napp:new\n";
        assert!(rights(text, "app", "old").is_some() && rights(text, "app", "new").is_some());
    }

    #[test]
    fn a_section_whose_prefix_was_left_empty_is_refused() {
        for text in ["[write ]\nweb:pass\n", "[ read  ]\nweb:pass\n"] {
            let why = Table::parse(text.as_bytes()).err().unwrap_or_default();
            assert!(why.starts_with("line 1: the section has a blank"), "{why}");
        }
        let twice = Table::parse(b"ops:a\n[read]\nops:a\n").err().unwrap_or_default();
        assert!(twice.starts_with("line 3: this user stands above"), "{twice}");
    }

    #[test]
    fn a_section_gives_those_behind_it_their_rights() {
        let text =
            "ops:1\n[write shop%3A]\nweb:2\n\n[read]\nseen:3\n[ read  %20%25x ]\nodd:4\n[admin]\nroot:5\n";
        assert_eq!(rights(text, "ops", "1"), Some(Rights::admin()));
        assert_eq!(rights(text, "web", "2"), Some(Rights::new(Role::Write, b"shop:")));
        assert_eq!(rights(text, "seen", "3"), Some(Rights::new(Role::Read, b"")));
        assert_eq!(rights(text, "odd", "4"), Some(Rights::new(Role::Read, b" %x")));
        assert_eq!(rights(text, "root", "5"), Some(Rights::admin()));
    }

    #[test]
    fn a_line_that_is_neither_is_refused_without_being_shown() {
        let long = format!("u:{}", "p".repeat(1000));
        let many: String = (0..1001).map(|at| format!("u{at}:p\n")).collect();
        for (text, why) in [
            ("", "no user"),
            ("\n\n", "no user"),
            ("[read]\n", "no user"),
            ("a:b\nsecret\n", "line 2: it is neither"),
            ("# a comment\n", "line 1: it is neither"),
            (":secret\n", "empty user or password"),
            ("secret:\n", "empty user or password"),
            ("a b:secret", "a blank"),
            ("a:se\0cret", "NUL"),
            ("[write shop:]\na:secret", "line 1: a line that begins with [ opens a section; write a colon"),
            ("[write", "closing ]"),
            ("[owner]", "read, write or admin"),
            ("[write a b]", "one key prefix"),
            ("[write %3]", "two hexadecimal"),
            ("[write %+1]", "two hexadecimal"),
            ("[admin x]", "leave out the key prefix"),
            (long.as_str(), "more than 1,000 bytes"),
            (many.as_str(), "line 1001: there are more than 1,000"),
        ] {
            let problem = Table::parse(text.as_bytes()).err().expect("it is refused");
            assert!(problem.contains(why) && !problem.contains("secret"), "{text:.40}: {problem}");
        }
    }

    #[test]
    fn as_many_users_as_are_allowed_are_all_let_in() {
        let many: String = (0..USERS_MAX).map(|at| format!("u{at}:p{at}\n")).collect();
        let table = Table::parse(many.as_bytes()).expect("a valid file");
        assert_eq!(table.users(), USERS_MAX);
        for at in [0, 1, 7, 8, 255, 256, 999] {
            assert!(table.check(format!("u{at}").as_bytes(), format!("p{at}").as_bytes()).is_some());
            assert!(table.check(format!("u{at}").as_bytes(), b"p").is_none());
        }
    }

    #[test]
    fn an_empty_table_lets_nobody_in() {
        assert!(Table::default().check(b"", b"").is_none());
    }
}
