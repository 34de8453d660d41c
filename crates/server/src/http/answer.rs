//! Maps a request to its answer.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::access::refuse;
use super::request::Request;
use super::response::{CSS, HTML, JSON, Response, SCRIPT, Status, TEXT};
use super::{State, api, page, segments};
use crate::metrics::{self, Format};
use crate::shared::Shared;

/// The answer where parts of keys would be shown to any peer.
const NEEDS_TOKEN: &str =
    "parts of keys are shown only with a token: start the daemon with --http-token-file";

/// Returns the answer to a request.
pub(super) fn answer(state: &State, request: &Request) -> Response {
    if let Some(status) = refuse(state, request) {
        return Response::refusal(status);
    }
    match request.path.as_str() {
        "/" => page_of(state),
        "/page.css" => Response::new(CSS, page::STYLE),
        "/page.js" => Response::new(SCRIPT, page::SCRIPT),
        "/healthz" => Response::new(TEXT, "ok\n"),
        "/readyz" => readiness(state),
        "/version" => Response::new(JSON, api::version()),
        path => figures(state, path, request),
    }
}

/// Returns whether parts of keys are shown: to peers that have given the token.
fn shows_keys(state: &State) -> bool {
    state.options.token_file.is_some()
}

/// Returns the page for people.
fn page_of(state: &State) -> Response {
    let shows_keys = shows_keys(state);
    match state.shared.get() {
        None => Response { status: Status::Unavailable, ..Response::new(HTML, page::starting()) },
        Some(shared) => {
            let (history, mut findings) = (state.history(), state.findings());
            let checked = findings.recent(shared, Instant::now());
            Response::new(HTML, page::page(shared, &history, checked, shows_keys))
        }
    }
}

/// Returns the answer to a request for figures, of which there are none before the store is open.
fn figures(state: &State, path: &str, request: &Request) -> Response {
    let shared = state.shared.get();
    let json = |render: fn(&Shared) -> String| {
        shared.map_or_else(starting, |shared| Response::new(JSON, render(shared)))
    };
    match path {
        "/metrics" => {
            let format = Format::of_accept(&request.accept);
            let scrape = |shared| metrics::scrape(shared, &state.scrapes, format, shows_keys(state));
            shared.map_or_else(starting, |shared| Response::new(format.content_type(), scrape(shared)))
        }
        "/api/v1/stats" => json(api::stats),
        "/api/v1/latency" => json(api::latency),
        "/api/v1/config" => json(api::config),
        "/api/v1/doctor" => json(api::doctor),
        "/api/v1/mrc" => json(api::mrc),
        "/api/v1/segments" => json(segments::segments),
        "/api/v1/top" | "/api/v1/prefixes" if !shows_keys(state) => {
            Response::line(Status::Forbidden, NEEDS_TOKEN)
        }
        "/api/v1/top" => json(api::top),
        "/api/v1/prefixes" => json(api::prefixes),
        _ => Response::refusal(Status::NotFound),
    }
}

/// Returns whether the daemon serves: it does from the opening of its store until it is told to stop.
fn readiness(state: &State) -> Response {
    match state.shared.get() {
        None => starting(),
        Some(shared) if shared.stopping.load(Relaxed) => Response::line(Status::Unavailable, "stopping"),
        Some(_) => Response::new(TEXT, "ready\n"),
    }
}

fn starting() -> Response {
    Response::line(Status::Unavailable, "starting")
}
