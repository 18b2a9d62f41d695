//! Charts: sparkline, time series, list of bars, latency bar.
//!
//! Each has `role="img"` and a name that tells its content in words; pages with a chart also have its numbers as a table.

mod bars;
mod scale;
mod time_series;

#[cfg(test)]
mod charts_tests;

pub use bars::{BarRow, draw_bar_list, draw_latency_bar};
pub(crate) use scale::nice_step;
pub use time_series::{Series, TimeSeries, draw_sparkline, draw_time_series};
