//! Pure decisions: which candidates may execute a call, in which order, by which strategy.
//!
//! - `route`: from a tool name (and an optional source) to candidates; `capability_selection` does it by capability.
//! - `names`: what a name stands for, and by which name a tool is called; `argument_fit` selects by the folders of arguments.
//! - `order`: pin, then recent success, then priority. `rules` holds the operator's settings, `profile` what a client may use.
//! - `strategy`: direct, pick the best, synthesize, or one after another.
//! - `decision`, `explain`: every decision in words, for the log and for `--explain`.

pub(crate) mod argument_fit;
pub(crate) mod capability_selection;
pub(crate) mod decision;
pub(crate) mod explain;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod profile;
pub(crate) mod route;
pub(crate) mod rules;
pub(crate) mod strategy;
