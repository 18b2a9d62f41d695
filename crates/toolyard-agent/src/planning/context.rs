//! The input and the outcome of planning.

use toolyard_model::{ModelMessage, ToolCalling};

use super::plan::{Plan, PlanProblem};
use crate::prompt::{AvailableTools, PromptTool};

/// Everything that a request for a plan is built from.
#[derive(Debug, Clone, Default)]
pub struct PlanningContext {
    /// The question or task.
    pub question: String,
    /// Earlier messages of the conversation, the oldest first.
    pub history: Vec<ModelMessage>,
    /// How the model calls tools.
    pub mode: ToolCalling,
    /// The tools for this task.
    pub tools: AvailableTools<Vec<PromptTool>>,
    /// Whether the model may search for tools that the prompt does not show.
    pub can_search: bool,
    /// Problems of the rejected plan.
    pub problems: Vec<PlanProblem>,
    /// The reply whose plan was rejected, as the model wrote it.
    pub rejected_reply: Option<String>,
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
    /// The outline of its value, or why there is none.
    pub summary: String,
    /// Whether it has no value: it failed, was skipped, denied or simulated.
    pub lacks_value: bool,
}

/// The decision of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannerDecision {
    /// An answer without tools.
    Answer(String),
    /// A plan, not checked yet.
    Plan(Plan),
    /// Words to search tools with that the prompt does not show.
    Search(String),
}

impl PlanningContext {
    /// A question without history.
    pub fn new(
        question: impl Into<String>,
        mode: ToolCalling,
        tools: AvailableTools<Vec<PromptTool>>,
    ) -> Self {
        Self { question: question.into(), mode, tools, ..Self::default() }
    }

    pub(super) fn finished_ids(&self) -> Vec<&str> {
        self.finished.iter().map(|step| step.step.as_str()).collect()
    }
}
