//! Charts: sparkline and time series.
//!
//! Each has `role="img"` and a name that tells its content in words. Pages with a time series also have its numbers as a table.

mod scale;
mod time_series;

#[cfg(test)]
mod charts_tests;

pub(crate) use scale::nice_step;
pub(crate) use time_series::{Series, TimeSeries, draw_sparkline, draw_time_series};
