//! The order of units within their layers: the barycenter heuristic, which reduces crossings of edges.

use std::collections::BTreeMap;

use super::dag::neighbours;

/// Sweeps over all layers; more hardly improve plans of this size.
const SWEEPS: usize = 12;

/// Reorders `layers` so that few edges cross. `before` and `after` have the neighbours of every unit in the layers before
/// and after its own. Deterministic: units with equal barycenters keep their order. Units with the same number in `siblings`
/// stay in the order of the plan, because a reader takes them for a list.
pub(super) fn reduce_crossings(
    layers: &mut Vec<Vec<usize>>,
    before: &[Vec<usize>],
    after: &[Vec<usize>],
    siblings: &[Option<usize>],
) {
    let mut positions = vec![0_usize; before.len()];
    store_positions(layers, &mut positions);
    let mut best = layers.clone();
    let mut fewest = count_crossings(layers, after, &positions);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let is_downward = sweep % 2 == 0;
        let toward = if is_downward { before } else { after };
        let count = layers.len();
        for step in 0..count {
            let Some(layer) = layers.get_mut(if is_downward { step } else { count - 1 - step }) else {
                continue;
            };
            layer.sort_by_key(|&unit| barycenter(unit, toward, &positions));
            restore_sibling_order(layer, siblings);
            for (position, &unit) in layer.iter().enumerate() {
                if let Some(slot) = positions.get_mut(unit) {
                    *slot = position;
                }
            }
        }
        let crossings = count_crossings(layers, after, &positions);
        if crossings < fewest {
            fewest = crossings;
            best.clone_from(layers);
        }
    }
    *layers = best;
}

/// Puts the members of each group of siblings into the order of the plan, in the slots that the group has.
fn restore_sibling_order(layer: &mut [usize], siblings: &[Option<usize>]) {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (slot, unit) in layer.iter().enumerate() {
        if let Some(Some(group)) = siblings.get(*unit) {
            groups.entry(*group).or_default().push(slot);
        }
    }
    for slots in groups.into_values() {
        let mut members: Vec<usize> = slots.iter().filter_map(|&slot| layer.get(slot).copied()).collect();
        // Units are numbered in the order of the plan.
        members.sort_unstable();
        for (slot, unit) in slots.into_iter().zip(members) {
            if let Some(place) = layer.get_mut(slot) {
                *place = unit;
            }
        }
    }
}

fn store_positions(layers: &[Vec<usize>], positions: &mut [usize]) {
    for layer in layers {
        for (position, &unit) in layer.iter().enumerate() {
            if let Some(slot) = positions.get_mut(unit) {
                *slot = position;
            }
        }
    }
}

/// The mean position of a unit's neighbours, in thousandths; its own position if it has none.
fn barycenter(unit: usize, toward: &[Vec<usize>], positions: &[usize]) -> usize {
    let of = |unit: usize| positions.get(unit).copied().unwrap_or_default() * 1_000;
    let list = neighbours(toward, unit);
    list.iter().map(|&other| of(other)).sum::<usize>().checked_div(list.len()).unwrap_or_else(|| of(unit))
}

/// The number of pairs of edges that cross.
pub(super) fn count_crossings(layers: &[Vec<usize>], after: &[Vec<usize>], positions: &[usize]) -> usize {
    let mut crossings = 0;
    for layer in layers {
        // Edges in the order of their start; every later edge that ends further left crosses.
        let mut ends: Vec<usize> = Vec::new();
        for &unit in layer {
            let mut own: Vec<usize> =
                neighbours(after, unit).iter().filter_map(|&other| positions.get(other).copied()).collect();
            own.sort_unstable();
            for &end in &own {
                crossings += ends.iter().filter(|&&earlier| earlier > end).count();
            }
            ends.extend(own);
        }
    }
    crossings
}
