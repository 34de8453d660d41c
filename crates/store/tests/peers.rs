//! The tests of the simulated peers stand beside their code, which the example `policy` has.

#[path = "../examples/policy/look_aside.rs"]
#[expect(dead_code, reason = "it serves the example policy too")]
mod look_aside;
#[path = "../examples/policy/peers/mod.rs"]
mod peers;

use look_aside::{Op, Request};

/// Every fourth request is for the key of three requests before; all other keys are new.
#[test]
fn every_peer_hits_what_returns_soon() {
    for (name, mut peer) in peers::all(1 << 20, 64 << 20, 1_000) {
        for number in 0..100_000_u64 {
            let key = if number % 4 == 3 { number - 3 } else { number };
            let request = Request { at_s: 0, key, key_bytes: 10, value_bytes: 1_000, ttl_s: 0, op: Op::Get };
            peer.request(&request);
        }
        let percent = peer.counts.hit_percent();
        assert!((percent - 25.0).abs() < 0.1, "{name}: {percent}");
        assert_eq!(
            peer.ssd_bytes_written() > 0,
            !name.starts_with("lru") && !name.starts_with("cachelib"),
            "{name}"
        );
    }
}
