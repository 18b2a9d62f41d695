//! Everything the program prints or asks: data on stdout, messages on stderr, the live view of a run, prompts.
//!
//! ```text
//! output.rs    data and messages, tables, errors
//! confirm.rs   yes-or-no prompts
//! progress.rs  elapsed time of slow operations, interrupt signals
//! logging/     the tracing log on stderr
//! run_view/    a run as it proceeds, and its prompts
//! ```

mod confirm;
pub(crate) mod logging;
mod output;
pub(crate) mod progress;
pub(crate) mod run_view;

pub(crate) use confirm::confirm;
pub(crate) use output::{Output, fit_line, line_width, pluralize, sanitize, truncate_to_width};
