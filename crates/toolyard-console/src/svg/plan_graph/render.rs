//! Writes a laid-out plan as SVG.

use std::{collections::BTreeSet, fmt::Write as _};

use askama::Template;

use super::layout::{LARGE_NODE, Layout, Place, ROW_GAP};
use crate::{
    api::StepView,
    format::{duration, shorten},
    svg::{
        step_state::{STEP_STATES, StepState},
        svg_text::{Font, shorten_to_width, step_anchor},
    },
    text::{DrawingText, fill},
};

/// Longest id in a `data-step` attribute; steps with longer ids are updated with the whole drawing.
const MAX_STEP_ATTRIBUTE_BYTES: usize = 64;
/// Bytes of all edges.
const MAX_EDGE_BYTES: usize = 20_000;

const ID_FONT: Font = Font { size_tenths: 130, is_monospace: false };
const TOOL_FONT: Font = Font { size_tenths: 110, is_monospace: true };
const SMALL_FONT: Font = Font { size_tenths: 115, is_monospace: false };

/// How much is written about each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Full,
    /// No description in the node.
    Compact,
    /// No description in the title either.
    Brief,
    /// The id only.
    Minimal,
}

#[derive(Template)]
#[template(path = "plan_drawing.html")]
struct PlanDrawing<'a> {
    layout: &'a Layout,
    summary: String,
    /// All dependencies as one path, because an element for each would double their size.
    lines: String,
    arrows: String,
    nodes: Vec<NodeDrawing>,
}

struct NodeDrawing {
    link: String,
    id: Option<String>,
    state: StepState,
    place: Place,
    title: String,
    name: String,
    status: Option<String>,
    description: String,
    tool: String,
}

/// The drawing, and the number of dependencies that it lacks.
pub(super) fn render(
    steps: &[StepView],
    layout: &Layout,
    detail: Detail,
    text: &DrawingText,
    page_of: &dyn Fn(usize) -> String,
) -> (String, usize) {
    let (lines, arrows, hidden_edges) = draw_edges(layout);
    let nodes = steps.iter().enumerate().filter_map(|(position, step)| {
        let place = *layout.places.get(&position)?;
        let link = format!("{}#{}", page_of(position), step_anchor(&step.id));
        Some(NodeDrawing::of(step, place, link, layout, detail, text))
    });
    let drawing =
        PlanDrawing { layout, summary: summary(steps, text), lines, arrows, nodes: nodes.collect() };
    (drawing.render().unwrap_or_default(), hidden_edges)
}

/// Such as `Plan · Steps: 3 · Done 1, Waiting 2`.
fn summary(steps: &[StepView], text: &DrawingText) -> String {
    let counts = STEP_STATES
        .map(|state| (state, steps.iter().filter(|step| StepState::of_api(&step.state) == state).count()));
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(state, count)| format!("{} {count}", text.state(state))).collect();
    format!("{} · {}", fill(text.plan, steps.len()), counts.join(", "))
}

/// The paths of the lines and arrows, and how many dependencies did not fit into [`MAX_EDGE_BYTES`].
fn draw_edges(layout: &Layout) -> (String, String, usize) {
    let node = layout.node;
    let (mut lines, mut arrows, mut hidden) = (String::new(), String::new(), 0);
    let mut ends: BTreeSet<(usize, usize)> = BTreeSet::new();
    for &(before, after) in &layout.edges {
        let (Some(from), Some(to)) = (layout.places.get(&before), layout.places.get(&after)) else {
            continue;
        };
        if lines.len() > MAX_EDGE_BYTES {
            hidden += 1;
            continue;
        }
        let (start_x, start_y) = (from.x + node.width / 2, from.y + node.height);
        let end_x = to.x + node.width / 2;
        let _ = if layout.passes_rows((before, after)) {
            // Around the rows between, so that no line seems to end at a step that it passes. The lines of a step share a lane.
            let (first_y, lane_x, last_y) =
                (start_y + ROW_GAP / 3, layout.lanes_x + before % 8 * 4, to.y - ROW_GAP / 2);
            write!(lines, "M{start_x} {start_y}V{first_y}H{lane_x}V{last_y}H{end_x}V{}", to.y)
        } else {
            write!(lines, "M{start_x} {start_y}L{end_x} {}", to.y)
        };
        if ends.insert((end_x, to.y)) {
            let _ = write!(arrows, "M{end_x} {}l-4-7h8z", to.y);
        }
    }
    (lines, arrows, hidden)
}

impl NodeDrawing {
    fn of(
        step: &StepView,
        place: Place,
        link: String,
        layout: &Layout,
        detail: Detail,
        text: &DrawingText,
    ) -> Self {
        let state = StepState::of_api(&step.state);
        let tool = step.tool.as_deref().unwrap_or_default();
        let (is_full, is_minimal) = (detail == Detail::Full, detail == Detail::Minimal);
        // The title has what the node does not show anyway.
        let mut title = format!("{}: {}", text.state(state), shorten(&step.id, 80));
        if is_full && !tool.is_empty() {
            let _ = write!(title, " · {tool}");
        }
        if matches!(detail, Detail::Full | Detail::Compact) && !step.description.is_empty() {
            let _ = write!(title, " · {}", step.description);
        }
        let (max_title_chars, max_id_bytes) = match detail {
            Detail::Full => (320, MAX_STEP_ATTRIBUTE_BYTES),
            Detail::Compact => (60, MAX_STEP_ATTRIBUTE_BYTES),
            Detail::Brief => (30, MAX_STEP_ATTRIBUTE_BYTES),
            Detail::Minimal => (16, MAX_STEP_ATTRIBUTE_BYTES / 4),
        };
        // The text of the state may change while the drawing stays, so room for the longest is reserved.
        let width = layout.node.width - 42;
        let shown = |text: &str, font: Font, is_shown: bool| {
            if is_shown { shorten_to_width(text, width, font) } else { String::new() }
        };
        Self {
            link,
            id: (step.id.len() <= max_id_bytes).then(|| step.id.clone()),
            state,
            place,
            title: shorten(&title, max_title_chars).into_owned(),
            name: shorten_to_width(&step.id, width - 56, ID_FONT),
            status: (!is_minimal).then(|| match (state, step.duration_ms) {
                (StepState::Done, Some(milliseconds)) => duration(milliseconds),
                (state, _) => text.short_state(state).to_owned(),
            }),
            description: shown(&step.description, SMALL_FONT, is_full),
            tool: shown(tool, TOOL_FONT, !is_minimal),
        }
    }
}
