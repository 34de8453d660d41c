//! The client for the text and the binary protocol.

use crate::{BATCHES, Done, HOUR, SIZES, TAIL, ask, check, check_seconds_left, joined, value_of};
use memcache::{Client, MemcacheError};
use std::collections::HashMap;
use std::thread;
use std::time::Duration;

/// A value, its flags and its unique.
type Found = (Vec<u8>, u32, Option<u64>);

const USES: [&str; 9] = ["get", "add", "replace", "append", "prepend", "cas", "stale", "delete", "touch"];

/// Runs everything at one server.
pub fn run(protocol: &str, server: &str) -> Done {
    let url = format!("memcache://{server}?protocol={protocol}&timeout=60");
    let client = Client::with_pool_size(url, 4)?;
    let is_binary = protocol == "binary";
    let stale = prepare(&client)?;
    ask("settle")?;
    for size in SIZES {
        by_size(&client, size, stale[&size], is_binary)?;
    }
    batches(&client)?;
    missing(&client, is_binary)?;
    numbers(&client)?;
    rest(&client, is_binary)
}

fn value(client: &Client, key: &str) -> Done<Option<Vec<u8>>> {
    Ok(client.get(key)?)
}

fn unique(client: &Client, key: &str) -> Done<u64> {
    let found: HashMap<String, Found> = client.gets(&[key])?;
    found.get(key).and_then(|(_, _, unique)| *unique).ok_or_else(|| format!("no unique of {key}").into())
}

fn prepare(client: &Client) -> Done<HashMap<usize, u64>> {
    let mut stale = HashMap::new();
    for size in SIZES {
        for use_of in USES {
            client.set(&format!("{use_of}:{size}"), value_of(size).as_slice(), HOUR)?;
        }
        let key = format!("stale:{size}");
        stale.insert(size, unique(client, &key)?);
        client.set(&key, value_of(size).as_slice(), HOUR)?;
    }
    for count in BATCHES {
        for at in 0..count {
            client.set(&format!("batch:{count}:{at}"), value_of(at).as_slice(), HOUR)?;
        }
    }
    for name in ["incr", "decr"] {
        client.set(&format!("number:{name}"), 1_234_567_890_u64, HOUR)?;
    }
    client.set("number:wrap", u64::MAX, HOUR)?;
    client.set("flushed", "x", HOUR)?;
    client.set("flushed:large", value_of(100 << 10).as_slice(), HOUR)?;
    Ok(stale)
}

/// A refusal of `add` or `replace`: the client shows it in binary only, in text it takes `NOT_STORED` for success.
fn check_refused(name: &str, result: Result<(), MemcacheError>, is_binary: bool) {
    check(name, result.is_err(), is_binary);
}

fn by_size(client: &Client, size: usize, stale: u64, is_binary: bool) -> Done {
    let (want, key) = (value_of(size), |use_of: &str| format!("{use_of}:{size}"));
    check(&key("get"), value(client, &key("get"))?, Some(want.clone()));
    check_refused(&key("add, there"), client.add(&key("add"), TAIL, HOUR), is_binary);
    check(&key("add, value"), value(client, &key("add"))?, Some(want.clone()));
    client.replace(&key("replace"), TAIL, HOUR)?;
    check(&key("replace, value"), value(client, &key("replace"))?, Some(TAIL.to_vec()));
    client.append(&key("append"), TAIL)?;
    check(&key("append, value"), value(client, &key("append"))?, Some(joined(&want, TAIL)));
    client.prepend(&key("prepend"), TAIL)?;
    check(&key("prepend, value"), value(client, &key("prepend"))?, Some(joined(TAIL, &want)));
    let current = unique(client, &key("cas"))?;
    check(&key("cas"), client.cas(&key("cas"), TAIL, HOUR, current)?, true);
    check(&key("cas, value"), value(client, &key("cas"))?, Some(TAIL.to_vec()));
    check(&key("cas, out of date"), client.cas(&key("stale"), TAIL, HOUR, stale)?, false);
    check(&key("cas, out of date: value"), value(client, &key("stale"))?, Some(want.clone()));
    check(&key("touch"), client.touch(&key("touch"), 7200)?, true);
    check_seconds_left(&key("touch"), &key("touch"), 7200)?;
    check(&key("touch, value"), value(client, &key("touch"))?, Some(want));
    check(&key("delete"), client.delete(&key("delete"))?, true);
    check(&key("delete, value"), value(client, &key("delete"))?, None);
    Ok(())
}

fn batches(client: &Client) -> Done {
    for count in BATCHES {
        let mut keys: Vec<String> = (0..count).map(|at| format!("batch:{count}:{at}")).collect();
        keys.extend(["no:1".to_string(), "no:2".to_string()]);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let found: HashMap<String, Vec<u8>> = client.gets(&keys)?;
        let same = (0..count).all(|at| found.get(keys[at]) == Some(&value_of(at)));
        check(&format!("get of {count} and missing keys"), (found.len(), same), (count, true));
    }
    Ok(())
}

fn missing(client: &Client, is_binary: bool) -> Done {
    check("get, missing", value(client, "no")?, None);
    check_refused("replace, missing", client.replace("no", TAIL, HOUR), is_binary);
    check_refused("append, missing", client.append("no", TAIL), is_binary);
    // It does not look at the reply's status in binary either.
    client.prepend("no", TAIL)?;
    check("nothing is made by these", value(client, "no")?, None);
    check("cas, missing", client.cas("no", TAIL, HOUR, 1)?, false);
    check("touch, missing", client.touch("no", 10)?, false);
    check("delete, missing", client.delete("no")?, false);
    check("incr of no number", client.increment("get:100", 1).is_err(), true);
    client.add("no:add", TAIL, HOUR)?;
    check("add, missing: value", value(client, "no:add")?, Some(TAIL.to_vec()));
    Ok(())
}

fn numbers(client: &Client) -> Done {
    check("incr", client.increment("number:incr", 10)?, 1_234_567_900);
    check("incr, again", client.increment("number:incr", 1)?, 1_234_567_901);
    check("decr", client.decrement("number:decr", 90)?, 1_234_567_800);
    check("incr past 2^64", client.increment("number:wrap", 2)?, 1);
    check("a number", client.get("number:incr")?, Some(1_234_567_901_u64));
    Ok(())
}

fn rest(client: &Client, is_binary: bool) -> Done {
    check("version", client.version()?.pop().map(|(_, version)| version), Some("1.6.45".to_string()));
    if is_binary {
        // In text it stops reading after the first line.
        let stats = client.stats()?.pop().and_then(|(_, mut stats)| stats.remove("version"));
        check("stats", stats, Some("1.6.45".to_string()));
    }
    check("a long key", client.set(&"k".repeat(251), "x", HOUR).is_err(), true);
    client.set(&"k".repeat(250), "x", HOUR)?;
    check("the longest key", client.get(&"k".repeat(250))?, Some("x".to_string()));
    let threads: Vec<_> = (0..8).map(|thread| (thread, client.clone())).collect();
    let all: Vec<bool> = thread::scope(|scope| {
        let running: Vec<_> = threads
            .iter()
            .map(|(_, client)| scope.spawn(|| (0..100).all(|_| client.increment("number:incr", 1).is_ok())))
            .collect();
        running.into_iter().map(|one| one.join().is_ok_and(|all| all)).collect()
    });
    check("eight threads", all, vec![true; 8]);
    check("eight threads: the number", client.get("number:incr")?, Some(1_234_568_701_u64));
    client.set("brief", "x", 1)?;
    thread::sleep(Duration::from_millis(2100));
    check("get after its time", value(client, "brief")?, None);
    client.flush_with_delay(3600)?;
    check("flush later", value(client, "flushed")?, Some(b"x".to_vec()));
    client.flush()?;
    check("flush", value(client, "flushed")?, None);
    check("flush, large", value(client, "flushed:large")?, None);
    client.add("flushed", "y", HOUR)?;
    check("add after flush", value(client, "flushed")?, Some(b"y".to_vec()));
    Ok(())
}
