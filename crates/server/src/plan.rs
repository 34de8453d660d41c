//! `larder --plan`: what a cache for items that are described would take, before there is one, and the command line
//! that starts it. It opens nothing.
//!
//! ```text
//!   words.rs     a sentence to kinds of items
//!     |
//!   figures.rs   kinds of items to sizes, writes and wear, by the store's own arithmetic
//!     |
//!   page.rs      a plan to text, JSON and a command line
//! ```

mod figures;
mod page;
mod words;

use crate::config::PlanRequest;

/// Returns the plan that a command line asks for, as JSON or as text of at most `columns` columns, but for longer
/// paths.
///
/// # Errors
/// The words are not understood, or no cache can be made for them; the sentence says what to do.
pub fn answer(request: &PlanRequest, columns: usize) -> Result<String, String> {
    let wanted = words::read(&request.words).map_err(|problem| format!("--plan: {problem}"))?;
    let plan = figures::plan(&wanted, &request.config).map_err(|problem| format!("--plan: {problem}"))?;
    Ok(match request.is_json {
        true => page::json(&plan),
        false => page::text(&plan, &wanted, columns.max(page::COLUMNS_MIN)),
    })
}

#[cfg(test)]
mod tests;
