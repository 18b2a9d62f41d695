//! Which non-public data the texts of a run may contain, whatever their encoding.
//!
//! What a model writes may contain everything that its prompt contained: it can encode, split or paraphrase it, so texts are
//! never compared. The prompt of a plan contains the conversation and, after the first plan, every result and error so far;
//! that of a repair and of a reasoning step contains the results of the step's dependencies. A reference in an argument adds
//! the data of the step it refers to. See docs/design/0020-open-world.md.

use toolyard_model::Role;

use super::{
    data_sources::DataSources,
    event::StepEnd,
    request::RunRequest,
    state::Run,
    step::{ApprovalState, StepRun},
};
use crate::reference::references;

/// Stands for the answers of earlier runs in a conversation.
const CONVERSATION: &str = "conversation";

impl RunRequest {
    /// The sources of the data in the conversation. The user's messages are the user's word; other messages may quote results.
    pub(super) fn history_sources(&self) -> DataSources {
        let mut sources = DataSources::default();
        if !self.public_history && self.history.iter().any(|message| message.role != Role::User) {
            sources.insert(CONVERSATION);
        }
        sources
    }

    /// What the user wrote.
    pub(crate) fn user_texts(&self) -> impl Iterator<Item = &str> {
        let messages = self.history.iter().filter(|message| message.role == Role::User);
        messages.map(|message| message.text.as_str()).chain([self.question.as_str()])
    }
}

impl Run {
    /// The sources of all non-public data that the run has read.
    pub fn data_sources(&self) -> &DataSources {
        &self.data_sources
    }

    /// How many calls of open-world tools that a model wrote after it saw non-public data were made without an approval.
    pub(crate) fn unapproved_disclosures(&self) -> usize {
        self.unapproved_disclosures
    }

    /// The sources of the non-public data that the arguments of a step may contain.
    pub(crate) fn argument_sources(&self, step: &StepRun) -> DataSources {
        let mut sources = step.written_from.clone();
        for reference in references(&step.step.arguments) {
            self.add_result_sources(&reference.step, &mut sources);
        }
        sources
    }

    /// The sources of the non-public data that a step's result or error may contain.
    pub(super) fn outcome_sources(&self, step: &StepRun, outcome: &StepEnd) -> DataSources {
        let answered_by = match outcome {
            StepEnd::Done { source, .. } => source.as_ref(),
            StepEnd::Failed { .. } | StepEnd::Unknown { .. } => step.tool.source.as_ref(),
            // Nothing was called, and the texts about these ends contain no data.
            StepEnd::Skipped { .. } | StepEnd::Denied { .. } | StepEnd::Simulated => {
                return DataSources::default();
            }
        };
        let mut sources = self.argument_sources(step);
        if step.is_reasoning() || (step.tool.source.is_none() && answered_by.is_none()) {
            self.add_dependency_sources(step, &mut sources);
        } else if step.tool.reads_private || answered_by != step.tool.source.as_ref() {
            let source = answered_by.or(step.tool.source.as_ref());
            sources.insert(source.map_or(step.step.tool_type.as_str(), |source| source.as_str()));
        }
        sources
    }

    /// The sources of the non-public data that the model sees which repairs a step: its result or error, and the results of its
    /// dependencies.
    pub(super) fn repair_sources(&self, step: &StepRun) -> DataSources {
        let mut sources = self.argument_sources(step);
        sources.extend(&step.result_from);
        self.add_dependency_sources(step, &mut sources);
        sources
    }

    /// Whether starting a step passes non-public data outside without an approval.
    pub(super) fn is_unapproved_disclosure(&self, step: &StepRun) -> bool {
        step.tool.open_world
            && !matches!(step.approval, ApprovalState::Allowed { .. })
            && !self.argument_sources(step).is_empty()
    }

    fn add_dependency_sources(&self, step: &StepRun, sources: &mut DataSources) {
        for id in &step.step.dependencies {
            self.add_result_sources(id, sources);
        }
    }

    fn add_result_sources(&self, id: &str, sources: &mut DataSources) {
        if let Some(other) = self.step(id) {
            sources.extend(&other.result_from);
        }
    }
}

#[cfg(test)]
#[path = "data_flow_tests.rs"]
mod tests;
