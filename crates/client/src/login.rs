//! The user and password that a client authenticates with. They are never shown.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// The most bytes of user, blank and password together; Larder reads no more. memcached reads 255.
const LOGIN_BYTES_MAX: usize = 2048;

/// Why a user and password cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadLogin {
    /// The user is empty or has a blank in it.
    #[error("a user must not be empty or contain a blank")]
    User,
    /// The password is empty.
    #[error("a password must not be empty")]
    Password,
    /// Both together are too long.
    #[error("user and password take {bytes} bytes, more than {LOGIN_BYTES_MAX}")]
    TooLong {
        /// Their length, with the blank between them.
        bytes: usize,
    },
}

/// A user and password, as in the file of a server's option `-Y`. Its text shows the user only.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: Arc<str>,
    message: Arc<[u8]>,
}

impl Login {
    /// Makes a login.
    ///
    /// # Errors
    /// When no server could accept it.
    pub fn new(user: &str, password: &[u8]) -> Result<Login, BadLogin> {
        if user.is_empty() || user.contains(' ') {
            return Err(BadLogin::User);
        }
        if password.is_empty() {
            return Err(BadLogin::Password);
        }
        let message = [user.as_bytes(), b" ", password].concat();
        if message.len() > LOGIN_BYTES_MAX {
            return Err(BadLogin::TooLong { bytes: message.len() });
        }
        Ok(Login { user: user.into(), message: message.into() })
    }

    /// Returns the user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns what a server expects: user, blank, password.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let login = Login::new("shop", b"hunter2").expect("it is good");
        assert_eq!(format!("{login:?}"), "Login { user: \"shop\", .. }");
        assert_eq!(login.message(), b"shop hunter2");
    }

    #[test]
    fn what_no_server_accepts_is_refused() {
        assert_eq!(Login::new("", b"p"), Err(BadLogin::User));
        assert_eq!(Login::new("a b", b"p"), Err(BadLogin::User));
        assert_eq!(Login::new("a", b""), Err(BadLogin::Password));
        assert!(Login::new("a", b"with blanks and \xff").is_ok());
        assert!(Login::new("a", &[b'p'; 2046]).is_ok());
        assert_eq!(Login::new("a", &[b'p'; 2047]), Err(BadLogin::TooLong { bytes: 2049 }));
    }
}
