//! What happens in a run: transitions that are kept, and news on the way that are not.

mod facts_in_a_list;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolyard_core::{ErrorKind, Resolution, RunId, SourceId};
use toolyard_model::{ModelReply, Usage};

use crate::{Ask, Cap, Plan, PlanProblem};

/// A transition of a run. All of them in their order are the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEvent {
    /// It began.
    Asked {
        /// With what.
        ask: Ask,
    },
    /// A model answered something.
    ModelAnswered {
        /// What it was asked for.
        task: ModelTask,
        /// What it said.
        reply: ModelReply,
        /// How long it took.
        milliseconds: u64,
    },
    /// A model did not answer.
    ModelFailed {
        /// What it was asked for.
        task: ModelTask,
        /// Why.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// What it cost nevertheless, as far as that is known.
        #[serde(default, skip_serializing_if = "is_nothing")]
        usage: Usage,
    },
    /// There is a plan.
    Planned {
        /// The plan, checked; the dependencies of its steps hold what their arguments refer to.
        plan: Plan,
        /// What is known of the tools of its steps, by step.
        #[serde(with = "facts_in_a_list")]
        facts: BTreeMap<String, StepFacts>,
    },
    /// There was a plan that cannot be carried out.
    PlanRefused {
        /// Why.
        problems: Vec<PlanProblem>,
    },
    /// A step's arguments are complete, and it is about to be carried out.
    StepStarted {
        /// Which.
        step: String,
        /// Its arguments with all references resolved, secrets removed, cut for showing.
        shown_arguments: String,
        /// A short hash of tool and arguments: calls that have the same are identical. Empty for a step without a tool.
        #[serde(default)]
        call: String,
        /// Where something else was taken than what its arguments refer to, in words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A step is over.
    StepEnded {
        /// Which.
        step: String,
        /// What came of it.
        outcome: StepEnd,
        /// How long it took.
        milliseconds: u64,
    },
    /// A step's arguments were written anew.
    StepRepaired {
        /// Which.
        step: String,
        /// Its arguments now.
        arguments: Map<String, Value>,
    },
    /// No better arguments were found for a step.
    RepairRefused {
        /// Which.
        step: String,
        /// Why.
        reason: String,
    },
    /// A person said what became of a step whose outcome was unknown.
    StepSettled {
        /// Which.
        step: String,
        /// What the person said.
        resolution: Resolution,
    },
    /// A step's result was looked at.
    Verified {
        /// Which.
        step: String,
        /// What was found.
        verification: Verification,
    },
    /// A call waits for a person.
    ApprovalAsked {
        /// The step.
        step: String,
        /// The number of the question.
        question: i64,
        /// What the person is told.
        text: String,
        /// A hash of the tool's definition and source: what may always be called is this.
        #[serde(default)]
        tool: String,
        /// A hash of tool and arguments: what may be called is this.
        #[serde(default)]
        call: String,
    },
    /// A person decided.
    ApprovalGiven {
        /// The step.
        step: String,
        /// Whether the call may be made.
        allowed: bool,
        /// Whether that holds for every call of this tool in this run.
        #[serde(default)]
        always: bool,
        /// Who.
        by: String,
    },
    /// It is over, for good or until somebody does something.
    Ended {
        /// How.
        end: RunEnd,
    },
    /// It goes on after it was suspended or its process ended.
    Resumed {
        /// Who goes on.
        owner: String,
    },
}

/// What a model is asked for in a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum ModelTask {
    /// A plan, or an answer at once.
    Plan {
        /// 0 for the first.
        round: usize,
        /// Whether it is the second try, with the problems of the first shown.
        repair: bool,
    },
    /// The result of a step without a tool.
    Reason {
        /// The step.
        step: String,
    },
    /// Other arguments for a step that failed.
    Repair {
        /// The step.
        step: String,
    },
    /// An opinion on a result.
    Judge {
        /// The step.
        step: String,
    },
    /// The final answer.
    Answer,
}

/// What is known of a step's tool when it is planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFacts {
    /// Where the tool lives, if it is known by name.
    pub source: Option<SourceId>,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether a person must agree.
    pub permission: Permission,
    /// What was mended in the step, in words: whoever decides is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Permission {
    Allow,
    Ask,
    Deny,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum StepEnd {
    /// It succeeded. Its value is in the journal under the step's name.
    Done {
        /// Who answered.
        source: Option<SourceId>,
        /// The beginning of its value, for people.
        preview: String,
        /// How large the value is, in characters.
        size: usize,
    },
    /// It failed.
    Failed {
        /// Why.
        message: String,
        /// What to do about it.
        hint: Option<String>,
        /// The class of failure, where a tool failed.
        #[serde(default)]
        kind: Option<ErrorKind>,
    },
    /// Something it depends on failed, so it was not begun.
    Skipped {
        /// The step that failed.
        because: String,
    },
    /// A rule or a person said no.
    Denied {
        /// Who or what.
        by: String,
    },
    /// It may have taken effect; a person must say.
    Unknown {
        /// What is known.
        message: String,
    },
    /// It was not called because nothing was to be changed.
    Rehearsed,
}

/// The seeds' verdict on a result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether it may be used.
    pub verified: bool,
    /// How sure that is, from 0 to 1.
    pub confidence: f64,
    /// What was found.
    pub issues: Vec<String>,
    /// Whether the tool said that it failed, whatever it called its answer.
    #[serde(default)]
    pub said_error: bool,
}

/// How a run stands when nobody works on it any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunEnd {
    /// There is an answer.
    Answered {
        /// The answer.
        answer: String,
        /// Who it rests on: tools and sources.
        sources: Vec<String>,
        /// Whether the model had to stop before its end.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut_off: bool,
    },
    /// There is a plan, and no more was wanted.
    Planned,
    /// Everything failed.
    Failed {
        /// Why.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// It waits for persons; it can be resumed.
    Suspended {
        /// The numbers of the questions, and `step NAME` for steps whose outcome only a person knows.
        waiting: Vec<String>,
    },
    /// Somebody cancelled it.
    Cancelled,
    /// It used more than it may.
    Capped {
        /// Of what.
        cap: Cap,
        /// In words.
        message: String,
    },
}

/// What somebody who watches a run sees: its transitions, and what a model says while it says it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum RunNews {
    /// A transition, as it is kept.
    Event {
        /// The run.
        run: RunId,
        /// The place of the transition in it.
        number: i64,
        /// The transition.
        event: RunEvent,
    },
    /// A model is being asked.
    ModelAsked {
        /// For what.
        task: ModelTask,
    },
    /// More of the final answer.
    AnswerDelta {
        /// The text.
        text: String,
        /// Whether the model may still go on with calls, so that it was no answer.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        tentative: bool,
    },
    /// What was told of an answer is none: the model went on with calls, or broke off.
    AnswerDropped,
    /// More of what a model thinks.
    ReasoningDelta {
        /// The text.
        text: String,
    },
    /// How far a call is.
    StepProgress {
        /// The step.
        step: String,
        /// In words.
        message: String,
    },
    /// What was used so far.
    Spent {
        /// Tokens and money.
        usage: Usage,
    },
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

#[cfg(test)]
mod tests {
    use toolyard_core::{RawJson, redact_json};

    use super::*;
    use crate::Step;

    #[test]
    fn steps_may_have_names_that_secrets_have() {
        let names = ["token", "password", "api_key", "secret", "cookies", "authorization", "login_password"];
        let step = |id: &&str| Step {
            id: (*id).to_owned(),
            description: String::new(),
            tool_type: "read".to_owned(),
            arguments: Map::new(),
            dependencies: vec!["token".to_owned()],
            complexity: crate::Complexity::Low,
        };
        let facts = StepFacts {
            source: Some("excel".into()),
            read_only: true,
            permission: Permission::Allow,
            notes: Vec::new(),
        };
        let planned = RunEvent::Planned {
            plan: Plan { steps: names.iter().map(step).collect() },
            facts: names.iter().map(|name| ((*name).to_owned(), facts.clone())).collect(),
        };
        let (text, _) = redact_json(&RawJson::from_serialize(&planned).unwrap());
        assert_eq!(text.read::<RunEvent>().unwrap(), planned);
    }
}
