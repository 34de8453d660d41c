//! The verdict on a counter's history against a search over every order, on tiny histories; and on large
//! ones, with and without a lost update.

use larder_bench::counter::history::{Client, History, Linearizable, Op, Violation};
use proptest::prelude::*;

/// Request, answer, and the value; without an answer the times are open and the value is unknown.
type Interval = (u64, u64, Option<u64>);

/// Whether some order of the increments explains every answer, found by trying all.
fn is_linearizable(history: &History) -> bool {
    let clients: Vec<Vec<Interval>> = history
        .clients
        .iter()
        .map(|client| {
            let answered = client.log.iter().map(|op| (op.start_ns, op.end_ns, Some(op.value)));
            answered.chain(client.lost_start_ns.map(|start_ns| (start_ns, u64::MAX, None))).collect()
        })
        .collect();
    try_all(&clients, &mut vec![0; clients.len()], 0, history.final_read)
}

/// `done` counts each client's increments that have been put in order; `counter` is where that leaves the
/// counter.
fn try_all(clients: &[Vec<Interval>], done: &mut Vec<usize>, counter: u64, read: Option<u64>) -> bool {
    let left: Vec<Interval> =
        clients.iter().zip(&*done).flat_map(|(ops, &from)| ops[from..].iter().copied()).collect();
    // What is left was lost and may never have happened.
    if left.iter().all(|op| op.2.is_none()) && read.is_none_or(|read| read == counter) {
        return true;
    }
    for client in 0..clients.len() {
        let Some(&(start_ns, _, value)) = clients[client].get(done[client]) else { continue };
        let is_preceded = left.iter().any(|other| other.1 < start_ns);
        if is_preceded || value.is_some_and(|value| value != counter + 1) {
            continue;
        }
        done[client] += 1;
        let found = try_all(clients, done, counter + 1, read);
        done[client] -= 1;
        if found {
            return true;
        }
    }
    false
}

/// A client from its increments (the pause before each, its length, its answer) and the pause before a lost
/// one.
fn client(steps: Vec<(u64, u64, u64)>, lost: Option<u64>) -> Client {
    let mut client = Client::default();
    let mut now = 0;
    for (pause, length, value) in steps {
        client.log.push(Op { start_ns: now + pause, end_ns: now + pause + length, value });
        now += pause + length;
    }
    if let Some(pause) = lost {
        client.lose(now + pause);
    }
    client
}

/// Anything at all: most of it is no counter.
fn anything() -> impl Strategy<Value = History> {
    let steps = prop::collection::vec((0..4_u64, 0..6_u64, 0..7_u64), 0..4);
    let clients = prop::collection::vec((steps, prop::option::weighted(0.3, 0..6_u64)), 1..4);
    (clients, prop::option::of(0..8_u64)).prop_map(|(clients, final_read)| History {
        clients: clients.into_iter().map(|(steps, lost)| client(steps, lost)).collect(),
        final_read,
    })
}

/// A real counter's: each increment happens at a moment within it; lost ones happen or not; then, perhaps,
/// one number of it is changed a little.
fn nearly_a_counter() -> impl Strategy<Value = History> {
    let steps = prop::collection::vec((0..4_u64, 0..6_u64, 0..6_u64), 0..4);
    let lost = prop::option::weighted(0.3, (0..4_u64, 0..20_u64, any::<bool>()));
    let clients = prop::collection::vec((steps, lost), 1..4);
    let change = prop::option::of((any::<prop::sample::Index>(), -2..3_i64));
    (clients, any::<bool>(), change).prop_map(|(clients, is_read, change)| {
        let mut moments = Vec::new();
        for (client, (steps, lost)) in clients.iter().enumerate() {
            let mut now = 0;
            for (at, &(pause, length, share)) in steps.iter().enumerate() {
                moments.push((now + pause + share.min(length), client, at));
                now += pause + length;
            }
            if let Some((pause, later, true)) = lost {
                moments.push((now + pause + later, client, steps.len()));
            }
        }
        moments.sort_unstable();
        let mut values: Vec<Vec<u64>> = clients.iter().map(|(steps, _)| vec![0; steps.len() + 1]).collect();
        for (counter, &(_, client, at)) in moments.iter().enumerate() {
            values[client][at] = counter as u64 + 1;
        }
        let mut read = moments.len() as u64;
        if let Some((index, by)) = change {
            let spots = values.iter().map(Vec::len).sum::<usize>() + 1;
            match values.iter_mut().flatten().nth(index.index(spots)) {
                Some(value) => *value = value.saturating_add_signed(by),
                None => read = read.saturating_add_signed(by),
            }
        }
        let clients = clients.into_iter().zip(values).map(|((steps, lost), values)| {
            let steps =
                steps.into_iter().zip(values).map(|((pause, length, _), value)| (pause, length, value));
            client(steps.collect(), lost.map(|(pause, _, _)| pause))
        });
        History { clients: clients.collect(), final_read: is_read.then_some(read) }
    })
}

fn agrees(history: &History) -> Result<(), TestCaseError> {
    let verdict = history.verdict();
    prop_assert_eq!(verdict.is_ok(), is_linearizable(history), "{:?}", verdict);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_verdict_is_that_of_a_search_over_every_order(history in anything()) {
        agrees(&history)?;
    }

    #[test]
    fn it_is_so_too_where_little_or_nothing_is_wrong(history in nearly_a_counter()) {
        agrees(&history)?;
    }
}

/// `count` increments by `clients` clients that take turns, each under way while `clients` others happen; the
/// increments `lost` did not see the one before them.
fn turns(count: u64, clients: u64, lost: &[u64]) -> History {
    let mut history = History::default();
    history.clients.resize_with(clients as usize, Client::default);
    let mut counter = 0;
    for turn in 0..count {
        if !lost.contains(&turn) {
            counter += 1;
        }
        let op = Op { start_ns: turn * 1000, end_ns: (turn + clients) * 1000 - 7, value: counter };
        history.clients[(turn % clients) as usize].log.push(op);
    }
    history.final_read = Some(counter);
    history
}

#[test]
fn one_lost_update_in_ten_million_is_found() {
    const COUNT: u64 = 10_000_000;
    let sound = turns(COUNT, 10, &[]);
    assert!(sound.size_bytes() < 160_000_000, "{} bytes", sound.size_bytes());
    let began = std::time::Instant::now();
    let verdict = sound.verdict();
    println!("{COUNT} increments in {:?}", began.elapsed());
    let expected = Linearizable { answered: COUNT, lost: 0, lost_but_done: 0, final_read: Some(COUNT) };
    assert_eq!(verdict, Ok(expected));
    for at in [1, COUNT / 3, COUNT - 1] {
        let verdict = turns(COUNT, 10, &[at]).verdict();
        assert!(
            matches!(verdict, Err(Violation::Twice(a, b)) if a.op.value == at && b.op.value == at),
            "{at}"
        );
    }
}

#[test]
fn a_client_that_sees_the_counter_go_back_is_named() {
    let mut history = turns(3, 1, &[]);
    history.clients[0].log.push(Op { start_ns: 9_000, end_ns: 9_001, value: 2 });
    let verdict = history.verdict();
    assert!(matches!(verdict, Err(Violation::Backwards(a, b)) if (a.op.value, b.op.value) == (3, 2)));
}

#[test]
fn order_of_time_between_clients_counts() {
    // What a check of the set of values cannot see: distinct, complete, and yet impossible.
    let late = client(vec![(50, 10, 1)], None);
    let early = client(vec![(10, 10, 2)], None);
    let history = History { clients: vec![late, early], final_read: Some(2) };
    let verdict = history.verdict();
    assert!(matches!(verdict, Err(Violation::Backwards(a, b)) if (a.client, b.client) == (1, 0)));
}

#[test]
fn an_increment_without_an_answer_explains_one_gap_and_no_more() {
    let mut history = turns(4, 2, &[]);
    history.clients[0].lose(8_000);
    history.final_read = Some(5);
    assert!(matches!(history.verdict(), Ok(Linearizable { lost: 1, lost_but_done: 1, .. })));
    history.final_read = Some(6);
    assert_eq!(history.verdict(), Err(Violation::FinalAbove(6, 5)));
    history.final_read = Some(3);
    assert!(matches!(history.verdict(), Err(Violation::FinalBelow(3, _))));
}
