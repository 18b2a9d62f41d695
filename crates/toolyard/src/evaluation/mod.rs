//! Measures a search for tools on test sets: how often the right tools are found, and what showing them costs.
//!
//! A test set is a folder ([`folders`], [`data`]); it becomes a [`Suite`] of questions over one catalogue ([`suite`]), of
//! which one half is for tuning and the other for reporting ([`split`]). [`evaluate`] asks every [`Engine`] every
//! question and judges the lists ([`measure`]); [`table`], [`plot`] and [`floor`] show what came of it.

pub mod baseline;
pub mod data;
pub mod floor;
pub mod folders;
pub mod measure;
mod ours;
pub mod plot;
pub mod report;
mod runner;
pub mod split;
pub mod steps;
pub mod suite;
pub mod table;
pub mod tokens;

pub use baseline::Baseline;
pub use data::{DataError, ToolText};
pub use ours::Ours;
pub use report::{Report, Row};
pub use runner::{Plan, evaluate};
pub use split::Split;
pub use suite::Suite;
pub use tokens::TokenCounter;

use toolyard_hub::search::lexicon::Lexicons;
#[cfg(feature = "embedding")]
use {
    std::sync::Arc,
    toolyard_hub::search::{SearchIndex, embedding::EmbeddingModel},
};

/// A search that can be measured.
pub trait Retriever {
    /// The best tools for a text, best first, as places in the catalogue.
    fn search(&self, text: &str, limit: usize) -> Vec<usize>;

    /// The best tools for a task of several steps.
    fn search_steps(&self, task: &str, steps: &[String], limit: usize) -> Vec<usize> {
        let _ = task;
        let lists: Vec<Vec<usize>> = steps.iter().map(|step| self.search(step, limit)).collect();
        steps::round_robin(&lists, limit)
    }

    /// Hears that this tool answered this request well; false if it does not learn from that.
    fn remember(&mut self, tool: usize, request: &str) -> bool {
        let _ = (tool, request);
        false
    }
}

/// Indexes a catalogue.
pub type Build<'a> = dyn Fn(&[ToolText]) -> Box<dyn Retriever> + 'a;

/// A kind of search, and how it is made for a catalogue.
pub struct Engine<'a> {
    /// Its name in tables.
    pub name: &'a str,
    /// Indexes a catalogue.
    pub build: Box<Build<'a>>,
}

impl std::fmt::Debug for Engine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Engine<'a> {
    /// A kind of search.
    pub fn new<R: Retriever + 'static>(name: &'a str, build: impl Fn(&[ToolText]) -> R + 'a) -> Self {
        Self { name, build: Box::new(move |tools| Box::new(build(tools))) }
    }

    /// The search of the hub, with what is known of other languages.
    pub fn ours(lexicons: Lexicons) -> Self {
        Self::new("toolyard", move |tools| Ours::new(tools, lexicons.clone()))
    }

    /// The search of the hub with a local model.
    #[cfg(feature = "embedding")]
    pub fn with_model(lexicons: Lexicons, model: EmbeddingModel) -> Self {
        let model = Arc::new(model);
        let index =
            move || SearchIndex::with_lexicon(Arc::new(lexicons.clone())).with_model(Arc::clone(&model));
        Self::new("with model", move |tools| Ours::with_index(tools, index()))
    }

    /// What every other is compared with.
    pub fn baseline() -> Self {
        Self::new("baseline", Baseline::new)
    }
}
