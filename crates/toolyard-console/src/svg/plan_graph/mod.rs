//! The graph of a plan: steps in layers from top to bottom, and their dependencies.
//!
//! Text has at least 11 pixels; a large drawing is wider or higher than its container, which scrolls.

mod layout;
#[cfg(test)]
mod plan_graph_tests;
mod render;

use layout::{LARGE_NODE, Layout};
use render::{Detail, render};

use crate::{api::StepView, text::DrawingText};

/// Steps that are drawn; a page lists the others.
pub(crate) const MAX_DRAWN_STEPS: usize = 240;
/// Largest drawing in bytes.
const MAX_GRAPH_BYTES: usize = 74_000;

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

/// Draws the steps of a plan for a container of about `available_width` pixels. Positions depend on the steps and their
/// dependencies only, so that drawings of the same plan in other states are alike.
///
/// Each node is a link to [`step_anchor`](super::svg_text::step_anchor) with `data-step` and `data-state`; a script
/// updates the state by `data-state`, the `href` of its shape (`#pg-n-STATE`) and the text of the class `pg-r`. The link
/// starts with the text that `page_of` returns for the position of the step, such as `?from=50`; it is empty if the page
/// itself has the details.
pub(crate) fn draw_plan(
    steps: &[StepView],
    available_width: usize,
    text: &DrawingText,
    page_of: &dyn Fn(usize) -> String,
) -> PlanGraph {
    let mut drawn = steps.get(..MAX_DRAWN_STEPS).unwrap_or(steps);
    loop {
        let layout = Layout::of_steps(drawn, available_width);
        // Small nodes have no room for descriptions.
        let details = [Detail::Full, Detail::Compact, Detail::Brief, Detail::Minimal];
        for detail in details.into_iter().skip(usize::from(layout.node != LARGE_NODE)) {
            let (svg, hidden_dependencies) = render(drawn, &layout, detail, text, page_of);
            if svg.len() <= MAX_GRAPH_BYTES {
                return PlanGraph { svg, hidden_steps: steps.len() - drawn.len(), hidden_dependencies };
            }
        }
        // Ids may be much longer when they are escaped.
        drawn = drawn.get(..drawn.len() / 2).unwrap_or_default();
    }
}
