//! The messages between the coordinator of a fleet and its agents.

use crate::latency::Latency;
use crate::result::{Interval, Run};
use serde::{Deserialize, Serialize};

/// From the coordinator to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgent {
    /// Asks for the agent's clock.
    Ping {
        /// Comes back with the answer.
        number: u64,
    },
    /// Connect and store your share of the keys, then say that you are ready.
    Prepare {
        /// The arguments of `run`.
        arguments: Vec<String>,
        /// Which host of the fleet this is, from 0.
        index: u32,
        /// Of how many.
        of: u32,
    },
    /// Begin.
    Start {
        /// When, on the agent's own monotonic clock.
        at_ns: i64,
    },
    /// Ends early, with the measurements so far.
    Stop,
    /// Record made-up latencies and send their histogram.
    Record {
        /// Which latencies; see [`super::proof`].
        index: u32,
        /// How many.
        count: u64,
    },
}

/// From an agent to its coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromAgent {
    /// The first message.
    Hello {
        /// [`crate::transport::VERSION`] of the agent.
        version: String,
        /// [`crate::result::SCHEMA`] of the agent.
        schema: u32,
        /// CPUs it may use.
        cores: u32,
    },
    /// The answer to a ping.
    Pong {
        /// The ping's.
        number: u64,
        /// The agent's monotonic clock.
        at_ns: i64,
    },
    /// Its share of the keys is being stored.
    Prefill {
        /// How many are.
        stored: u64,
        /// Of how many.
        keys: u64,
    },
    /// Connected, and its share of the keys is stored.
    Ready,
    /// The window began.
    Window,
    /// One more second of the window.
    Second {
        /// Its measurements.
        interval: Interval,
        /// How much of the window is left.
        left_ms: Option<u64>,
    },
    /// The end, with the whole result.
    Done {
        /// All of it.
        run: Box<Run>,
        /// When the load was to begin, on the agent's monotonic clock: as [`ToAgent::Start`] gave it, or
        /// later when the message came too late for that.
        began_ns: i64,
    },
    /// It cannot be done, and why.
    Failed {
        /// One line.
        #[serde(rename = "says")]
        message: String,
    },
    /// The histogram that [`ToAgent::Record`] asked for.
    Recorded {
        /// Of its latencies.
        latency: Latency,
    },
}
