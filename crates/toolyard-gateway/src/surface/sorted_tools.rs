//! [`SortedTools`]: tools sorted by exposed name, in parts that lists before and after a change share.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::exposed_tools::ExposedTool;

/// Tools of a part. A part that has grown to twice as many is split.
const PART_TOOLS: usize = 256;

/// Tools by ascending name; no two have the same name.
#[derive(Debug, Default)]
pub(crate) struct SortedTools {
    /// None is empty.
    parts: Vec<Arc<[ExposedTool]>>,
    count: usize,
}

impl SortedTools {
    pub(super) fn new(mut tools: Vec<ExposedTool>) -> Self {
        tools.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let count = tools.len();
        let mut parts = Vec::new();
        push_parts(tools, &mut parts);
        Self { parts, count }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ExposedTool> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&ExposedTool> {
        let part = self.parts.get(self.part_of(name))?;
        let index = part.binary_search_by(|known| (*known.name).cmp(name)).ok()?;
        part.get(index)
    }

    /// The tools without those of some names, and with others. Costs time in proportion to these, not to all tools.
    pub(super) fn changed(&self, removed: &HashSet<Arc<str>>, added: Vec<ExposedTool>) -> Self {
        let mut changes: BTreeMap<usize, Vec<ExposedTool>> = BTreeMap::new();
        for name in removed {
            changes.entry(self.part_of(name)).or_default();
        }
        for tool in added {
            changes.entry(self.part_of(&tool.name)).or_default().push(tool);
        }
        let mut parts: Vec<Arc<[ExposedTool]>> = Vec::with_capacity(self.parts.len() + 1);
        // An empty list has no parts, but `part_of` is 0 for the tools that are added to it.
        for at in 0..self.parts.len().max(1) {
            let part = self.parts.get(at);
            match changes.remove(&at) {
                None => parts.extend(part.map(Arc::clone)),
                Some(mut tools) => {
                    let known = part.into_iter().flat_map(|part| part.iter());
                    tools.extend(known.filter(|tool| !removed.contains(&tool.name)).cloned());
                    tools.sort_unstable_by(|one, other| one.name.cmp(&other.name));
                    push_parts(tools, &mut parts);
                }
            }
        }
        let count = parts.iter().map(|part| part.len()).sum();
        Self { parts, count }
    }

    /// The index of the part that has the name, or would have it.
    fn part_of(&self, name: &str) -> usize {
        let starts_at_or_before =
            |part: &Arc<[ExposedTool]>| part.first().is_some_and(|first| *first.name <= *name);
        self.parts.partition_point(starts_at_or_before).saturating_sub(1)
    }
}

/// Adds sorted tools as parts: as one unless there are too many.
fn push_parts(tools: Vec<ExposedTool>, parts: &mut Vec<Arc<[ExposedTool]>>) {
    let (mut left, mut tools) = (tools.len(), tools.into_iter());
    while left >= 2 * PART_TOOLS {
        parts.push(tools.by_ref().take(PART_TOOLS).collect());
        left -= PART_TOOLS;
    }
    if left > 0 {
        parts.push(tools.collect());
    }
}
