//! Positions of units across the direction of the edges: near the mean of their neighbours, in the given order, without
//! overlaps.

use super::{dag::neighbours, layout::LayoutNode};

/// Sweeps over all layers.
const SWEEPS: usize = 10;

/// Sets the centre of every unit. In each sweep, a layer gets the positions that deviate least (squared) from the mean of
/// the neighbours among all that keep the order and `gap`.
pub(super) fn assign_cross_positions(
    layers: &[Vec<usize>],
    units: &mut [LayoutNode],
    before: &[Vec<usize>],
    after: &[Vec<usize>],
    gap: i32,
) {
    for layer in layers {
        let mut start = 0;
        for &unit in layer {
            if let Some(unit) = units.get_mut(unit) {
                unit.cross = start + unit.cross_size / 2;
                start += unit.cross_size + gap;
            }
        }
        // Centred around zero, so that layers without edges between them are centred, too.
        for &unit in layer {
            if let Some(unit) = units.get_mut(unit) {
                unit.cross -= (start - gap) / 2;
            }
        }
    }
    for sweep in 0..=SWEEPS {
        let count = layers.len();
        for position in 0..count {
            let is_downward = sweep % 2 == 0;
            let Some(layer) = layers.get(if is_downward { position } else { count - 1 - position }) else {
                continue;
            };
            let preferences: Vec<PreferredPosition> = layer
                .iter()
                .map(|&unit| {
                    let (near, far) = if is_downward { (before, after) } else { (after, before) };
                    // The last sweep balances both sides.
                    let far = if sweep == SWEEPS { neighbours(far, unit) } else { &[] };
                    preferred_position(unit, units, neighbours(near, unit), far)
                })
                .collect();
            place_layer(layer, units, &preferences, gap);
        }
    }
}

/// Puts all bends of an edge on one line, where their neighbours leave room for it.
pub(super) fn straighten_edges(
    edges: &[Vec<usize>],
    layers: &[Vec<usize>],
    units: &mut [LayoutNode],
    gap: i32,
) {
    let mut places = vec![(0_usize, 0_usize); units.len()];
    for (layer, members) in layers.iter().enumerate() {
        for (position, &unit) in members.iter().enumerate() {
            if let Some(place) = places.get_mut(unit) {
                *place = (layer, position);
            }
        }
    }
    for edge in edges {
        let bends = edge.get(1..edge.len().saturating_sub(1)).unwrap_or_default();
        let mut centres: Vec<i32> =
            bends.iter().filter_map(|&bend| units.get(bend)).map(|bend| bend.cross).collect();
        if centres.len() < 2 {
            continue;
        }
        centres.sort_unstable();
        let (mut lowest, mut highest) = (i32::MIN, i32::MAX);
        for &bend in bends {
            let Some(&(layer, position)) = places.get(bend) else { continue };
            let beside = |position: usize| layers.get(layer)?.get(position).and_then(|&unit| units.get(unit));
            let half = units.get(bend).map_or(0, |bend| (bend.cross_size + 1) / 2) + gap;
            if let Some(unit) = position.checked_sub(1).and_then(beside) {
                lowest = lowest.max(unit.cross + (unit.cross_size + 1) / 2 + half);
            }
            if let Some(unit) = beside(position + 1) {
                highest = highest.min(unit.cross - (unit.cross_size + 1) / 2 - half);
            }
        }
        if lowest <= highest
            && let Some(&median) = centres.get(centres.len() / 2)
        {
            for &bend in bends {
                if let Some(bend) = units.get_mut(bend) {
                    bend.cross = median.clamp(lowest, highest);
                }
            }
        }
    }
}

/// The position that a node prefers because of its neighbours, with a weight.
struct PreferredPosition {
    centre: i64,
    weight: i64,
}

fn preferred_position(unit: usize, units: &[LayoutNode], near: &[usize], far: &[usize]) -> PreferredPosition {
    let centre_of = |unit: usize| units.get(unit).map_or(0, |unit| i64::from(unit.cross));
    let is_bend = |unit: usize| units.get(unit).is_some_and(|unit| unit.steps.is_empty());
    let (mut sum, mut weight) = (0, 0);
    for &other in near.iter().chain(far) {
        // Parts of a long edge pull most, because a straight one is easier to follow.
        let pull = match (is_bend(unit), is_bend(other)) {
            (true, true) => 16,
            (true, false) | (false, true) => 2,
            (false, false) => 3,
        };
        sum += centre_of(other) * pull;
        weight += pull;
    }
    match sum.checked_div(weight) {
        Some(centre) => PreferredPosition { centre, weight },
        None => PreferredPosition { centre: centre_of(unit), weight: 1 },
    }
}

/// Neighbouring units of a layer that touch each other.
struct Block {
    sum: i64,
    weight: i64,
    units: usize,
}

impl Block {
    fn position(&self) -> i64 {
        self.sum.div_euclid(self.weight)
    }
}

/// Isotonic regression (pool adjacent violators) on positions from which the space before each unit is subtracted.
fn place_layer(layer: &[usize], units: &mut [LayoutNode], preferences: &[PreferredPosition], gap: i32) {
    let mut offsets = Vec::with_capacity(layer.len());
    let (mut offset, mut previous_size) = (0_i64, None);
    for &unit in layer {
        let size = units.get(unit).map_or(0, |unit| unit.cross_size);
        if let Some(previous) = previous_size {
            // Rounded up for each half, because centres are whole pixels.
            offset += i64::from((previous + 1) / 2 + (size + 1) / 2 + gap);
        }
        previous_size = Some(size);
        offsets.push(offset);
    }
    let mut blocks: Vec<Block> = Vec::with_capacity(layer.len());
    for (preference, offset) in preferences.iter().zip(&offsets) {
        let sum = (preference.centre - offset) * preference.weight;
        blocks.push(Block { sum, weight: preference.weight, units: 1 });
        while let [.., earlier, last] = blocks.as_slice() {
            if earlier.position() <= last.position() {
                break;
            }
            let merged = Block {
                sum: earlier.sum + last.sum,
                weight: earlier.weight + last.weight,
                units: earlier.units + last.units,
            };
            blocks.truncate(blocks.len() - 2);
            blocks.push(merged);
        }
    }
    let positions = blocks.iter().flat_map(|block| std::iter::repeat_n(block.position(), block.units));
    for ((&unit, offset), position) in layer.iter().zip(&offsets).zip(positions) {
        if let Some(unit) = units.get_mut(unit) {
            unit.cross = i32::try_from(position + offset).unwrap_or_default();
        }
    }
}
