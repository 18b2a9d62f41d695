//! What a caller receives of an output: size budget, truncation, stored results, synthesis of several outputs.

pub(crate) mod budget;
pub(crate) mod memory_results;
pub(crate) mod structured;
pub(crate) mod synthesizer;
pub(crate) mod truncate;
