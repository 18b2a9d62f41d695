//! Everything the program prints or asks: data on stdout, messages on stderr, the live view of a run, prompts.
//!
//! ```text
//! output.rs         data and messages, errors
//! table.rs          the layout of tables
//! confirm.rs        yes-or-no prompts
//! secret_prompt.rs  secrets, typed without being shown or from standard input
//! browser.rs        opens pages in the desktop's browser
//! progress.rs       elapsed time of slow operations, interrupt signals
//! live_region.rs    lines that are redrawn in place, and other output above them
//! logging/          the tracing log on stderr
//! run_view/         a run as it proceeds, and its prompts
//! ```

pub(crate) mod browser;
mod confirm;
mod live_region;
pub(crate) mod logging;
mod output;
pub(crate) mod progress;
pub(crate) mod run_view;
mod secret_prompt;
mod table;

pub(crate) use confirm::confirm;
pub(crate) use live_region::{can_draw as can_redraw, draw as redraw};
pub(crate) use output::{
    Output, fit_line, line_width, pluralize, sanitize, stdout_size, terminal_width, truncate_to_width,
};
pub(crate) use secret_prompt::read_secret;
pub(crate) use table::table_lines;
