//! A login: the first request of a connection to a server that asks for a name and a password.

use super::{Protocol, binary, line, resp, text};
use std::fmt;

/// Bytes of a name and of a password at most: longer ones fit no server's login.
const BYTES_MAX: usize = 255;
/// The key that a login over the text protocol is stored under; servers ignore it.
const KEY: &str = "login";

/// A name and a password. Neither is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: String,
    password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}

impl Login {
    /// Reads the first line of a file: `user:password`, as in a memcached's file of users. Without a user, redis takes
    /// its default one.
    ///
    /// # Errors
    /// The line is not of that form, in words that do not repeat it.
    pub fn parse(content: &str) -> Result<Self, String> {
        let first = content.lines().next().unwrap_or_default();
        let (user, password) = first.split_once(':').ok_or("the first line is not USER:PASSWORD")?;
        let is_long = user.len() > BYTES_MAX || password.len() > BYTES_MAX;
        if password.is_empty() || is_long || first.contains(['\0', '\r']) || user.contains(' ') {
            let message = "a name has no spaces, and a password 1 to 255 bytes without control characters";
            return Err(message.to_string());
        }
        Ok(Self { user: user.to_string(), password: password.to_string() })
    }

    /// Returns the bytes of the request.
    pub fn request(&self, protocol: Protocol) -> Vec<u8> {
        let Self { user, password } = self;
        let mut out = Vec::new();
        match protocol {
            Protocol::Text | Protocol::Meta => text::login(&mut out, KEY, &format!("{user} {password}")),
            Protocol::Binary => binary::login(&mut out, &format!("\0{user}\0{password}")),
            Protocol::Resp2 if user.is_empty() => resp::command(&mut out, &["AUTH", password]),
            Protocol::Resp2 => resp::command(&mut out, &["AUTH", user, password]),
        }
        out
    }

    /// Returns whether the server let us in, with its words if it did not; none while its reply is not whole.
    pub fn reply(protocol: Protocol, input: &[u8]) -> Option<Result<(), String>> {
        if protocol == Protocol::Binary && input.first() == Some(&0x81) {
            return binary::login_reply(input);
        }
        let is_in: &[u8] = if protocol == Protocol::Resp2 { b"+OK" } else { b"STORED" };
        match line(input) {
            Ok(Some((line, _))) if line == is_in => Some(Ok(())),
            Ok(Some((line, _))) => Some(Err(line.escape_ascii().to_string())),
            Ok(None) => None,
            Err(garbage) => Some(Err(garbage.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_sent_as_each_protocol_asks_for_it() {
        let login = Login::parse("me:p:w d\nother:x\n").expect("it is one");
        assert_eq!(login.request(Protocol::Text), b"set login 0 0 8\r\nme p:w d\r\n");
        assert_eq!(login.request(Protocol::Resp2), b"*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$5\r\np:w d\r\n");
        let sasl = login.request(Protocol::Binary);
        assert_eq!((sasl[1], &sasl[24..]), (0x21, &b"PLAIN\0me\0p:w d"[..]));
        let default = Login::parse(":pw").expect("redis has a default user");
        assert_eq!(default.request(Protocol::Resp2), b"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n");
    }

    #[test]
    fn only_the_protocols_own_consent_lets_us_in() {
        for (protocol, consent) in [(Protocol::Text, &b"STORED\r\n"[..]), (Protocol::Resp2, b"+OK\r\n")] {
            assert_eq!(Login::reply(protocol, consent), Some(Ok(())));
            assert_eq!(Login::reply(protocol, &consent[..4]), None);
            for refusal in
                [&b"CLIENT_ERROR authentication failure\r\n"[..], b"-WRONGPASS x\r\n", b"ERROR\r\n"]
            {
                assert!(Login::reply(protocol, refusal).is_some_and(|reply| reply.is_err()));
            }
        }
        let mut reply = [0; 24];
        (reply[0], reply[1]) = (0x81, 0x21);
        assert_eq!(Login::reply(Protocol::Binary, &reply), Some(Ok(())));
        reply[7] = 0x20;
        assert!(Login::reply(Protocol::Binary, &reply).is_some_and(|reply| reply.is_err()));
    }

    #[test]
    fn nothing_of_a_login_is_printed() {
        for wrong in ["geheim", "a b:geheim", "geheim:"] {
            assert!(Login::parse(wrong).is_err_and(|message| !message.contains("geheim")), "{wrong}");
        }
        let login = Login::parse("me:geheim").expect("it is one");
        assert_eq!(format!("{login:?}"), "Login(..)");
    }
}
