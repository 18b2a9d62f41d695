//! Drawings as SVG text: the graph of a plan and the timeline of a run.
//!
//! All functions are pure and deterministic. The templates escape the texts, in which the client of the API has made hidden
//! characters visible. Colours come from classes (`assets/graph.css`), because the pages forbid inline styles.

pub(crate) mod plan_graph;
pub(crate) mod step_state;
pub(crate) mod svg_text;
pub(crate) mod timeline;
