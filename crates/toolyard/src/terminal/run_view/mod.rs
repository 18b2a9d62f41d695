//! Shows a run while it proceeds and afterwards, and prompts for approvals and elicitations.
//!
//! ```text
//! run_progress.rs     the state of a run, folded from its updates
//! plan_outline.rs     a plan in one line
//! render.rs           that state as lines of text
//! view.rs             the watcher of a run: live on a terminal, plain lines elsewhere, or JSON
//! view_state.rs       what the view and its prompts share: the progress of the run and whether it is drawn
//! sent_request.rs     what was sent to a model, and what it replied
//! screen.rs           the size of the terminal, and lines that are redrawn within it
//! approval_prompt.rs  asks the user whether a call may be made
//! arguments.rs        a call's arguments, for the approval prompt
//! form_input.rs       fields of an elicitation form, and the user's input
//! elicitation.rs      asks the user for what a tool's server elicits
//! ```

mod approval_prompt;
mod arguments;
mod elicitation;
mod form_input;
mod plan_outline;
mod render;
mod run_progress;
mod screen;
mod sent_request;
mod view;
mod view_state;

pub(crate) use approval_prompt::{ApprovalMode, is_interactive};
pub(crate) use arguments::all_lines as argument_lines;
pub(crate) use render::{format_duration, stored_run_lines, usage_line};
pub(crate) use run_progress::{RunProgress, StepStatus};
pub(crate) use screen::stderr_columns;
pub(crate) use sent_request::{reply_lines, sent_lines};
pub(crate) use view::RunView;
