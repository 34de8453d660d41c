//! A process that forks: the child makes connections of its own and leaves its parent's alone.

use std::io::Write;
use std::time::Duration;

use fork::{Fork, fork, waitpid};
use larder_client::Put;

use crate::fake::{Fake, hasty, opaque, read_line};
use crate::servers::each;

#[test]
fn parent_and_child_each_get_their_own_answers() {
    for daemon in each(&[]) {
        let client = daemon.client(hasty());
        client.set(b"parent", b"of parent", Put::default()).expect("it is stored");
        // A fence is unread on the connection that the child inherits.
        client.quiet().set(b"quiet", b"v", Put::default()).expect("it is sent");
        match fork().expect("the process forks") {
            Fork::Child => {
                let mut wrong = 0;
                for number in 0..500 {
                    let value = format!("child {number}");
                    let stored = client.set(b"child", value.as_bytes(), Put::default());
                    let found = client.get(b"child").ok().flatten().map(|item| item.value);
                    wrong += i32::from(stored.is_err() || found.as_deref() != Some(value.as_bytes()));
                }
                let _ = client.set(b"wrong in child", wrong.to_string().as_bytes(), Put::default());
                // Nothing of the test's own machinery is to run a second time.
                std::process::exit(0);
            }
            Fork::Parent(child) => {
                for number in 0..500 {
                    let value = format!("parent {number}");
                    client.set(b"parent", value.as_bytes(), Put::default()).expect("it is stored");
                    let found = client.get(b"parent").expect("it answers").expect("it is there");
                    assert_eq!(found.value, value.as_bytes());
                }
                let _ = waitpid(child);
                let wrong =
                    client.get(b"wrong in child").expect("it answers").expect("the child came to its end");
                assert_eq!(wrong.value, b"0");
            }
        }
    }
}

#[test]
fn a_child_of_a_child_connects_anew_and_the_parent_goes_on_with_its_connection() {
    let fake = Fake::start(|number, mut peer| {
        while let Some(line) = read_line(&mut peer) {
            let value = number.to_string();
            let _ = write!(peer, "VA {} f0{}\r\n{value}\r\n", value.len(), opaque(&line));
        }
    });
    let client = fake.client(hasty());
    let number = || client.get(b"k").expect("it answers").expect("it is there").value;
    assert_eq!(number(), b"0");
    if let Fork::Child = fork().expect("the process forks") {
        let _ = (client.get(b"k"), client.get(b"k"));
        if let Fork::Child = fork().expect("the process forks") {
            let _ = (client.get(b"k"), client.get(b"k"));
            std::process::exit(0);
        }
        std::thread::sleep(Duration::from_secs(1));
        std::process::exit(0);
    }
    let began = std::time::Instant::now();
    while fake.connections() < 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "{} connections", fake.connections());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(number(), b"0");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(fake.connections(), 3, "one for each process");
}
