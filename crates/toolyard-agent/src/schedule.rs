//! Which steps may begin beside those under way: readers of a source together, writers alone. Pure.

use std::collections::HashMap;

/// A step as the schedule sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane<'a> {
    /// Its name.
    pub step: &'a str,
    /// The source it calls; steps without one stand in nobody's way.
    pub source: Option<&'a str>,
    /// Whether it may change something there.
    pub writes: bool,
}

/// What is under way at one source.
#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    readers: bool,
    writer: bool,
    /// A writer waits for its turn: nobody behind it overtakes.
    awaited: bool,
}

/// Which of the steps that are ready, in the order of the plan, may begin beside those under way. A writer waits for
/// all calls of its source, and those behind it wait for the writer.
pub fn startable<'a>(ready: &[Lane<'a>], under_way: &[Lane<'_>]) -> Vec<&'a str> {
    let mut sources: HashMap<&str, Busy> = HashMap::new();
    for lane in under_way {
        if let Some(source) = lane.source {
            sources.entry(source).or_default().add(lane.writes);
        }
    }
    let mut begin = Vec::new();
    for lane in ready {
        let Some(source) = lane.source else {
            begin.push(lane.step);
            continue;
        };
        // A source of the ready may not outlive the map of those under way, so each gets its own entry.
        let busy = sources.get(source).copied().unwrap_or_default();
        let now = match busy.lets(lane.writes) {
            true => {
                begin.push(lane.step);
                busy.with(lane.writes)
            }
            false => Busy { awaited: busy.awaited || lane.writes, ..busy },
        };
        sources.insert(source, now);
    }
    begin
}

impl Busy {
    fn lets(self, writes: bool) -> bool {
        !(self.awaited || self.writer || writes && self.readers)
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

    fn lane<'a>(step: &'a str, source: &'a str, writes: bool) -> Lane<'a> {
        Lane { step, source: Some(source), writes }
    }

    #[test]
    fn readers_go_together_and_a_writer_alone() {
        let ready =
            [lane("a", "x", false), lane("b", "x", false), lane("w", "x", true), lane("c", "x", false)];
        assert_eq!(startable(&ready, &[]), ["a", "b"], "nobody overtakes the writer");
        assert_eq!(startable(&ready[2..], &[lane("a", "x", false)]), [""; 0]);
        assert_eq!(startable(&ready[2..], &[]), ["w"]);
        assert_eq!(startable(&ready[3..], &[lane("w", "x", true)]), [""; 0]);
    }

    #[test]
    fn other_sources_and_steps_without_one_are_not_held_up() {
        let ready =
            [lane("w", "x", true), lane("v", "y", true), Lane { step: "r", source: None, writes: false }];
        assert_eq!(startable(&ready, &[lane("a", "x", false)]), ["v", "r"]);
    }

    proptest! {
        #[test]
        fn never_two_at_a_source_where_one_writes(
            ready in proptest::collection::vec((0_usize..3, any::<bool>()), 0..20),
            reading in proptest::collection::vec(0_usize..3, 0..4),
        ) {
            let names: Vec<String> = (0..ready.len()).map(|at| at.to_string()).collect();
            let sources = ["x", "y", "z"];
            let lanes: Vec<Lane<'_>> =
                names.iter().zip(&ready).map(|(name, (at, writes))| lane(name, sources[*at], *writes)).collect();
            let under_way: Vec<Lane<'_>> = reading.iter().map(|at| lane("busy", sources[*at], false)).collect();
            let begun = startable(&lanes, &under_way);
            for source in sources {
                let all = lanes.iter().filter(|lane| begun.contains(&lane.step)).chain(&under_way);
                let here: Vec<_> = all.filter(|lane| lane.source == Some(source)).collect();
                prop_assert!(here.len() < 2 || here.iter().all(|lane| !lane.writes), "{here:?}");
                let busy = under_way.iter().any(|lane| lane.source == Some(source));
                let waits = lanes.iter().any(|lane| lane.source == Some(source));
                prop_assert!(busy || !waits || !here.is_empty(), "an idle source with work begins some");
            }
        }
    }
}
