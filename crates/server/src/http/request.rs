//! Takes a request from the front of received bytes. Only what an answer depends on is kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::response::Status;

/// The most bytes of a request's line and header fields together.
pub(super) const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The most header fields.
const FIELDS_MAX: usize = 64;

/// A method that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    /// Any other: it is refused, since nothing can be changed here.
    Other,
}

/// A request without a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub method: Method,
    /// Without the query.
    pub path: String,
    /// The value of `Host`.
    pub host: Option<String>,
    /// The value of `Accept`, of several the last.
    pub accept: String,
    /// The token of `Authorization: Bearer`, or the password of `Authorization: Basic`.
    pub token: Option<String>,
    /// Whether a browser asks on behalf of another site's page.
    pub is_cross_site: bool,
    /// Whether the peer wants to send further requests.
    pub keeps_alive: bool,
}

/// What is at the front of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// More has to come.
    Incomplete,
    /// A request of `len` bytes.
    Request { request: Request, len: usize },
    /// No request; the connection ends with this status.
    Refused(Status),
}

/// Parses the front of `input`.
pub(super) fn parse(input: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    let seen = &input[..input.len().min(REQUEST_BYTES_MAX)];
    match head.parse(seen) {
        Ok(httparse::Status::Complete(len)) => match request(&head) {
            Ok(request) => Parsed::Request { request, len },
            Err(status) => Parsed::Refused(status),
        },
        Ok(httparse::Status::Partial) if input.len() < REQUEST_BYTES_MAX => Parsed::Incomplete,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            Parsed::Refused(Status::FieldsTooLarge)
        }
        Err(_) => Parsed::Refused(Status::BadRequest),
    }
}

fn request(head: &httparse::Request<'_, '_>) -> Result<Request, Status> {
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => Method::Other,
    };
    let target = head.path.unwrap_or_default();
    // Another form of target would override the host.
    if !target.starts_with('/') {
        return Err(Status::BadRequest);
    }
    let is_newest = head.version == Some(1);
    let mut request = Request {
        method,
        path: target.split(['?', '#']).next().unwrap_or_default().to_string(),
        host: None,
        accept: String::new(),
        token: None,
        is_cross_site: false,
        keeps_alive: is_newest,
    };
    for field in head.headers.iter() {
        let value = std::str::from_utf8(field.value).map_err(|_| Status::BadRequest)?.trim();
        request.note(field.name, value)?;
    }
    if is_newest && request.host.is_none() {
        return Err(Status::BadRequest);
    }
    Ok(request)
}

impl Request {
    /// Takes note of a header field.
    fn note(&mut self, name: &str, value: &str) -> Result<(), Status> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            // Of two hosts it would be unknown which one a proxy in front has looked at.
            if self.host.replace(value.to_string()).is_some() {
                return Err(Status::BadRequest);
            }
        } else if is("accept") {
            self.accept = value.to_string();
        } else if is("authorization") {
            self.token = value.split_once(' ').and_then(|(scheme, given)| token(scheme, given.trim()));
        } else if is("sec-fetch-site") {
            self.is_cross_site = value.eq_ignore_ascii_case("cross-site");
        } else if is("connection") {
            let asks = |word: &str| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
            self.keeps_alive = !asks("close") && (self.keeps_alive || asks("keep-alive"));
        } else if is("transfer-encoding") || is("content-length") && value != "0" {
            // A body would be taken for the next request.
            return Err(Status::BadRequest);
        }
        Ok(())
    }
}

/// Returns the token in the credentials of a scheme. A browser sends what it asked for as a password.
fn token(scheme: &str, credentials: &str) -> Option<String> {
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(credentials.to_string());
    }
    let login = STANDARD.decode(credentials).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let (_, password) = std::str::from_utf8(&login).ok()?.split_once(':')?;
    Some(password.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Request {
        match parse(text.as_bytes()) {
            Parsed::Request { request, len } if len == text.len() => request,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn what_an_answer_depends_on_is_taken() {
        let request = parsed(
            "GET /metrics?a=b HTTP/1.1\r\nhost: localhost:9150\r\nAuthorization: bearer  secret\r\n\
             ACCEPT: text/plain\r\nSec-Fetch-Site: cross-site\r\n\r\n",
        );
        assert_eq!((request.method, request.path.as_str()), (Method::Get, "/metrics"));
        assert_eq!(request.host.as_deref(), Some("localhost:9150"));
        assert_eq!((request.token.as_deref(), request.accept.as_str()), (Some("secret"), "text/plain"));
        assert!(request.is_cross_site && request.keeps_alive);
    }

    #[test]
    fn a_token_is_a_bearers_or_the_password_of_a_login() {
        let token =
            |given| parsed(&format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {given}\r\n\r\n")).token;
        assert_eq!(token("Bearer a:b").as_deref(), Some("a:b"));
        assert_eq!(token("basic YTpiOmM=").as_deref(), Some("b:c"));
        assert_eq!(token("Basic OnNlY3JldA==").as_deref(), Some("secret"));
        for none in ["Basic", "Basic YTpiOmM", "Basic YWI=", "Basic /zov", "Digest YTpiOmM=", "YTpiOmM="] {
            assert_eq!(token(none), None, "{none}");
        }
    }

    #[test]
    fn connections_stay_open_as_their_version_and_their_word_say() {
        let keeps = |version, word| parsed(&format!("GET / {version}\r\nhost: a\r\n{word}\r\n")).keeps_alive;
        assert!(keeps("HTTP/1.1", ""));
        assert!(!keeps("HTTP/1.1", "Connection: Close\r\n"));
        assert!(!keeps("HTTP/1.0", ""));
        assert!(keeps("HTTP/1.0", "Connection: keep-alive\r\n"));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "set k 0 0 1\r\nx\r\n",
        ] {
            assert_eq!(parse(text.as_bytes()), Parsed::Refused(Status::BadRequest), "{text:?}");
        }
    }

    #[test]
    fn a_request_has_a_bound() {
        let long = format!("GET / HTTP/1.1\r\nHost: {}", "a".repeat(REQUEST_BYTES_MAX));
        assert_eq!(parse(&long.as_bytes()[..REQUEST_BYTES_MAX - 1]), Parsed::Incomplete);
        assert_eq!(parse(long.as_bytes()), Parsed::Refused(Status::FieldsTooLarge));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELDS_MAX + 1));
        assert_eq!(parse(many.as_bytes()), Parsed::Refused(Status::FieldsTooLarge));
    }
}
