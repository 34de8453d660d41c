//! The times of requests, from a daemon's metrics over HTTP.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::exit::{Failure, Outcome};

/// The port of `--http` where an address has none.
const PORT_DEFAULT: u16 = 9150;
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes that an answer may have; a daemon's have some tens of thousands.
const ANSWER_BYTES_MAX: u64 = 8 << 20;
const SERIES: &str = "larder_request_duration_seconds_bucket{class=\"";

/// Where a daemon serves HTTP, if it does.
#[derive(Clone, Debug, Args)]
pub struct HttpSource {
    /// Read times of requests from the daemon's --http: HOST[:PORT] or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// The file with the token of its --http-token-file
    #[arg(long, value_name = "FILE", requires = "http")]
    http_token_file: Option<PathBuf>,
}

/// The times of requests since the daemon's start, or between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// For each class, the numbers of requests that took at most so many microseconds.
    classes: BTreeMap<String, Vec<(f64, u64)>>,
}

impl HttpSource {
    /// Asks for the times of requests; `None` without `--http`.
    ///
    /// # Errors
    /// The daemon cannot be asked.
    pub fn latencies(&self) -> Outcome<Option<Latencies>> {
        let Some(address) = &self.http else { return Ok(None) };
        let failed = |problem: String| Failure::Failed(format!("--http {address}: {problem}"));
        let token = self.http_token_file.as_ref().map(|path| {
            let token = std::fs::read_to_string(path);
            token.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
        });
        let token = token.transpose()?;
        let text = get(address, token.as_deref()).map_err(|error| failed(error.to_string()))?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) != Some("200") {
            return Err(failed(format!("it answers {status:?}; a token may be missing")));
        }
        Ok(Some(Latencies::of(body)))
    }
}

/// Returns the answer to a request for the metrics, with its head.
fn get(address: &str, token: Option<&str>) -> std::io::Result<String> {
    let authorization =
        token.map(|token| format!("Authorization: Bearer {}\r\n", token.trim())).unwrap_or_default();
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n");
    match address.strip_prefix("unix:") {
        Some(path) => {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            exchange(socket, &request)
        }
        None => {
            let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            let address = if has_port { address.to_string() } else { format!("{address}:{PORT_DEFAULT}") };
            let none = || std::io::Error::new(std::io::ErrorKind::NotFound, "the host has no address");
            let address = address.to_socket_addrs()?.next().ok_or_else(none)?;
            let socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            exchange(socket, &request)
        }
    }
}

fn exchange(mut socket: impl Read + Write, request: &str) -> std::io::Result<String> {
    socket.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    socket.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

impl Latencies {
    /// Reads them from the text of metrics.
    fn of(metrics: &str) -> Latencies {
        let mut latencies = Latencies::default();
        for line in metrics.lines() {
            let Some((class, rest)) = line.strip_prefix(SERIES).and_then(|rest| rest.split_once('"')) else {
                continue;
            };
            let Some((bound, count)) = rest.strip_prefix(",le=\"").and_then(|rest| rest.split_once("\"} "))
            else {
                continue;
            };
            let bound = if bound == "+Inf" { Ok(f64::INFINITY) } else { bound.parse::<f64>() };
            if let (Ok(bound), Ok(count)) = (bound, count.parse::<f64>()) {
                latencies.classes.entry(class.to_string()).or_default().push((bound * 1e6, count as u64));
            }
        }
        latencies
    }

    /// Returns those since an earlier moment. A daemon that was started again counts from 0.
    pub fn since(&self, before: &Latencies) -> Latencies {
        let mut since = self.clone();
        for (class, buckets) in &mut since.classes {
            let Some(before) = before.classes.get(class) else { continue };
            let is_restarted = buckets.iter().zip(before).any(|(now, before)| now.1 < before.1);
            for (now, before) in buckets.iter_mut().zip(before).filter(|_| !is_restarted) {
                now.1 -= before.1;
            }
        }
        since
    }

    /// Returns the bound of the bucket that 99 of 100 requests of a class took at most, in microseconds; `None` if
    /// there were no requests.
    pub fn p99_us(&self, class: &str) -> Option<f64> {
        let buckets = self.classes.get(class)?;
        let all = buckets.last().map(|(_, count)| *count).filter(|all| *all > 0)?;
        let wanted = (all as f64 * 0.99).ceil() as u64;
        buckets.iter().find(|(_, count)| *count >= wanted).map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(counts: [u64; 3]) -> String {
        let [one, two, all] = counts;
        format!(
            "# TYPE larder_request_duration_seconds histogram\n\
             larder_request_duration_seconds_bucket{{class=\"ram\",le=\"0.000001\"}} {one}\n\
             larder_request_duration_seconds_bucket{{class=\"ram\",le=\"0.000002\"}} {two}\n\
             larder_request_duration_seconds_bucket{{class=\"ram\",le=\"+Inf\"}} {all}\n\
             larder_request_duration_seconds_count{{class=\"ram\"}} {all}\n"
        )
    }

    #[test]
    fn a_quantile_is_of_the_requests_between() {
        let (before, now) =
            (Latencies::of(&metrics([1000, 1000, 1000])), Latencies::of(&metrics([1001, 1100, 1100])));
        assert_eq!(now.since(&before).p99_us("ram"), Some(2.0));
        assert_eq!(before.p99_us("ram"), Some(1.0));
        assert_eq!(now.since(&now).p99_us("ram"), None);
        assert_eq!(now.p99_us("ssd"), None);
        assert_eq!(before.since(&now), before);
    }
}
