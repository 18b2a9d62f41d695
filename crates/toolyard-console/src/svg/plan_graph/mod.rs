//! The graph of a plan: a layered drawing of steps and their dependencies.
//!
//! Layers are longest paths, crossings are reduced by barycenters, and edges are smooth curves. Steps that have the same
//! neighbours are drawn as one block if they are many, with one edge in and one out. Text has at least 11 pixels; a large
//! drawing is wider or higher than its container, which scrolls.

mod coordinates;
mod dag;
mod layout;
mod ordering;
mod render;

#[cfg(test)]
mod plan_graph_tests;

use dag::Dag;
use layout::{Layout, NodeSize};
use render::{Detail, render};

use super::step_state::{DrawingWords, StepState};

/// Steps that are drawn; a page lists the others.
pub(crate) const MAX_DRAWN_STEPS: usize = 240;
/// Largest drawing in bytes.
pub(crate) const MAX_GRAPH_BYTES: usize = 74_000;
/// Plans with more steps are drawn with smaller nodes.
const MAX_DETAILED_STEPS: usize = 60;
/// Nodes of two and three lines; the style sheet has the places of their texts.
const SMALL_NODE: NodeSize = NodeSize { width: 180, height: 44 };
const LARGE_NODE: NodeSize = NodeSize { width: 220, height: 64 };
/// Narrower drawings have smaller nodes.
const MIN_DETAILED_WIDTH: i32 = 640;

/// A step of a plan, as far as the graph shows it. All texts may come from a model or a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanStep {
    /// Id of the step in the plan.
    pub(crate) id: String,
    /// The tool that it calls; empty for a step that only reasons.
    pub(crate) tool: String,
    /// A sentence about the step.
    pub(crate) description: String,
    /// Its state.
    pub(crate) state: StepState,
    /// How long it took, if it ended.
    pub(crate) duration_ms: Option<u64>,
    /// Ids of the steps that must end first.
    pub(crate) depends_on: Vec<String>,
}

/// A drawn plan.
#[derive(Debug, Clone)]
pub(crate) struct PlanGraph {
    /// The drawing, safe to be written into a page.
    pub(crate) svg: String,
    /// Steps of the plan that are not drawn.
    pub(crate) hidden_steps: usize,
    /// Dependencies that are not drawn.
    pub(crate) hidden_dependencies: usize,
}

/// Draws a plan for a container of about `available_width` pixels. Positions depend on the steps and their dependencies
/// only, so that drawings of the same plan in other states are alike.
///
/// Each node is a link to [`step_anchor`](super::svg_text::step_anchor) with `data-step` and `data-state`; a script
/// updates the state by `data-state`, the `href` of its shape (`#pg-n-STATE`) and the text of the class `pg-r`. The link
/// starts with the text that `page_of` returns for the position of the step, such as `?from=50`; it is empty if the page
/// itself has the details.
pub(crate) fn draw_plan(
    steps: &[PlanStep],
    available_width: i32,
    words: &DrawingWords,
    page_of: &dyn Fn(usize) -> String,
) -> PlanGraph {
    let drawn = steps.get(..MAX_DRAWN_STEPS).unwrap_or(steps);
    let is_small = drawn.len() > MAX_DETAILED_STEPS || available_width < MIN_DETAILED_WIDTH;
    let (node, mut detail) =
        if is_small { (SMALL_NODE, Detail::Compact) } else { (LARGE_NODE, Detail::Full) };
    let layout = Layout::of_dag(&Dag::of_steps(drawn), node, available_width.clamp(240, 4_000));
    let mut rendered = render(drawn, &layout, detail, words, page_of);
    while rendered.svg.len() > MAX_GRAPH_BYTES {
        let Some(less) = detail.reduced() else { break };
        detail = less;
        rendered = render(drawn, &layout, detail, words, page_of);
    }
    PlanGraph {
        svg: rendered.svg,
        hidden_steps: steps.len() - drawn.len(),
        hidden_dependencies: layout.hidden_edges + rendered.hidden_edges,
    }
}
