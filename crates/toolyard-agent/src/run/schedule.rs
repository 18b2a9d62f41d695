//! Which steps may start beside those in flight: readers of a source run together, a writer runs alone.

use std::collections::HashMap;

/// The source and the access of a step's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallSlot<'a> {
    /// Id of the step.
    pub(crate) step: &'a str,
    /// The source it calls; a step without a source never conflicts.
    pub(crate) source: Option<&'a str>,
    /// Whether it may change something at the source.
    pub(crate) writes: bool,
}

/// What is in flight at one source.
#[derive(Debug, Clone, Copy, Default)]
struct SourceLoad {
    readers: bool,
    writer: bool,
    /// A writer waits; later steps must not overtake it.
    writer_waits: bool,
}

/// Returns which of the ready steps, given in the order of the plan, may start beside those in flight. A writer waits
/// for all calls to its source, and later steps wait for the writer.
pub(crate) fn startable_steps<'a>(ready: &[CallSlot<'a>], in_flight: &[CallSlot<'_>]) -> Vec<&'a str> {
    let mut sources: HashMap<&str, SourceLoad> = HashMap::new();
    for slot in in_flight {
        if let Some(source) = slot.source {
            sources.entry(source).or_default().add(slot.writes);
        }
    }
    let mut start = Vec::new();
    for slot in ready {
        let Some(source) = slot.source else {
            start.push(slot.step);
            continue;
        };
        let load = sources.get(source).copied().unwrap_or_default();
        let load = match load.admits(slot.writes) {
            true => {
                start.push(slot.step);
                load.with(slot.writes)
            }
            false => SourceLoad { writer_waits: load.writer_waits || slot.writes, ..load },
        };
        sources.insert(source, load);
    }
    start
}

impl SourceLoad {
    fn admits(self, writes: bool) -> bool {
        !(self.writer_waits || self.writer || writes && self.readers)
    }

    fn add(&mut self, writes: bool) {
        *self = self.with(writes);
    }

    fn with(self, writes: bool) -> Self {
        Self { readers: self.readers || !writes, writer: self.writer || writes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slot<'a>(step: &'a str, source: &'a str, writes: bool) -> CallSlot<'a> {
        CallSlot { step, source: Some(source), writes }
    }

    #[test]
    fn readers_start_together_and_a_writer_alone() {
        let ready =
            [slot("a", "x", false), slot("b", "x", false), slot("w", "x", true), slot("c", "x", false)];
        assert_eq!(startable_steps(&ready, &[]), ["a", "b"], "later readers do not overtake the writer");
        assert_eq!(startable_steps(&ready[2..], &[slot("a", "x", false)]), [""; 0]);
        assert_eq!(startable_steps(&ready[2..], &[]), ["w"]);
        assert_eq!(startable_steps(&ready[3..], &[slot("w", "x", true)]), [""; 0]);
    }

    #[test]
    fn other_sources_and_steps_without_a_source_are_not_delayed() {
        let ready =
            [slot("w", "x", true), slot("v", "y", true), CallSlot { step: "r", source: None, writes: false }];
        assert_eq!(startable_steps(&ready, &[slot("a", "x", false)]), ["v", "r"]);
    }

    proptest! {
        #[test]
        fn a_writer_never_shares_its_source(
            ready in proptest::collection::vec((0_usize..3, any::<bool>()), 0..20),
            reading in proptest::collection::vec(0_usize..3, 0..4),
        ) {
            let names: Vec<String> = (0..ready.len()).map(|at| at.to_string()).collect();
            let sources = ["x", "y", "z"];
            let slots: Vec<CallSlot<'_>> =
                names.iter().zip(&ready).map(|(name, (at, writes))| slot(name, sources[*at], *writes)).collect();
            let in_flight: Vec<CallSlot<'_>> = reading.iter().map(|at| slot("load", sources[*at], false)).collect();
            let started = startable_steps(&slots, &in_flight);
            for source in sources {
                let all = slots.iter().filter(|slot| started.contains(&slot.step)).chain(&in_flight);
                let here: Vec<_> = all.filter(|slot| slot.source == Some(source)).collect();
                prop_assert!(here.len() < 2 || here.iter().all(|slot| !slot.writes), "{here:?}");
                let load = in_flight.iter().any(|slot| slot.source == Some(source));
                let waits = slots.iter().any(|slot| slot.source == Some(source));
                prop_assert!(load || !waits || !here.is_empty(), "an idle source starts waiting work");
            }
        }
    }
}
