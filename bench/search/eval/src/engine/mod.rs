//! Search engines under evaluation.

pub mod bm25;
pub mod toolyard;

use self::{bm25::Bm25, toolyard::ToolyardRetriever};
use crate::{dataset::records::ToolRecord, steps::round_robin};

/// A search over one catalogue.
pub trait Retriever {
    /// The best tools for a text, best first, as positions in the catalogue.
    fn search(&self, text: &str, limit: usize) -> Vec<usize>;

    /// The best tools for a task of several steps.
    fn search_steps(&self, task: &str, steps: &[String], limit: usize) -> Vec<usize> {
        let _ = task;
        let lists: Vec<Vec<usize>> = steps.iter().map(|step| self.search(step, limit)).collect();
        round_robin(&lists, limit)
    }

    /// Records that a tool served a request; false if the engine does not learn from past requests.
    fn record_use(&mut self, tool: usize, request: &str) -> bool {
        let _ = (tool, request);
        false
    }
}

/// Indexes a catalogue.
pub type BuildIndex<'a> = dyn Fn(&[ToolRecord]) -> Box<dyn Retriever> + 'a;

/// A search engine: its name, and how it indexes a catalogue.
pub struct Engine<'a> {
    /// Name in tables.
    pub name: &'a str,
    /// Indexes a catalogue.
    pub build: Box<BuildIndex<'a>>,
}

impl std::fmt::Debug for Engine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Engine<'a> {
    /// An engine.
    pub fn new<R: Retriever + 'static>(name: &'a str, build: impl Fn(&[ToolRecord]) -> R + 'a) -> Self {
        Self { name, build: Box::new(move |tools| Box::new(build(tools))) }
    }

    /// The search of Toolyard.
    pub fn toolyard() -> Self {
        Self::new("toolyard", ToolyardRetriever::new)
    }

    /// Plain BM25, for comparison.
    pub fn baseline() -> Self {
        Self::new("baseline", Bm25::new)
    }
}
