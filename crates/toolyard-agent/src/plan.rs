//! A plan: steps, what each needs of others, and what is wrong with it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::references;

/// The `tool_type` of a step that needs no tool.
pub const NO_TOOL: &str = "none";

/// Steps that together answer a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in the order in which they were written.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The step of this name.
    pub fn step(&self, id: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.id == id)
    }

    /// The steps of this plan that must be over before this one begins: those that it names, and those whose values it
    /// uses. In the order of their names, each once.
    pub fn needs(&self, step: &Step) -> BTreeSet<String> {
        let used = references(&step.arguments).into_iter().map(|reference| reference.step);
        let all = step.dependencies.iter().cloned().chain(used);
        all.filter(|id| self.step(id).is_some()).collect()
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name within the plan: letters, digits, `_`; other steps refer to its value as `$id`.
    pub id: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The tool that is called, or [`NO_TOOL`] for what the model reasons out by itself.
    pub tool_type: String,
    /// The tool's arguments; a text `$step.path` stands for (a part of) the value of another step.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// Steps that must be over before, besides those that the arguments refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<String>,
    /// How hard it is, in the planner's opinion.
    #[serde(default)]
    pub complexity: Complexity,
}

/// How hard a step is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Complexity {
    Low,
    #[default]
    Medium,
    High,
}

/// What is wrong with a plan, in words that its author understands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum PlanProblem {
    /// It could not be read at all.
    #[error("the plan cannot be read: {reason}")]
    Unreadable {
        /// Why.
        reason: String,
    },
    /// Two steps have the same name, or a name that cannot be referred to.
    #[error("step `{step}`: its id is used twice or is not a plain word")]
    BadId {
        /// The step.
        step: String,
    },
    /// A tool that does not exist.
    #[error("step `{step}`: there is no tool `{tool}`{}", .nearest.as_ref().map(|tool| format!("; did you mean `{tool}`?")).unwrap_or_default())]
    UnknownTool {
        /// The step.
        step: String,
        /// The tool it names.
        tool: String,
        /// A tool that does exist.
        nearest: Option<String>,
    },
    /// A reference or dependency to a step that does not exist.
    #[error("step `{step}`: it refers to `{reference}`, but there is no such step")]
    MissingStep {
        /// The step.
        step: String,
        /// What it refers to.
        reference: String,
    },
    /// Arguments that the tool does not take.
    #[error("step `{step}`: {reason}")]
    BadArguments {
        /// The step.
        step: String,
        /// Why.
        reason: String,
    },
    /// Steps that wait for each other.
    #[error("these steps wait for each other: {}", .steps.join(", "))]
    Cycle {
        /// The steps.
        steps: Vec<String>,
    },
    /// More steps than allowed.
    #[error("the plan has {steps} steps, at most {limit} are allowed")]
    TooLong {
        /// How many.
        steps: usize,
        /// How many are allowed.
        limit: usize,
    },
}
