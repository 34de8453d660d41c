//! What each process has for itself, although it was there before the fork.

use once_cell::race::OnceBox;

/// A value for each process that uses it: for the first one, its child, that one's child and so on.
///
/// A lock that is held while the process forks stays locked for ever in the child, where the thread that holds it does
/// not exist. So the child gets a value of its own. Making it takes no lock.
#[derive(Debug)]
pub struct PerProcess<T> {
    first: Room<T>,
}

#[derive(Debug)]
struct Room<T> {
    pid: u32,
    value: T,
    child: OnceBox<Room<T>>,
}

impl<T: Default> Room<T> {
    fn new(pid: u32) -> Self {
        Room { pid, value: T::default(), child: OnceBox::new() }
    }
}

impl<T: Default> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess { first: Room::new(std::process::id()) }
    }
}

impl<T: Default> PerProcess<T> {
    /// Returns the value of the process that asks. When a process asks for the first time, `inherited` is called with
    /// the value of the process that it was forked from; it must not wait for any lock.
    pub fn get(&self, inherited: impl Fn(&T)) -> &T {
        let pid = std::process::id();
        let mut room = &self.first;
        while room.pid != pid {
            let parent = room;
            room = room.child.get_or_init(|| {
                inherited(&parent.value);
                Box::new(Room::new(pid))
            });
        }
        &room.value
    }
}
