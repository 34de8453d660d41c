//! Decides who may have an answer. Host names are checked because a page of any site can make a browser send
//! requests to loopback, under a name that its owner lets resolve to it (DNS rebinding).

use std::net::IpAddr;
use std::path::Path;

use subtle::ConstantTimeEq;

use super::State;
use super::request::{Method, Request};
use super::response::Status;
use crate::small_file;

/// Bytes of a token. A shorter one could be guessed.
const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 16..=512;

/// The most bytes of the file, which may hold more lines.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The paths of probes, which carry no token.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Returns the token in a file: its first line.
///
/// # Errors
/// The problem and its remedy.
pub fn read_token(path: &Path) -> Result<String, String> {
    let file = small_file::read(path, FILE_BYTES_MAX)?;
    let line = file.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let token = str::from_utf8(line.trim_ascii()).unwrap_or_default();
    if !TOKEN_BYTES.contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let (least, most) = (TOKEN_BYTES.start(), TOKEN_BYTES.end());
        return Err(format!(
            "its first line has to be a token of {least} to {most} letters, digits and signs"
        ));
    }
    Ok(token.to_string())
}

/// Returns why a request is refused, if it is.
pub(super) fn refuse(state: &State, request: &Request) -> Option<Status> {
    let is_for_us = |host: &String| is_own(&state.options.hosts, host);
    if !state.is_unix && !request.host.as_ref().is_none_or(is_for_us) {
        return Some(Status::Misdirected);
    }
    if request.is_cross_site {
        return Some(Status::Forbidden);
    }
    if request.method == Method::Other {
        return Some(Status::MethodNotAllowed);
    }
    let file = state.options.token_file.as_deref()?;
    if OPEN_PATHS.contains(&request.path.as_str()) || has_token(file, request.token.as_deref()) {
        return None;
    }
    Some(Status::Unauthorized)
}

/// Returns whether a `Host` names this host: by an address, as `localhost`, or by one of `names`.
fn is_own(names: &[String], host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => (address, Some(rest.strip_prefix(':').unwrap_or(rest))),
        None => host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if !port.is_none_or(is_port) {
        return false;
    }
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns whether the token of a request is that of the file, in a time that does not depend on how much of it is
/// right. A file that cannot be read lets nobody in.
fn has_token(file: &Path, given: Option<&str>) -> bool {
    let Some(given) = given else { return false };
    match read_token(file) {
        Ok(token) => token.as_bytes().ct_eq(given.as_bytes()).into(),
        Err(what) => {
            tracing::warn!("--http-token-file {}: {what}", file.display());
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_known_name() {
        let names = ["cache.lan".to_string()];
        let own = ["127.0.0.1:9150", "10.1.2.3", "[::1]:9150", "[::1]", "LocalHost:1", "Cache.lan:9150"];
        for own in own {
            assert!(is_own(&names, own), "{own}");
        }
        let foreign = ["", "evil.example:9150", "127.0.0.1.evil.example", "[evil]", "localhost.evil:80"];
        let beside = ["[::1].evil.example", "localhost:evil", "127.0.0.1:80x", "localhost:99999", "[::1]x"];
        for foreign in foreign.iter().chain(&beside) {
            assert!(!is_own(&names, foreign), "{foreign}");
        }
    }

    #[test]
    fn a_token_is_compared_as_a_whole_and_read_again_each_time() {
        let path = std::env::temp_dir().join(format!("larder-token-{}", std::process::id()));
        std::fs::write(&path, "0123456789abcdef\nand more\n").expect("room");
        assert!(has_token(&path, Some("0123456789abcdef")));
        for wrong in [None, Some(""), Some("0123456789abcde"), Some("0123456789abcdef0")] {
            assert!(!has_token(&path, wrong), "{wrong:?}");
        }
        std::fs::write(&path, "another-token-of-it\n").expect("room");
        assert!(!has_token(&path, Some("0123456789abcdef")) && has_token(&path, Some("another-token-of-it")));
        std::fs::write(&path, "short\n").expect("room");
        assert!(read_token(&path).expect_err("it is short").contains("16 to 512"));
        std::fs::remove_file(&path).expect("it is there");
        assert!(read_token(Path::new("/dev/zero")).is_err_and(|why| why.contains("no regular file")));
        assert!(!has_token(&path, Some("another-token-of-it")));
    }
}
