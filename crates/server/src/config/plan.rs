//! What a command line with `--plan` asks for: words, and the few options that a plan depends on.

use super::error::ConfigError;
use super::layer::{Layer, Origin, Setting};
use super::option::Id;
use super::options::OPTIONS;
use super::resolved::Config;

/// A plan that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRequest {
    /// The words that describe the items.
    pub words: String,
    /// Whether the answer is to be JSON.
    pub is_json: bool,
    /// The paths of the SSD, whose sizes do not count, and what they endure; else defaults.
    pub config: Box<Config>,
}

/// The options that a plan depends on.
const USED: [Id; 4] = [Id::Plan, Id::Json, Id::Ssd, Id::SsdEndurance];

/// Refuses flags that a plan does not depend on.
pub(super) fn check(flags: &Layer) -> Result<(), ConfigError> {
    let is_given =
        |id: Id| flags.last(Setting::Opt(id)).is_some_and(|given| matches!(given.origin, Origin::Flag(_)));
    let stray = OPTIONS.iter().find(|opt| !USED.contains(&opt.id) && is_given(opt.id));
    let words = flags.words().next().map(|(word, _)| format!("-o {word}"));
    match stray.map(|opt| format!("--{}", opt.long)).or(words) {
        None => Ok(()),
        Some(stray) => Err(ConfigError::Usage(format!(
            "--plan works {stray} out, or does not depend on it: leave it out, and give the plan's command \
             line what else you want; --ssd, --ssd-endurance and --json go with --plan"
        ))),
    }
}

/// Refuses `--json` without a plan.
pub(super) fn check_without(flags: &Layer) -> Result<(), ConfigError> {
    match flags.last(Setting::Opt(Id::Json)) {
        None => Ok(()),
        Some(given) => Err(given.error("json", "only a plan is printed as JSON; give --plan WORDS too")),
    }
}
