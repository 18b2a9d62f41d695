//! Results as data, tables and plots, and the floors they must not fall below.

pub mod floors;
pub mod plot;
pub mod results;
pub mod table;
