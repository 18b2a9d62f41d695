//! Values of steps: their storage during a run, and the views of them that prompts and users see.

pub(crate) mod blocking;
mod compact_table;
pub(crate) mod grid_cell;
mod outline;
mod reasoned_value;
mod result_shape;
mod step_value;
mod step_values;

pub(crate) use self::{
    compact_table::compact_table,
    outline::{outline, preview},
    reasoned_value::{reasoned_text, reasoned_value},
    result_shape::result_shape,
    step_value::step_value,
    step_values::{StepValues, ValueError},
};
