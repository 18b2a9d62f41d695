//! Values of steps: their storage during a run, and the views of them that prompts and users see.

pub(crate) mod blocking;
pub(crate) mod grid_cell;
mod outline;
mod result_shape;
mod step_value;
mod step_values;

pub(crate) use self::{
    outline::{outline, preview},
    result_shape::result_shape,
    step_value::step_value,
    step_values::{StepValues, ValueError},
};
