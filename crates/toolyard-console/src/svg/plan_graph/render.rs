//! Writes a laid-out plan as SVG.

use std::fmt::Write as _;

use super::{
    PlanStep,
    layout::{BLOCK_CAPTION, BLOCK_PADDING, Direction, Layout, NodeSize},
};
use crate::svg::{
    step_state::{DrawingWords, STEP_STATES, StepState, with_number},
    svg_text::{Font, duration_text, escaped, escaped_to_width, escaped_within, step_anchor},
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

    fn max_edge_bytes(self) -> usize {
        if self == Self::Minimal { MAX_EDGE_BYTES / 4 } else { MAX_EDGE_BYTES }
    }
}

/// A drawing and the number of edges that it lacks.
pub(super) struct Rendered {
    pub(super) svg: String,
    pub(super) hidden_edges: usize,
}

pub(super) fn render(
    steps: &[PlanStep],
    layout: &Layout,
    detail: Detail,
    words: &DrawingWords,
    page_of: &dyn Fn(usize) -> String,
) -> Rendered {
    let mut svg = String::with_capacity(512 * steps.len() + 2_000);
    let Layout { width, height, .. } = layout;
    let _ = write!(
        svg,
        r#"<svg class="pg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="group" aria-label="{}"><defs>"#,
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
    svg.push_str(concat!(
        r#"<marker id="pg-arrow" class="pg-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" "#,
        r#"orient="auto"><path d="M0 .5 8 4 0 7.5Z"/></marker>"#,
    ));
    let NodeSize { width, height } = layout.node;
    let _ =
        write!(svg, r#"<rect id="pg-box" class="pg-box" width="{width}" height="{height}" rx="8"/></defs>"#);
    push_block_frames(&mut svg, layout, words);
    let hidden_edges = push_edges(&mut svg, layout, detail.max_edge_bytes());
    for (position, x, y) in layout.step_corners() {
        if let Some(step) = steps.get(position) {
            let link = format!("{}#{}", escaped(&page_of(position)), step_anchor(&step.id));
            push_node(&mut svg, step, &link, (x, y), layout.node, detail, words);
        }
    }
    svg.push_str("</svg>");
    Rendered { svg, hidden_edges }
}

/// Such as `Plan with 3 steps: Done 1, Waiting 2`.
fn summary(steps: &[PlanStep], words: &DrawingWords) -> String {
    let mut text = with_number(words.plan, steps.len());
    let mut separator = ": ";
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

/// Writes the edges below the nodes; returns how many did not fit into `max_bytes`.
fn push_edges(svg: &mut String, layout: &Layout, max_bytes: usize) -> usize {
    svg.push_str(r#"<g class="pg-edges" marker-end="url(#pg-arrow)">"#);
    let limit = svg.len() + max_bytes;
    let mut hidden = 0;
    for edge in &layout.edges {
        let path = edge_path(layout, edge);
        if svg.len() + path.len() + 14 > limit {
            hidden += 1;
        } else {
            let _ = write!(svg, r#"<path d="{path}"/>"#);
        }
    }
    svg.push_str("</g>");
    hidden
}

/// The path of an edge: from the end of its first unit, straight through its bends, to the start of its last unit. Curves
/// run between layers only, where no node is.
fn edge_path(layout: &Layout, edge: &[usize]) -> String {
    let mut path = String::new();
    let straight = if layout.direction == Direction::Down { 'V' } else { 'H' };
    let mut previous: Option<(i32, i32)> = None;
    for &unit in edge {
        let Some(unit) = layout.units.get(unit) else { continue };
        match previous {
            None => {
                let (x, y) = layout.point(unit.main + unit.main_size, unit.cross);
                let _ = write!(path, "M{x} {y}");
            }
            Some((main, cross)) if cross == unit.cross => {
                let _ = write!(path, "{straight}{}", unit.main);
                debug_assert!(main <= unit.main, "edges lead to later layers");
            }
            Some((main, cross)) => {
                let middle = main + (unit.main - main) / 2;
                let (first, second) = (layout.point(middle, cross), layout.point(middle, unit.cross));
                let end = layout.point(unit.main, unit.cross);
                let _ =
                    write!(path, "C{} {} {} {} {} {}", first.0, first.1, second.0, second.1, end.0, end.1);
            }
        }
        let layer_end = layout.layer_ends.get(unit.layer).copied().unwrap_or_default();
        let is_last = previous.is_some() && !unit.steps.is_empty();
        if !is_last && (previous.is_some() || layer_end > unit.main + unit.main_size) {
            let _ = write!(path, "{straight}{layer_end}");
        }
        previous = Some((layer_end, unit.cross));
    }
    path
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
        r##" data-state="{token}" transform="translate({x} {y})"><title>{}: {title}</title><use href="#pg-box"/><use href="#pg-s-{token}"/>"##,
        words.state(state),
    );
    // The text of the state may change while the drawing stays, so room for the longest is reserved.
    let text_width = u32::try_from(node.width - 42).unwrap_or_default();
    let name = escaped_to_width(&step.id, text_width.saturating_sub(56), ID_FONT);
    let right = node.width - 10;
    let _ = write!(svg, r#"<text x="32" y="21">{name}</text>"#);
    if detail != Detail::Minimal {
        let status = status_text(step, words);
        let _ = write!(svg, r#"<text class="pg-r" x="{right}" y="21">{status}</text>"#);
    }
    let mut baseline = 37;
    if detail == Detail::Full && !step.description.trim().is_empty() {
        let text = escaped_to_width(&step.description, text_width, SMALL_FONT);
        let _ = write!(svg, r#"<text class="pg-d" x="32" y="{baseline}">{text}</text>"#);
        baseline += 16;
    }
    if detail != Detail::Minimal && !step.tool.trim().is_empty() {
        let text = escaped_to_width(&step.tool, text_width, TOOL_FONT);
        let _ = write!(svg, r#"<text class="pg-t" x="32" y="{baseline}">{text}</text>"#);
    }
    svg.push_str("</a>");
}

/// What a node shows at its right: the duration of a step that ended, otherwise a word for its state.
fn status_text(step: &PlanStep, words: &DrawingWords) -> String {
    match (step.state, step.duration_ms) {
        (StepState::Done, Some(duration)) => duration_text(duration),
        (state, _) => words.short_state(state).to_owned(),
    }
}

/// What a pointer and a screen reader learn about a step, besides its state. In large plans, only what the node does not
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
