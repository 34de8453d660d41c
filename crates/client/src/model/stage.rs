//! The world of an actor: a thread of a process of a host, whose kernel is the scheduler.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::Socket;

use super::schedule::{Place, State, Status};
use crate::simulation::{Fault, World};

/// The payload of the panic that ends the actors of a killed process.
pub struct Killed;

/// What all threads of an execution share.
#[derive(Debug)]
pub struct Stage {
    state: Mutex<State>,
    turns: Vec<Condvar>,
    over: Condvar,
    fault: Option<Fault>,
}

impl Stage {
    pub fn new(state: State, fault: Option<Fault>) -> Stage {
        let turns = state.actors.iter().map(|_| Condvar::new()).collect();
        Stage { state: Mutex::new(state), turns, over: Condvar::new(), fault }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn into_state(self) -> State {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the actors run, and returns when all have ended.
    pub fn run(&self) {
        let mut state = self.state();
        self.hand_over(&mut state, None);
        while state.running.is_some() {
            state = self.over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn hand_over(&self, state: &mut State, me: Option<usize>) {
        let next = state.decide(me, Place::Step);
        self.turn_to(state, next);
    }

    fn turn_to(&self, state: &mut State, next: Option<usize>) {
        state.running = next;
        match next {
            Some(next) => self.turns[next].notify_one(),
            None => self.over.notify_one(),
        }
    }

    /// Waits for an actor's first turn. Returns false if its process was killed before.
    pub fn enter(&self, me: usize) -> bool {
        let state = self.await_turn(self.state(), me);
        !state.actors[me].is_killed
    }

    /// Ends an actor.
    pub fn leave(&self, me: usize) {
        let mut state = self.state();
        state.leave(me);
        self.hand_over(&mut state, None);
    }

    fn await_turn<'a>(&'a self, mut state: MutexGuard<'a, State>, me: usize) -> MutexGuard<'a, State> {
        while state.running != Some(me) {
            state = self.turns[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }
}

/// One actor's world.
pub struct Actor {
    stage: Arc<Stage>,
    me: usize,
    is_unwinding: Cell<bool>,
}

impl Actor {
    pub fn new(stage: &Arc<Stage>, me: usize) -> Actor {
        Actor { stage: stage.clone(), me, is_unwinding: Cell::new(false) }
    }

    /// Gives the turn to whatever the scheduler chooses, until it is this actor's again. Returns the status that it
    /// then has.
    fn pause(&self, status: impl FnOnce(&mut State) -> Status, place: Place) -> Status {
        if self.is_unwinding.get() {
            return Status::Ready;
        }
        let mut state = self.stage.state();
        state.actors[self.me].status = status(&mut state);
        let next = state.decide(Some(self.me), place);
        if next != Some(self.me) {
            self.stage.turn_to(&mut state, next);
            state = self.stage.await_turn(state, self.me);
        }
        let status = std::mem::replace(&mut state.actors[self.me].status, Status::Ready);
        if state.actors[self.me].is_killed {
            drop(state);
            self.is_unwinding.set(true);
            resume_unwind(Box::new(Killed));
        }
        status
    }

    fn until_ms(state: &State, time: Duration) -> u64 {
        state.now.ms + u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

impl World for Actor {
    fn now_ms(&self) -> u64 {
        self.stage.state().now.ms
    }

    fn step(&self) {
        self.pause(|_| Status::Ready, Place::Step);
    }

    fn store(&self) {
        self.pause(|_| Status::Ready, Place::Store);
    }

    fn sleep(&self, time: Duration) {
        self.pause(|state| Status::Sleeps { until_ms: Self::until_ms(state, time) }, Place::Step);
    }

    fn wait(&self, time: Duration) -> bool {
        let status =
            |state: &mut State| Status::Waits { until_ms: Self::until_ms(state, time), is_woken: false };
        matches!(self.pause(status, Place::Step), Status::Waits { is_woken: true, .. })
    }

    fn wake(&self) {
        let mut state = self.stage.state();
        let host = state.actors[self.me].host;
        state.wake(host);
    }

    fn connect(&self) -> io::Result<Socket> {
        let (client, peer) = UnixStream::pair()?;
        let (client, peer) = (Socket::from(OwnedFd::from(client)), Socket::from(OwnedFd::from(peer)));
        peer.set_nonblocking(true)?;
        self.stage.state().accept(self.me, peer, client.try_clone()?, client.as_raw_fd());
        Ok(client)
    }

    fn wait_for_reply(&self, fd: i32) {
        let status = |state: &mut State| state.receive(self.me, fd).map_or(Status::Ready, Status::Reply);
        self.pause(status, Place::Step);
    }

    fn listen(&self, fd: i32, time: Duration) {
        self.pause(|state| state.listen(self.me, fd, Self::until_ms(state, time)), Place::Step);
    }

    fn is_over(&self) -> bool {
        let state = self.stage.state();
        state.actors.iter().all(|actor| actor.is_listener || actor.status == Status::Ended)
    }

    fn process(&self) -> u64 {
        self.stage.state().actors[self.me].process
    }

    fn lock_byte(&self, at: u64) -> bool {
        self.step();
        let mut state = self.stage.state();
        let (host, process) = (state.actors[self.me].host, state.actors[self.me].process);
        let holder = state.locks.iter().find(|(on, byte, _)| (*on, *byte) == (host, at)).map(|lock| lock.2);
        if holder.is_none() {
            state.locks.push((host, at, process));
        }
        holder.is_none_or(|holder| holder == process)
    }

    fn is_byte_locked(&self, at: u64) -> bool {
        let state = self.stage.state();
        let (host, process) = (state.actors[self.me].host, state.actors[self.me].process);
        state.locks.iter().any(|(on, byte, by)| (*on, *byte) == (host, at) && *by != process)
    }

    fn is_killed(&self) -> bool {
        self.is_unwinding.get()
    }

    fn is_broken(&self, fault: Fault) -> bool {
        self.stage.fault == Some(fault)
    }
}
