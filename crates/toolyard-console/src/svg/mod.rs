//! Drawings as SVG text: the graph of a plan, charts and timelines.
//!
//! All functions are pure and deterministic. Every text of a caller is sanitized and escaped here, so that the result can
//! be written into a page as it is. Colours come from classes (`assets/graph.css`), because the pages forbid inline styles.

pub(crate) mod charts;
pub(crate) mod plan_graph;
pub(crate) mod step_state;
pub(crate) mod svg_text;
pub(crate) mod timeline;
