//! Writes a laid-out plan as SVG.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    LARGE_NODE, PlanStep,
    layout::{BLOCK_CAPTION, BLOCK_PADDING, Direction, Layout, NodeSize},
};
use crate::format::duration;
use crate::svg::{
    step_state::{DrawingWords, STEP_STATES, StepState, with_number},
    svg_text::{Font, escaped, escaped_to_width, escaped_within, step_anchor},
};

/// Longest id in a `data-step` attribute, escaped; steps with longer ids are updated with the whole drawing.
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
    Compact,
    /// Titles without descriptions.
    Brief,
    /// The id only: for texts that would make the drawing too large.
    Minimal,
}

impl Detail {
    /// The next smaller amount.
    pub(super) fn reduced(self) -> Option<Self> {
        match self {
            // The size of nodes is decided before; compact texts fit into large nodes.
            Self::Full => Some(Self::Compact),
            Self::Compact => Some(Self::Brief),
            Self::Brief => Some(Self::Minimal),
            Self::Minimal => None,
        }
    }

    fn title_bytes(self) -> usize {
        match self {
            Self::Full => 400,
            Self::Compact => 80,
            Self::Brief => 30,
            Self::Minimal => 16,
        }
    }

    fn step_attribute_bytes(self) -> usize {
        if self == Self::Minimal { MAX_STEP_ATTRIBUTE_BYTES / 4 } else { MAX_STEP_ATTRIBUTE_BYTES }
    }
}

/// A drawing and the number of edges that it lacks.
pub(super) struct GraphSvg {
    pub(super) svg: String,
    pub(super) hidden_edges: usize,
}

pub(super) fn render(
    steps: &[PlanStep],
    layout: &Layout,
    detail: Detail,
    words: &DrawingWords,
    page_of: &dyn Fn(usize) -> String,
) -> GraphSvg {
    let mut svg = String::with_capacity(512 * steps.len() + 2_000);
    let Layout { width, height, .. } = layout;
    // Texts have their places from the style sheet, which would otherwise be repeated in every node.
    let size = if layout.node.width < LARGE_NODE.width { " pg-small" } else { "" };
    let _ = write!(
        svg,
        r#"<svg class="pg{size}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="group" aria-label="{}"><defs>"#,
        escaped(&summary(steps, words)),
    );
    for state in STEP_STATES {
        let token = state.token();
        let _ = write!(
            svg,
            r#"<g id="pg-s-{token}" class="pg-s" transform="translate(10 8)">{}</g>"#,
            state.symbol()
        );
    }
    let NodeSize { width, height } = layout.node;
    let _ = write!(svg, r#"<rect id="pg-box" class="pg-box" width="{width}" height="{height}" rx="8"/>"#);
    for token in STEP_STATES.map(StepState::token) {
        let _ = write!(svg, r##"<g id="pg-n-{token}"><use href="#pg-box"/><use href="#pg-s-{token}"/></g>"##);
    }
    svg.push_str("</defs>");
    push_block_frames(&mut svg, layout, words);
    let hidden_edges = push_edges(&mut svg, layout);
    for (position, x, y) in layout.step_corners() {
        if let Some(step) = steps.get(position) {
            let link = format!("{}#{}", escaped(&page_of(position)), step_anchor(&step.id));
            push_node(&mut svg, step, &link, (x, y), layout.node, detail, words);
        }
    }
    svg.push_str("</svg>");
    GraphSvg { svg, hidden_edges }
}

/// Such as `Plan · Steps: 3 · Done 1, Waiting 2`.
fn summary(steps: &[PlanStep], words: &DrawingWords) -> String {
    let mut text = with_number(words.plan, steps.len());
    let mut separator = " · ";
    for state in STEP_STATES {
        let count = steps.iter().filter(|step| step.state == state).count();
        if count > 0 {
            let _ = write!(text, "{separator}{} {count}", words.state(state));
            separator = ", ";
        }
    }
    text
}

fn push_block_frames(svg: &mut String, layout: &Layout, words: &DrawingWords) {
    for unit in layout.units.iter().filter(|unit| unit.steps.len() > 1) {
        let (x, y) = layout.corner(unit);
        let (width, height) = match layout.direction {
            Direction::Down => (unit.cross_size, unit.main_size),
            Direction::Right => (unit.main_size, unit.cross_size),
        };
        let caption = escaped(&with_number(words.parallel, unit.steps.len()));
        let (text_x, text_y) = (x + BLOCK_PADDING, y + BLOCK_CAPTION);
        let _ = write!(
            svg,
            r#"<g class="pg-block"><rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/><text x="{text_x}" y="{text_y}">{caption}</text></g>"#
        );
    }
}

/// Writes the edges below the nodes, as one path for all lines and one for all arrows, because an element for each edge
/// would double their size. Returns how many did not fit into [`MAX_EDGE_BYTES`].
fn push_edges(svg: &mut String, layout: &Layout) -> usize {
    let (mut lines, mut hidden) = (String::new(), 0);
    // Edges to the same unit end in the same point, so they share an arrow.
    let mut ends: BTreeSet<usize> = BTreeSet::new();
    for edge in &layout.edges {
        let path = edge_path(layout, edge);
        if lines.len() + path.len() > MAX_EDGE_BYTES {
            hidden += 1;
        } else {
            lines.push_str(&path);
            ends.extend(edge.last());
        }
    }
    let arrow = if layout.direction == Direction::Down { "l-4-7h8z" } else { "l-7-4v8z" };
    let _ = write!(svg, r#"<path class="pg-edges" d="{lines}"/><path class="pg-arrows" d=""#);
    for unit in ends.into_iter().filter_map(|unit| layout.units.get(unit)) {
        let (x, y) = layout.point(unit.main, unit.cross);
        let _ = write!(svg, "M{x} {y}{arrow}");
    }
    svg.push_str(r#""/>"#);
    hidden
}

/// The path of an edge: from the end of its first unit, straight through its bends, to the start of its last unit. Curves
/// run between layers only, where no node is. Relative commands have fewer digits.
fn edge_path(layout: &Layout, edge: &[usize]) -> String {
    let mut path = String::new();
    let straight = if layout.direction == Direction::Down { 'v' } else { 'h' };
    let mut previous: Option<(i32, i32)> = None;
    for &unit in edge {
        let Some(unit) = layout.units.get(unit) else { continue };
        let layer_end = layout.layer_ends.get(unit.layer).copied().unwrap_or_default();
        let is_last = previous.is_some() && !unit.steps.is_empty();
        // The straight part through the layer of this unit.
        let mut length = if is_last { 0 } else { layer_end - unit.main };
        match previous {
            None => {
                let end = unit.main + unit.main_size;
                let (x, y) = layout.point(end, unit.cross);
                let _ = write!(path, "M{x} {y}");
                length = layer_end - end;
            }
            Some((main, cross)) if cross == unit.cross => length += unit.main - main,
            Some((main, cross)) => {
                let (along, across) = (unit.main - main, unit.cross - cross);
                let points = [(along / 2, 0), (along / 2, across), (along, across)];
                push_curve(&mut path, points.map(|(along, across)| layout.point(along, across)));
            }
        }
        if length > 0 {
            let _ = write!(path, "{straight}{length}");
        }
        previous = Some((layer_end, unit.cross));
    }
    path
}

/// Appends a relative curve; a minus sign separates numbers as well as a space does.
fn push_curve(path: &mut String, points: [(i32, i32); 3]) {
    let mut separator = "c";
    for number in points.into_iter().flat_map(|(x, y)| [x, y]) {
        let is_separated = separator == " " && number < 0;
        let _ = write!(path, "{}{number}", if is_separated { "" } else { separator });
        separator = " ";
    }
}

fn push_node(
    svg: &mut String,
    step: &PlanStep,
    link: &str,
    (x, y): (i32, i32),
    node: NodeSize,
    detail: Detail,
    words: &DrawingWords,
) {
    let state = step.state;
    let token = state.token();
    let _ = write!(svg, r#"<a href="{link}""#);
    let id = escaped(&step.id);
    if id.len() <= detail.step_attribute_bytes() {
        let _ = write!(svg, r#" data-step="{id}""#);
    }
    let title = escaped_within(&title_of(step, detail), detail.title_bytes());
    let _ = write!(
        svg,
        r##" data-state="{token}" transform="translate({x} {y})"><title>{}: {title}</title><use href="#pg-n-{token}"/>"##,
        words.state(state),
    );
    // The text of the state may change while the drawing stays, so room for the longest is reserved.
    let text_width = u32::try_from(node.width - 42).unwrap_or_default();
    let name = escaped_to_width(&step.id, text_width.saturating_sub(56), ID_FONT);
    let _ = write!(svg, "<text>{name}</text>");
    if detail != Detail::Minimal {
        let status = status_text(step, words);
        let _ = write!(svg, r#"<text class="pg-r">{status}</text>"#);
    }
    if detail == Detail::Full && !step.description.trim().is_empty() {
        let text = escaped_to_width(&step.description, text_width, SMALL_FONT);
        let _ = write!(svg, r#"<text class="pg-d">{text}</text>"#);
    }
    if detail != Detail::Minimal && !step.tool.trim().is_empty() {
        let text = escaped_to_width(&step.tool, text_width, TOOL_FONT);
        let _ = write!(svg, r#"<text class="pg-t">{text}</text>"#);
    }
    svg.push_str("</a>");
}

/// The text at the right of a node: the duration of a step that ended, otherwise a word for its state.
fn status_text(step: &PlanStep, words: &DrawingWords) -> String {
    match (step.state, step.duration_ms) {
        (StepState::Done, Some(milliseconds)) => duration(milliseconds),
        (state, _) => words.short_state(state).to_owned(),
    }
}

/// The title of a step for pointers and screen readers, besides its state. In large plans, only what the node does not
/// show anyway.
fn title_of(step: &PlanStep, detail: Detail) -> String {
    let mut title = step.id.chars().take(80).collect::<String>();
    let tool = if detail == Detail::Full { step.tool.as_str() } else { "" };
    let description = if detail == Detail::Brief { "" } else { step.description.as_str() };
    for text in [tool, description] {
        if !text.trim().is_empty() {
            title.push_str(" · ");
            title.extend(text.trim().chars().take(240));
        }
    }
    title
}
