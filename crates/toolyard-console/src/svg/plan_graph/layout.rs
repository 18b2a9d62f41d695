//! Positions of the steps of a plan. They depend on the steps and their dependencies only, never on states, so that a live
//! drawing does not move.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::api::StepView;

/// Plans with more steps have small nodes.
const MAX_DETAILED_STEPS: usize = 60;
/// A wider layer is drawn in several rows that fit into the container.
const MAX_ROW_STEPS: usize = 8;
const MARGIN: usize = 12;
const COLUMN_GAP: usize = 18;
pub(super) const ROW_GAP: usize = 34;
/// Room at the right for dependencies that pass a row.
const LANES_WIDTH: usize = 40;

/// Size of a node in pixels; the style sheet has the places of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeSize {
    pub(super) width: usize,
    pub(super) height: usize,
}

pub(super) const SMALL_NODE: NodeSize = NodeSize { width: 180, height: 44 };
pub(super) const LARGE_NODE: NodeSize = NodeSize { width: 220, height: 64 };

impl NodeSize {
    fn columns_within(self, available_width: usize) -> usize {
        let room = available_width.saturating_sub(2 * MARGIN + LANES_WIDTH) + COLUMN_GAP;
        (room / (self.width + COLUMN_GAP)).max(1)
    }
}

/// The row of a step and the left upper corner of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) row: usize,
    pub(super) x: usize,
    pub(super) y: usize,
}

/// A laid-out plan.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) node: NodeSize,
    /// The places of the steps, by position in the plan.
    pub(super) places: BTreeMap<usize, Place>,
    /// Dependencies by position: the step before and the step after. The first one of each step precedes all others.
    pub(super) edges: Vec<(usize, usize)>,
    /// Where the room for dependencies that pass a row begins.
    pub(super) lanes_x: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Layout {
    pub(super) fn of_steps(steps: &[StepView], available_width: usize) -> Self {
        let ranked = rank_steps(steps);
        let layers = ordered_layers(&ranked);
        let widest = layers.iter().map(Vec::len).max().unwrap_or_default();
        let is_small =
            steps.len() > MAX_DETAILED_STEPS || widest > LARGE_NODE.columns_within(available_width);
        let node = if is_small { SMALL_NODE } else { LARGE_NODE };
        let columns = node.columns_within(available_width);
        let rows: Vec<&[usize]> = layers
            .iter()
            .flat_map(|layer| layer.chunks(if layer.len() > MAX_ROW_STEPS { columns } else { MAX_ROW_STEPS }))
            .collect();
        let (column, row_height) = (node.width + COLUMN_GAP, node.height + ROW_GAP);
        let longest = rows.iter().map(|row| row.len()).max().unwrap_or_default();
        let mut places = BTreeMap::new();
        for (row, members) in rows.iter().enumerate() {
            let start = MARGIN + (longest - members.len()) * column / 2;
            for (index, &step) in members.iter().enumerate() {
                places.insert(step, Place { row, x: start + index * column, y: MARGIN + row * row_height });
            }
        }
        let mut numbered: Vec<(usize, usize, usize)> = ranked
            .iter()
            .flat_map(|(&step, rank)| {
                rank.before.iter().enumerate().map(move |(index, &before)| (index, before, step))
            })
            .collect();
        numbered.sort_by_key(|(index, ..)| *index);
        let lanes_x = MARGIN + longest * column;
        let mut layout = Self {
            node,
            places,
            edges: numbered.into_iter().map(|(_, before, step)| (before, step)).collect(),
            lanes_x,
            width: lanes_x,
            height: (2 * MARGIN + rows.len() * row_height).saturating_sub(ROW_GAP),
        };
        if layout.edges.iter().any(|&edge| layout.passes_rows(edge)) {
            layout.width += LANES_WIDTH;
        }
        layout
    }

    /// Whether there are other rows between the two steps of a dependency.
    pub(super) fn passes_rows(&self, (before, after): (usize, usize)) -> bool {
        let row = |step| self.places.get(step).map_or(0, |place| place.row);
        row(&after) > row(&before) + 1
    }
}

/// What a step depends on.
#[derive(Debug)]
struct Rank {
    /// Length of the longest path to the step.
    layer: usize,
    /// The steps that it directly depends on, ascending.
    before: Vec<usize>,
    /// All steps that precede it.
    ancestors: BTreeSet<usize>,
}

/// Ranks the steps. Unknown steps, a step's dependency on itself, and those that would close a cycle are left out, and so is
/// a dependency that follows from others: a chain whose steps name all earlier ones is drawn as a chain.
fn rank_steps(steps: &[StepView]) -> BTreeMap<usize, Rank> {
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (position, step) in steps.iter().enumerate() {
        positions.entry(&step.id).or_insert(position);
    }
    let mut waiting: Vec<(usize, BTreeSet<usize>)> = steps
        .iter()
        .enumerate()
        .map(|(position, step)| {
            let known = step.depends_on.iter().filter_map(|id| positions.get(id.as_str()).copied());
            (position, known.filter(|&before| before != position).collect())
        })
        .collect();
    let mut ranked: BTreeMap<usize, Rank> = BTreeMap::new();
    while !waiting.is_empty() {
        // If all remaining steps wait for each other, the first one loses what it waits for.
        let is_ready = |declared: &BTreeSet<usize>| declared.iter().all(|before| ranked.contains_key(before));
        let next = waiting.iter().position(|(_, declared)| is_ready(declared)).unwrap_or_default();
        let (step, declared) = waiting.remove(next);
        let known: BTreeSet<usize> =
            declared.into_iter().filter(|before| ranked.contains_key(before)).collect();
        let ranks = || known.iter().filter_map(|before| ranked.get(before));
        let indirect: BTreeSet<usize> = ranks().flat_map(|rank| rank.ancestors.iter().copied()).collect();
        let layer = ranks().map(|rank| rank.layer + 1).max().unwrap_or_default();
        let before = known.difference(&indirect).copied().collect();
        ranked.insert(step, Rank { layer, before, ancestors: known.union(&indirect).copied().collect() });
    }
    ranked
}

/// The steps of each layer. A step is placed by the mean position of those that it depends on, which avoids most crossings;
/// steps that depend on the same ones keep the order of the plan.
fn ordered_layers(ranked: &BTreeMap<usize, Rank>) -> Vec<Vec<usize>> {
    let count = ranked.values().map(|rank| rank.layer + 1).max().unwrap_or_default();
    let mut layers = vec![Vec::new(); count];
    for (&step, rank) in ranked {
        if let Some(layer) = layers.get_mut(rank.layer) {
            layer.push(step);
        }
    }
    let mut positions: HashMap<usize, usize> = HashMap::new();
    for layer in &mut layers {
        layer.sort_by_cached_key(|step| {
            let before: &[usize] = ranked.get(step).map_or(&[], |rank| rank.before.as_slice());
            before.iter().filter_map(|before| positions.get(before)).sum::<usize>() / before.len().max(1)
        });
        // As fractions of the width, because rows are centred.
        let share = 1_000_000 / layer.len().max(1);
        positions.extend(layer.iter().enumerate().map(|(index, &step)| (step, index * share + share / 2)));
    }
    layers
}
