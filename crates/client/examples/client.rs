//! Uses a cache of one or several servers: `cargo run -p larder-client --example client -- 127.0.0.1:11211`.

use std::error::Error;

use larder_client::{Client, Count, Fetch, Fetched, Options, Put, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let servers: Result<Vec<Server>, _> = std::env::args().skip(1).map(|server| server.parse()).collect();
    let cache = Client::new(servers?, Options::default())?;
    for (server, version) in cache.servers().zip(cache.version()) {
        println!("{server}: version {}", version?);
    }

    let put = Put { flags: 7, exptime: 300 };
    cache.set(b"greeting", b"good day", put)?;
    let item = cache.get(b"greeting")?.ok_or("the greeting is gone")?;
    println!("greeting: {:?} with flags {}", String::from_utf8_lossy(&item.value), item.flags);

    // Many keys take one round trip to each server, and each has a result of its own.
    let pages: Vec<(String, Vec<u8>)> = (0..1000).map(|at| (format!("page:{at}"), vec![b'x'; at])).collect();
    let stored = cache.set_many(&pages, put).iter().filter(|result| result.is_ok()).count();
    let keys: Vec<&String> = pages.iter().map(|(key, _)| key).collect();
    let found = cache.get_many(&keys).into_iter().filter(|item| matches!(item, Ok(Some(_)))).count();
    println!("{stored} pages stored, {found} found");

    // The first visit makes the counter, with a minute to live; later ones do not extend that.
    let visit = Count { initial: Some((1, 60)), ..Count::default() };
    for _ in 0..3 {
        let counter = cache.count(b"visits", visit)?.ok_or("the counter was not made")?;
        println!("visits: {}, {:?} seconds to live", counter.value, counter.ttl_s);
    }

    // Of many clients that miss at once, one computes the value.
    let lease = Fetch { vivify: Some(30), ..Fetch::default() };
    if let Fetched::Found(item) = cache.fetch(b"report", &lease)?
        && let (true, Some(cas)) = (item.lease.is_mine, item.cas)
    {
        println!("report: {:?}", cache.fill(b"report", b"figures", cas, put)?);
    }
    cache.delete_many(&keys);
    cache.quiet().delete(b"report")?;
    Ok(())
}
