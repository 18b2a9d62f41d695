//! Plans, their steps, and the problems a plan can have.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::reference::references;

/// The `tool_type` of a step that the model reasons out without a tool.
pub const NO_TOOL: &str = "none";

/// The steps that answer a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in the order of the model's reply.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The step with this id.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// The ids of the steps that must finish before this one: its declared dependencies and the steps it references.
    pub fn dependencies_of(&self, step: &Step) -> BTreeSet<String> {
        let used = references(&step.arguments).into_iter().map(|reference| reference.step);
        let all = step.dependencies.iter().cloned().chain(used);
        all.filter(|id| self.step(id).is_some()).collect()
    }
}

/// One step of a plan.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Unique id of ASCII letters, digits and `_`; other steps refer to the value of this one as `$id`.
    pub id: String,
    /// The purpose of the step.
    #[serde(default)]
    pub description: String,
    /// The name of the tool to call, or [`NO_TOOL`].
    pub tool_type: String,
    /// The arguments of the call; a string `$step.path` refers to the value of another step.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// Ids of steps that must finish first, besides those that the arguments refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
}

impl Step {
    /// The description that the planner wrote; none if there is none, or if it only repeats the call.
    pub fn written_description(&self) -> Option<&str> {
        let rest = self.description.strip_prefix(&self.tool_type);
        let repeats_call = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(": "));
        (!self.description.is_empty() && !repeats_call).then_some(&self.description)
    }
}

/// A problem of a plan. The messages are sent to the model that wrote it, so their wording is part of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields without a comment are named after what they hold")]
pub enum PlanProblem {
    /// The reply of the model could not be parsed as a plan, also after it was asked to correct it.
    ///
    /// Remedy: use a larger model, or set `tool_calling` of the model to what `toolyard models test NAME` recommends.
    #[error("the plan cannot be read: {reason}")]
    Unreadable { reason: String },
    /// The id of a step in a plan is used twice, or is not a plain word. The model is asked to correct it.
    ///
    /// Remedy: if runs fail with it, use a larger model, or say the task in other words.
    #[error("step `{step}`: its id is used twice or is not a plain word")]
    BadId { step: String },
    /// The model planned a call of a tool that does not exist, or that the agent may not use. It is asked to correct
    /// the plan.
    ///
    /// Remedy: check that the tool exists (`toolyard tools list`) and is in `tools` of the agent; otherwise use a
    /// larger model.
    #[error("step `{step}`: there is no tool `{tool}`{}", .nearest.as_ref().map(|tool| format!("; did you mean `{tool}`?")).unwrap_or_default())]
    UnknownTool {
        step: String,
        tool: String,
        /// A tool with a similar name.
        nearest: Option<String>,
    },
    /// A step of a plan refers to a step that the plan does not have. The model is asked to correct it.
    ///
    /// Remedy: if runs fail with it, use a larger model, or say the task in other words.
    #[error("step `{step}`: it refers to `{reference}`, but there is no such step")]
    MissingStep { step: String, reference: String },
    /// The planned arguments do not fit the schema of the tool. The model is asked to correct them.
    ///
    /// Remedy: see what the tool expects with `toolyard tools show NAME`; put the needed values into your request, or
    /// use a larger model.
    #[error("step `{step}`: {reason}")]
    BadArguments { step: String, reason: String },
    /// Steps of a plan depend on each other in a cycle. The model is asked to correct it.
    ///
    /// Remedy: if runs fail with it, use a larger model, or split the task.
    #[error("the plan is circular: {}", describe_cycle(.steps))]
    Cycle {
        /// The ids of the steps; each depends on the next, and the last on the first.
        steps: Vec<String>,
    },
    /// The model planned a call that had failed with the same arguments before.
    ///
    /// Remedy: see why it failed with `toolyard runs show RUN`, and correct that first.
    #[error("step `{step}`: `{tool}` failed with these arguments before")]
    RepeatsFailure { step: String, tool: String },
    /// The plan has more steps than the agent may execute.
    ///
    /// Remedy: split the task, or raise `limits.steps` of `[agents.NAME]`.
    #[error("the plan has {steps} steps, at most {limit} are allowed")]
    TooLong { steps: usize, limit: usize },
}

impl PlanProblem {
    pub(crate) fn unreadable(reason: &str) -> Self {
        Self::Unreadable { reason: reason.to_owned() }
    }
}

fn describe_cycle(steps: &[String]) -> String {
    match steps {
        [only] => format!("`{only}` depends on itself"),
        several => {
            let ids = several.iter().chain(several.first()).map(|id| format!("`{id}`"));
            ids.collect::<Vec<_>>().join(" → ")
        }
    }
}
