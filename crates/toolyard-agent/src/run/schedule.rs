//! Which steps may start beside those in flight: readers of a source run together, a writer runs alone.

use std::collections::HashMap;

/// The source and the access of a step's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallAccess<'a> {
    pub(crate) step: &'a str,
    /// The source it calls; a step without a source never conflicts.
    pub(crate) source: Option<&'a str>,
    /// Whether it may change something at the source.
    pub(crate) writes: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct SourceLoad {
    has_readers: bool,
    has_writer: bool,
    /// A writer waits; later steps must not overtake it.
    writer_waits: bool,
}

/// Returns which of the ready steps, given in the order of the plan, may start beside those in flight. A writer waits
/// for all calls to its source, and later steps wait for the writer.
pub(crate) fn startable_steps<'a>(ready: &[CallAccess<'a>], in_flight: &[CallAccess<'_>]) -> Vec<&'a str> {
    let mut sources: HashMap<&str, SourceLoad> = HashMap::new();
    for call in in_flight {
        if let Some(source) = call.source {
            let load = sources.entry(source).or_default();
            *load = load.with_call(call.writes);
        }
    }
    let mut start = Vec::new();
    for call in ready {
        let Some(source) = call.source else {
            start.push(call.step);
            continue;
        };
        let load = sources.get(source).copied().unwrap_or_default();
        let load = match load.admits(call.writes) {
            true => {
                start.push(call.step);
                load.with_call(call.writes)
            }
            false => SourceLoad { writer_waits: load.writer_waits || call.writes, ..load },
        };
        sources.insert(source, load);
    }
    start
}

impl SourceLoad {
    fn admits(self, writes: bool) -> bool {
        !(self.writer_waits || self.has_writer || writes && self.has_readers)
    }

    fn with_call(self, writes: bool) -> Self {
        Self { has_readers: self.has_readers || !writes, has_writer: self.has_writer || writes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call<'a>(step: &'a str, source: &'a str, writes: bool) -> CallAccess<'a> {
        CallAccess { step, source: Some(source), writes }
    }

    #[test]
    fn readers_start_together_and_a_writer_alone() {
        let ready =
            [call("a", "x", false), call("b", "x", false), call("w", "x", true), call("c", "x", false)];
        assert_eq!(startable_steps(&ready, &[]), ["a", "b"], "later readers do not overtake the writer");
        assert_eq!(startable_steps(&ready[2..], &[call("a", "x", false)]), [""; 0]);
        assert_eq!(startable_steps(&ready[2..], &[]), ["w"]);
        assert_eq!(startable_steps(&ready[3..], &[call("w", "x", true)]), [""; 0]);
    }

    #[test]
    fn other_sources_and_steps_without_a_source_are_not_delayed() {
        let ready = [
            call("w", "x", true),
            call("v", "y", true),
            CallAccess { step: "r", source: None, writes: false },
        ];
        assert_eq!(startable_steps(&ready, &[call("a", "x", false)]), ["v", "r"]);
    }

    proptest! {
        #[test]
        fn a_writer_never_shares_its_source(
            ready in proptest::collection::vec((0_usize..3, any::<bool>()), 0..20),
            reading in proptest::collection::vec(0_usize..3, 0..4),
        ) {
            let names: Vec<String> = (0..ready.len()).map(|at| at.to_string()).collect();
            let sources = ["x", "y", "z"];
            let accesses: Vec<CallAccess<'_>> =
                names.iter().zip(&ready).map(|(name, (at, writes))| call(name, sources[*at], *writes)).collect();
            let in_flight: Vec<CallAccess<'_>> = reading.iter().map(|at| call("load", sources[*at], false)).collect();
            let started = startable_steps(&accesses, &in_flight);
            for source in sources {
                let all = accesses.iter().filter(|call| started.contains(&call.step)).chain(&in_flight);
                let of_source: Vec<_> = all.filter(|call| call.source == Some(source)).collect();
                prop_assert!(of_source.len() < 2 || of_source.iter().all(|call| !call.writes), "{of_source:?}");
                let reads = in_flight.iter().any(|call| call.source == Some(source));
                let has_waiting = accesses.iter().any(|call| call.source == Some(source));
                prop_assert!(reads || !has_waiting || !of_source.is_empty(), "an idle source starts waiting work");
            }
        }
    }
}
