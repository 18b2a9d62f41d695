//! The dependencies of a plan as an acyclic graph without redundant edges.

use std::collections::{BTreeSet, HashMap};

use super::PlanStep;

/// Dependencies between the steps of a plan, by position. Every edge leads from a lower to a higher layer.
#[derive(Debug)]
pub(super) struct Dag {
    /// For every step, the steps that it directly depends on, ascending.
    pub(super) predecessors: Vec<Vec<usize>>,
    /// For every step, the steps that directly depend on it, ascending.
    pub(super) successors: Vec<Vec<usize>>,
    /// Length of the longest path to each step.
    pub(super) layers: Vec<usize>,
}

impl Dag {
    /// Reads the dependencies. Unknown steps, a step's dependency on itself, and those that would close a cycle are left
    /// out, and so is a dependency that follows from others.
    pub(super) fn of_steps(steps: &[PlanStep]) -> Self {
        let declared = declared_predecessors(steps);
        let (order, mut predecessors) = break_cycles(&declared);
        remove_implied(&order, &mut predecessors);
        let mut layers = vec![0_usize; steps.len()];
        let mut successors = vec![Vec::new(); steps.len()];
        for &step in &order {
            let own = neighbours(&predecessors, step);
            let layer = own.iter().filter_map(|&before| layers.get(before)).map(|layer| layer + 1).max();
            if let Some(slot) = layers.get_mut(step) {
                *slot = layer.unwrap_or_default();
            }
        }
        for (step, before) in predecessors.iter().enumerate() {
            for &before in before {
                if let Some(list) = successors.get_mut(before) {
                    list.push(step);
                }
            }
        }
        Self { predecessors, successors, layers }
    }
}

/// The neighbours of a step in `lists`; none if it does not exist.
pub(super) fn neighbours(lists: &[Vec<usize>], step: usize) -> &[usize] {
    lists.get(step).map_or(&[], Vec::as_slice)
}

fn declared_predecessors(steps: &[PlanStep]) -> Vec<Vec<usize>> {
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for (position, step) in steps.iter().enumerate() {
        positions.entry(&step.id).or_insert(position);
    }
    let of_step = |(position, step): (usize, &PlanStep)| {
        let known = step.depends_on.iter().filter_map(|id| positions.get(id.as_str()).copied());
        known.filter(|&before| before != position).collect::<BTreeSet<_>>().into_iter().collect()
    };
    steps.iter().enumerate().map(of_step).collect()
}

/// A topological order and the dependencies that agree with it. If all remaining steps wait for each other, the first one
/// of the plan loses its remaining dependencies.
fn break_cycles(declared: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut missing: Vec<usize> = declared.iter().map(Vec::len).collect();
    let mut followers = vec![Vec::new(); declared.len()];
    for (step, before) in declared.iter().enumerate() {
        for &before in before {
            if let Some(list) = followers.get_mut(before) {
                list.push(step);
            }
        }
    }
    let mut ready: BTreeSet<usize> =
        missing.iter().enumerate().filter(|(_, count)| **count == 0).map(|(step, _)| step).collect();
    let mut waiting: BTreeSet<usize> = (0..declared.len()).filter(|step| !ready.contains(step)).collect();
    let mut order = Vec::with_capacity(declared.len());
    let mut is_placed = vec![false; declared.len()];
    let mut predecessors = vec![Vec::new(); declared.len()];
    while let Some(step) = ready.pop_first().or_else(|| waiting.pop_first()) {
        let placed = |before: &usize| is_placed.get(*before).copied().unwrap_or_default();
        let kept: Vec<usize> = neighbours(declared, step).iter().copied().filter(placed).collect();
        if let Some(list) = predecessors.get_mut(step) {
            *list = kept;
        }
        if let Some(placed) = is_placed.get_mut(step) {
            *placed = true;
        }
        order.push(step);
        for &follower in neighbours(&followers, step) {
            if let Some(count) = missing.get_mut(follower) {
                *count = count.saturating_sub(1);
                if *count == 0 && waiting.remove(&follower) {
                    ready.insert(follower);
                }
            }
        }
    }
    (order, predecessors)
}

/// Removes the dependencies that follow from others, so that a chain whose steps name all earlier ones is drawn as a chain.
fn remove_implied(order: &[usize], predecessors: &mut [Vec<usize>]) {
    let mut ancestors: Vec<BitSet> = vec![BitSet::default(); predecessors.len()];
    for &step in order {
        let direct = neighbours(predecessors, step).to_vec();
        let mut indirect = BitSet::default();
        for &before in &direct {
            if let Some(set) = ancestors.get(before) {
                indirect.extend(set);
            }
        }
        if let Some(list) = predecessors.get_mut(step) {
            list.retain(|&before| !indirect.contains(before));
        }
        for before in direct {
            indirect.insert(before);
        }
        if let Some(set) = ancestors.get_mut(step) {
            *set = indirect;
        }
    }
}

/// A set of small numbers.
#[derive(Debug, Clone, Default)]
struct BitSet(Vec<u64>);

impl BitSet {
    fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn insert(&mut self, number: usize) {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        if let Some(word) = self.0.get_mut(number / 64) {
            *word |= 1 << (number % 64);
        }
    }

    fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }
}
