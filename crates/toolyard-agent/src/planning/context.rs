//! The input and the outcome of planning.

use toolyard_model::{ModelMessage, ToolCalling};

use super::plan::{Plan, PlanProblem};
use crate::prompt::{AvailableTools, PromptTool};

/// Everything that a request for a plan is built from.
#[derive(Debug, Clone)]
pub struct PlanningContext {
    /// The question or task.
    pub question: String,
    /// Earlier messages of the conversation, the oldest first.
    pub history: Vec<ModelMessage>,
    /// How the model calls tools.
    pub mode: ToolCalling,
    /// The tools for this task.
    pub tools: AvailableTools<Vec<PromptTool>>,
    /// Problems of the previous plan.
    pub problems: Vec<PlanProblem>,
    /// The previous plan as the model wrote it.
    pub previous: Option<String>,
    /// Finished steps, when the rest of a task is planned again.
    pub finished: Vec<StepSummary>,
}

/// A finished step, for planning the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSummary {
    /// The step's id.
    pub step: String,
    /// The step's tool.
    pub tool: String,
    /// The outline of its value, or the reason of its failure.
    pub summary: String,
    /// Whether it failed.
    pub failed: bool,
}

/// The decision of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannerDecision {
    /// An answer without tools.
    Answer(String),
    /// A plan, not checked yet.
    Plan(Plan),
}

impl PlanningContext {
    /// A question without history.
    pub fn new(
        question: impl Into<String>,
        mode: ToolCalling,
        tools: AvailableTools<Vec<PromptTool>>,
    ) -> Self {
        Self {
            question: question.into(),
            history: Vec::new(),
            mode,
            tools,
            problems: Vec::new(),
            previous: None,
            finished: Vec::new(),
        }
    }

    /// All texts from which a plan may take names and cell addresses.
    pub(super) fn known_text(&self) -> String {
        let history = self.history.iter().map(|message| message.text.as_str());
        let finished = self.finished.iter().map(|step| step.summary.as_str());
        history.chain(finished).chain([self.question.as_str()]).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn finished_ids(&self) -> Vec<&str> {
        self.finished.iter().map(|step| step.step.as_str()).collect()
    }
}
