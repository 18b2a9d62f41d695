//! Positions of the steps of a plan. They depend on the steps and their dependencies only, never on states, so that a
//! live drawing does not move.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    coordinates::{assign_cross_positions, straighten_edges},
    dag::{Dag, neighbours},
    ordering::reduce_crossings,
};

/// Steps with the same neighbours that are drawn as one block, from this number on.
const MIN_BLOCK_STEPS: usize = 7;
/// Edges that are laid out; every step keeps at least one.
const MAX_EDGES: usize = 500;
/// Bends of edges that pass layers; edges beyond are drawn straight.
const MAX_BENDS: usize = 1_500;
/// Space of a bend across the direction of the edges.
const BEND_SIZE: i32 = 8;
/// Space around the drawing.
const MARGIN: i32 = 12;
/// Space inside the frame of a block.
pub(super) const BLOCK_PADDING: i32 = 10;
/// Height of the caption of a block.
pub(super) const BLOCK_CAPTION: i32 = 18;
/// Space between the steps of a block.
const BLOCK_GAP: i32 = 8;

/// The direction in which dependencies point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Down,
    Right,
}

/// Size of a node in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeSize {
    pub(super) width: i32,
    pub(super) height: i32,
}

/// A part of the graph that is placed as a whole: a step, a block of steps, or a bend of an edge (no steps).
#[derive(Debug, Clone, Default)]
pub(super) struct LayoutNode {
    pub(super) steps: Vec<usize>,
    pub(super) layer: usize,
    pub(super) columns: usize,
    /// Start along the direction of the edges.
    pub(super) main: i32,
    pub(super) main_size: i32,
    /// Centre across the direction of the edges.
    pub(super) cross: i32,
    pub(super) cross_size: i32,
}

/// A laid-out plan.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) direction: Direction,
    pub(super) node: NodeSize,
    pub(super) units: Vec<LayoutNode>,
    /// Edges as lists of units: the start, bends, the end.
    pub(super) edges: Vec<Vec<usize>>,
    /// The end of each layer along the direction of the edges.
    pub(super) layer_ends: Vec<i32>,
    pub(super) width: i32,
    pub(super) height: i32,
    /// Dependencies that are not drawn.
    pub(super) hidden_edges: usize,
}

impl Layout {
    /// Lays the plan out in the direction that needs less scrolling in a container of `available_width` pixels.
    pub(super) fn of_dag(dag: &Dag, node: NodeSize, available_width: i32) -> Self {
        let down = Self::in_direction(dag, node, available_width, Direction::Down);
        let right = Self::in_direction(dag, node, available_width, Direction::Right);
        // Pages scroll down with ease, sideways without.
        let cost =
            |layout: &Self| i64::from(layout.width.max(available_width)) * 3 + i64::from(layout.height);
        if cost(&right) < cost(&down) { right } else { down }
    }

    fn in_direction(dag: &Dag, node: NodeSize, available_width: i32, direction: Direction) -> Self {
        let mut units = units_of(dag, node, available_width, direction);
        let (pairs, hidden_edges) = unit_edges(dag, &units);
        let edges = add_bends(&mut units, &pairs);
        let (before, after) = adjacency(&edges, units.len());
        let layer_count = units.iter().map(|unit| unit.layer + 1).max().unwrap_or_default();
        let mut layers = vec![Vec::new(); layer_count];
        for (position, unit) in units.iter().enumerate() {
            if let Some(layer) = layers.get_mut(unit.layer) {
                layer.push(position);
            }
        }
        reduce_crossings(&mut layers, &before, &after, &sibling_groups(dag, &units));
        let (layer_gap, cross_gap) = match direction {
            Direction::Down => (34, 18),
            Direction::Right => (46, 12),
        };
        assign_cross_positions(&layers, &mut units, &before, &after, cross_gap);
        straighten_edges(&edges, &layers, &mut units, cross_gap);
        let (layer_ends, main_extent) = assign_main_positions(&layers, &mut units, layer_gap);
        let cross_extent = normalize_cross_positions(&mut units);
        let (width, height) = match direction {
            Direction::Down => (cross_extent, main_extent),
            Direction::Right => (main_extent, cross_extent),
        };
        Self { direction, node, units, edges, layer_ends, width, height, hidden_edges }
    }

    /// The left upper corner of every step that is drawn, with its position in the plan.
    pub(super) fn step_corners(&self) -> Vec<(usize, i32, i32)> {
        let mut corners = Vec::new();
        for unit in self.units.iter().filter(|unit| !unit.steps.is_empty()) {
            let (x, y) = self.corner(unit);
            let (mut left, mut top, mut column) = (x, y, 0);
            if unit.steps.len() > 1 {
                left += BLOCK_PADDING;
                top += BLOCK_PADDING + BLOCK_CAPTION;
            }
            let first = left;
            for &step in &unit.steps {
                if column == unit.columns {
                    (column, left) = (0, first);
                    top += self.node.height + BLOCK_GAP;
                }
                corners.push((step, left, top));
                left += self.node.width + BLOCK_GAP;
                column += 1;
            }
        }
        corners
    }

    /// The left upper corner of a unit.
    pub(super) fn corner(&self, unit: &LayoutNode) -> (i32, i32) {
        self.point(unit.main, unit.cross - unit.cross_size / 2)
    }

    /// The point at a position along and across the direction of the edges.
    pub(super) fn point(&self, main: i32, cross: i32) -> (i32, i32) {
        match self.direction {
            Direction::Down => (cross, main),
            Direction::Right => (main, cross),
        }
    }
}

/// For each unit with steps, a number that it shares with the units that have the same predecessors; `None` for bends.
fn sibling_groups(dag: &Dag, units: &[LayoutNode]) -> Vec<Option<usize>> {
    let mut numbers: BTreeMap<&[usize], usize> = BTreeMap::new();
    let group_of = |unit: &LayoutNode| {
        let predecessors = neighbours(&dag.predecessors, *unit.steps.first()?);
        let next = numbers.len();
        Some(*numbers.entry(predecessors).or_insert(next))
    };
    units.iter().map(group_of).collect()
}

/// The steps as units, in the order of the plan. Steps with the same neighbours become a block if they are many.
fn units_of(dag: &Dag, node: NodeSize, available_width: i32, direction: Direction) -> Vec<LayoutNode> {
    let mut groups: BTreeMap<(&[usize], &[usize]), Vec<usize>> = BTreeMap::new();
    for step in 0..dag.layers.len() {
        let key = (neighbours(&dag.predecessors, step), neighbours(&dag.successors, step));
        groups.entry(key).or_default().push(step);
    }
    let mut members: Vec<Vec<usize>> = Vec::new();
    for group in groups.into_values() {
        if group.len() >= MIN_BLOCK_STEPS {
            members.push(group);
        } else {
            members.extend(group.into_iter().map(|step| vec![step]));
        }
    }
    members.sort_unstable();
    let unit_of = |steps: Vec<usize>| {
        let layer = steps.first().and_then(|&step| dag.layers.get(step)).copied().unwrap_or_default();
        let count = i32::try_from(steps.len()).unwrap_or(i32::MAX);
        let (mut width, mut height, mut columns) = (node.width, node.height, 1);
        if count > 1 {
            let fitting =
                (available_width - 2 * (MARGIN + BLOCK_PADDING) + BLOCK_GAP) / (node.width + BLOCK_GAP);
            columns = match direction {
                Direction::Down => fitting.clamp(2, 8).min(count),
                Direction::Right => (count / 8 + 1).min(3),
            };
            let rows = (count + columns - 1) / columns;
            width = columns * (node.width + BLOCK_GAP) - BLOCK_GAP + 2 * BLOCK_PADDING;
            height = rows * (node.height + BLOCK_GAP) - BLOCK_GAP + 2 * BLOCK_PADDING + BLOCK_CAPTION;
        }
        let (main_size, cross_size) = match direction {
            Direction::Down => (height, width),
            Direction::Right => (width, height),
        };
        let columns = usize::try_from(columns).unwrap_or(1);
        LayoutNode { steps, layer, columns, main_size, cross_size, ..LayoutNode::default() }
    };
    members.into_iter().map(unit_of).collect()
}

/// The edges between units, and how many are left out. The first edge to each unit precedes the others.
fn unit_edges(dag: &Dag, units: &[LayoutNode]) -> (Vec<(usize, usize)>, usize) {
    let mut unit_of_step = vec![0_usize; dag.layers.len()];
    for (position, unit) in units.iter().enumerate() {
        for &step in &unit.steps {
            if let Some(slot) = unit_of_step.get_mut(step) {
                *slot = position;
            }
        }
    }
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for (position, unit) in units.iter().enumerate() {
        // The steps of a block have the same neighbours.
        let step = unit.steps.first().copied().unwrap_or_default();
        let before = neighbours(&dag.predecessors, step).iter().filter_map(|&step| unit_of_step.get(step));
        let before: BTreeSet<usize> = before.copied().collect();
        let mut pairs = before.into_iter().map(|before| (before, position));
        first.extend(pairs.next());
        others.extend(pairs);
    }
    let room = MAX_EDGES.saturating_sub(first.len());
    let hidden = others.len().saturating_sub(room);
    first.extend(others.into_iter().take(room));
    (first, hidden)
}

/// Adds a bend in every layer that an edge passes, and returns the edges through their bends.
fn add_bends(units: &mut Vec<LayoutNode>, pairs: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut bends = 0;
    let layer_of = |units: &[LayoutNode], unit: usize| units.get(unit).map_or(0, |unit| unit.layer);
    let mut edges = Vec::with_capacity(pairs.len());
    for &(from, to) in pairs {
        let mut edge = vec![from];
        for layer in layer_of(units, from) + 1..layer_of(units, to) {
            if bends == MAX_BENDS {
                break;
            }
            bends += 1;
            edge.push(units.len());
            units.push(LayoutNode { layer, cross_size: BEND_SIZE, ..LayoutNode::default() });
        }
        edge.push(to);
        edges.push(edge);
    }
    edges
}

/// For every unit, its neighbours before and after it.
fn adjacency(edges: &[Vec<usize>], unit_count: usize) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let (mut before, mut after) = (vec![Vec::new(); unit_count], vec![Vec::new(); unit_count]);
    for edge in edges {
        for (&from, &to) in edge.iter().zip(edge.iter().skip(1)) {
            if let Some(list) = after.get_mut(from) {
                list.push(to);
            }
            if let Some(list) = before.get_mut(to) {
                list.push(from);
            }
        }
    }
    (before, after)
}

/// Places the layers one after the other; returns their ends and the size of the drawing.
fn assign_main_positions(layers: &[Vec<usize>], units: &mut [LayoutNode], gap: i32) -> (Vec<i32>, i32) {
    let mut start = MARGIN;
    let mut ends = Vec::with_capacity(layers.len());
    for layer in layers {
        let size = layer.iter().filter_map(|&unit| units.get(unit)).map(|unit| unit.main_size).max();
        let size = size.unwrap_or_default();
        for &unit in layer {
            if let Some(unit) = units.get_mut(unit) {
                unit.main = start;
                if unit.steps.is_empty() {
                    unit.main_size = size;
                }
            }
        }
        ends.push(start + size);
        start += size + gap;
    }
    (ends, (start - gap).max(0) + MARGIN)
}

/// Moves all units so that the first one starts at the margin; returns the size of the drawing.
fn normalize_cross_positions(units: &mut [LayoutNode]) -> i32 {
    let start = units.iter().map(|unit| unit.cross - unit.cross_size / 2).min().unwrap_or_default();
    let mut end = 0;
    for unit in units {
        unit.cross += MARGIN - start;
        end = end.max(unit.cross - unit.cross_size / 2 + unit.cross_size);
    }
    end + MARGIN
}
