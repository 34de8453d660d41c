//! An answer, and its bytes.

use std::io::Write;
use std::time::SystemTime;

/// The outcome of a request, by HTTP's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok = 200,
    BadRequest = 400,
    Unauthorized = 401,
    Forbidden = 403,
    NotFound = 404,
    MethodNotAllowed = 405,
    RequestTimeout = 408,
    /// The request is for another host than this one.
    Misdirected = 421,
    FieldsTooLarge = 431,
    Unavailable = 503,
}

impl Status {
    fn phrase(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::BadRequest => "Bad Request",
            Status::Unauthorized => "Unauthorized",
            Status::Forbidden => "Forbidden",
            Status::NotFound => "Not Found",
            Status::MethodNotAllowed => "Method Not Allowed",
            Status::RequestTimeout => "Request Timeout",
            Status::Misdirected => "Misdirected Request",
            Status::FieldsTooLarge => "Request Header Fields Too Large",
            Status::Unavailable => "Service Unavailable",
        }
    }

    /// Returns a field that belongs to the status.
    fn field(self) -> &'static str {
        match self {
            // The second is for browsers, which ask for a password.
            Status::Unauthorized => {
                "WWW-Authenticate: Bearer realm=\"larder\"\r\n\
                 WWW-Authenticate: Basic realm=\"larder: the token as password\", charset=\"UTF-8\"\r\n"
            }
            Status::MethodNotAllowed => "Allow: GET, HEAD\r\n",
            _ => "",
        }
    }
}

pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const JSON: &str = "application/json";
pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const CSS: &str = "text/css; charset=utf-8";
pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The fields of every answer. Nothing here is for other sites' pages, and nothing is stored.
const SAFETY: &str = "Cache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Referrer-Policy: no-referrer\r\n\
    X-Content-Type-Options: nosniff\r\n";

/// An answer.
#[derive(Debug)]
pub(super) struct Response {
    pub status: Status,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Response {
    pub(super) fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: Status::Ok, content_type, body: body.into() }
    }

    /// Returns an answer of one line. It repeats nothing of the request.
    pub(super) fn line(status: Status, line: &str) -> Response {
        Response { status, content_type: TEXT, body: format!("{line}\n").into_bytes() }
    }

    /// Returns the answer to a request that is refused.
    pub(super) fn refusal(status: Status) -> Response {
        Response::line(status, status.phrase())
    }

    /// Appends its bytes to `out`; without the body if only the head was asked for.
    pub(super) fn encode(&self, out: &mut Vec<u8>, head_alone: bool, keeps_alive: bool) {
        let (status, date) = (self.status, httpdate::fmt_http_date(SystemTime::now()));
        let _ = write!(
            out,
            "HTTP/1.1 {} {}\r\nDate: {date}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{SAFETY}\
             Connection: {}\r\n\r\n",
            status as u16,
            status.phrase(),
            self.content_type,
            self.body.len(),
            status.field(),
            if keeps_alive { "keep-alive" } else { "close" },
        );
        if !head_alone {
            out.extend_from_slice(&self.body);
        }
    }
}
