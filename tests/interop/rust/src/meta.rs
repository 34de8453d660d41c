//! The crate's newer client, which speaks the meta commands.

use crate::{BATCHES, Done, HOUR, TAIL, ask, check, check_seconds_left, joined, value_of};
use memcache::exp::{Memcache, Ttl};
use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

const USES: [&str; 9] = ["get", "add", "replace", "append", "prepend", "update", "take", "delete", "gat"];
const AN_HOUR: Ttl = Ttl::secs(HOUR);
/// This client refuses to store an empty value.
const SIZES: &[usize] = crate::SIZES.split_at(1).1;

/// Runs everything at one server.
pub fn run(server: &str) -> Done {
    let cache = Memcache::builder().timeout(Duration::from_secs(60)).connect([server])?;
    for &size in SIZES {
        for use_of in USES {
            cache.set(format!("{use_of}:{size}"), value_of(size), AN_HOUR)?;
        }
    }
    for count in BATCHES {
        cache.set_many((0..count).map(|at| (format!("batch:{count}:{at}"), value_of(at + 1))), AN_HOUR)?;
    }
    cache.set("number", 1_234_567_890_u64, AN_HOUR)?;
    cache.set("soft", "old", AN_HOUR)?;
    ask("settle")?;
    for &size in SIZES {
        by_size(&cache, size)?;
    }
    for count in BATCHES {
        let keys: Vec<String> = (0..count).map(|at| format!("batch:{count}:{at}")).collect();
        let wanted = keys.iter().cloned().chain(["no:1".to_string()]);
        let found: HashMap<String, Vec<u8>> = cache.get_many(wanted)?;
        let same = keys.iter().enumerate().all(|(at, key)| found.get(key) == Some(&value_of(at + 1)));
        check(&format!("get of {count} and a missing key"), (found.len(), same), (count, true));
    }
    cache.delete_many(["batch:2:0", "batch:2:1"])?;
    check("delete of many", cache.get::<Vec<u8>>("batch:2:1")?, None);
    numbers(&cache)?;
    leases(&cache)
}

fn by_size(cache: &Memcache, size: usize) -> Done {
    let (want, key) = (value_of(size), |use_of: &str| format!("{use_of}:{size}"));
    let get = |use_of: &str| cache.get::<Vec<u8>>(key(use_of));
    check(&key("get"), get("get")?, Some(want.clone()));
    check(&key("add, there"), cache.add(key("add"), TAIL, AN_HOUR)?, false);
    check(&key("add, value"), get("add")?, Some(want.clone()));
    check(&key("replace"), cache.replace(key("replace"), TAIL, AN_HOUR)?, true);
    check(&key("replace, value"), get("replace")?, Some(TAIL.to_vec()));
    cache.append(key("append"), TAIL, AN_HOUR)?;
    check(&key("append, value"), get("append")?, Some(joined(&want, TAIL)));
    cache.prepend(key("prepend"), TAIL, AN_HOUR)?;
    check(&key("prepend, value"), get("prepend")?, Some(joined(TAIL, &want)));
    let updated = cache.update(key("update"), AN_HOUR, |found: Option<Vec<u8>>| {
        let mut value = found.unwrap_or_default();
        value.reverse();
        value
    })?;
    check(&key("update"), Some(updated), Some(want.iter().rev().copied().collect()));
    check(&key("take"), cache.take(key("take"))?, Some(want.clone()));
    check(&key("take, value"), get("take")?, None);
    check(&key("gat"), cache.get_and_touch(key("gat"), Ttl::secs(7200))?, Some(want));
    check_seconds_left(&key("gat"), &key("gat"), 7200)?;
    cache.touch(key("gat"), Ttl::secs(600))?;
    check_seconds_left(&key("touch"), &key("gat"), 600)?;
    let about = cache.inspect(key("gat"))?;
    check(&key("inspect"), about.map(|about| about.size), Some(size as u64));
    cache.delete(key("delete"))?;
    check(&key("delete, value"), get("delete")?, None);
    Ok(())
}

fn numbers(cache: &Memcache) -> Done {
    check("incr", cache.incr("number", 10, AN_HOUR)?, 1_234_567_900);
    check("decr", cache.decr("number", 1, AN_HOUR)?, 1_234_567_899);
    check("decr below 0", cache.decr("number", u64::MAX, AN_HOUR)?, 0);
    check("incr, missing", cache.incr("number:made", 5, AN_HOUR)?, 5);
    check("append, missing", cache.append("log", TAIL, AN_HOUR).is_ok(), true);
    check("append, missing: value", cache.get("log")?, Some(TAIL.to_vec()));
    check("replace, missing", cache.replace("no", TAIL, AN_HOUR)?, false);
    check("a binary key", cache.set([0_u8, 32, 255].as_slice(), "x", AN_HOUR).is_ok(), true);
    check("a binary key: value", cache.get([0_u8, 32, 255].as_slice())?, Some("x".to_string()));
    Ok(())
}

fn leases(cache: &Memcache) -> Done {
    let fetch = |key: &str, value: &str| cache.fetch(key, AN_HOUR, || Ok::<_, Infallible>(value.to_string()));
    check("fetch, missing", fetch("fetched", "made")?, "made".to_string());
    check("fetch, there", fetch("fetched", "made again")?, "made".to_string());
    cache.invalidate("soft", Duration::from_secs(60))?;
    check("invalidated: a plain read", cache.get("soft")?, Some("old".to_string()));
    check("invalidated: the first makes it again", fetch("soft", "new")?, "new".to_string());
    check("invalidated: it is there", cache.get("soft")?, Some("new".to_string()));
    cache.meta().noop()?;
    Ok(())
}
