//! How a run is shown while it goes on and afterwards.
//!
//! ```text
//! tree.rs    where a run stands, put together from its news
//! stages.rs  a plan in a line
//! lines.rs   that as lines, for a width
//! view.rs    whoever watches: a live tree on a terminal, plain lines elsewhere, JSON where it is wanted
//! screen.rs  what is drawn over again in place
//! person.rs  the person at the terminal, who may be asked
//! arguments.rs      what a call is made with, for whoever decides about it
//! tool_question.rs  what a tool wants to know, and what a person's words mean to it
//! asking.rs  tools that ask the person at the terminal
//! ```

mod arguments;
mod asking;
mod lines;
mod person;
mod screen;
mod stages;
mod tool_question;
mod tree;
mod view;

pub(crate) use asking::AskThePerson;
pub(crate) use lines::{row_lines, spent_line, time};
pub(crate) use person::{Decider, is_somebody_there};
pub(crate) use tree::{RowState, RunTree, effects_and_arguments};
pub(crate) use view::View;
