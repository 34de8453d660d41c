//! Limits the rate of a user's requests, with denials in shared memory: give it a server, such as `127.0.0.1:11211`.

use std::error::Error;
use std::time::Duration;

use larder_client::limit::{Algorithm, Limit, Limiter, OnFailure};
use larder_client::{Client, L1Options, Options, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let servers: Result<Vec<Server>, _> = std::env::args().skip(1).map(|server| server.parse()).collect();
    let cache = Client::new(servers?, Options::default())?;
    let denials = L1Options::new().bytes(4 << 20).open("limit-example")?;
    let limiter =
        Limiter::new(cache.clone(), OnFailure::Local).with_denials_in(denials, Duration::from_secs(10));

    // Two a minute, and bursts of three.
    let minute = Duration::from_secs(60);
    let limit = Limit { algorithm: Algorithm::Gcra { burst: 3 }, ..Limit::gcra(2, minute) };
    let user = format!("user:{}", std::process::id());
    for request in 1..=5 {
        let decision = limiter.check(user.as_bytes(), &limit, 1)?;
        let wait_s = decision.retry_after.map_or(0.0, |wait| wait.as_secs_f64().ceil());
        match decision.is_allowed {
            true => println!("request {request} passes, {} more could", decision.remaining),
            false => println!("request {request} is denied, retry after {wait_s} s"),
        }
    }
    L1Options::new().remove("limit-example")?;
    Ok(())
}
