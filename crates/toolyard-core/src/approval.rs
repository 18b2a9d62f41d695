//! Questions that wait for a person, and the answers, as rows that every door can read and write.

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, RunId};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// May this call be made?
    Approval,
    /// Should this run stop?
    Cancellation,
}

/// A question, answered or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Its number.
    pub id: i64,
    /// The run it belongs to.
    pub run: RunId,
    /// The step, where it is about one.
    pub step: Option<String>,
    /// What is asked.
    pub kind: QuestionKind,
    /// What a person should know, secrets removed.
    pub text: String,
    /// The answer, once there is one.
    pub answer: Option<Answer>,
    /// Who answered.
    pub by: Option<String>,
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Answer {
    Allow,
    Deny,
}

/// Keeps questions and answers. The first answer counts.
pub trait Approvals: Send + Sync {
    /// Asks; the number of the question.
    fn ask<'a>(
        &'a self,
        run: &'a RunId,
        step: Option<&'a str>,
        kind: QuestionKind,
        text: &'a str,
    ) -> BoxFuture<'a, Result<i64, String>>;

    /// Answers; whether this was the first answer.
    fn answer<'a>(&'a self, id: i64, answer: Answer, by: &'a str) -> BoxFuture<'a, Result<bool, String>>;

    /// One question.
    fn question(&self, id: i64) -> BoxFuture<'_, Result<Option<Question>, String>>;

    /// All questions without an answer, oldest first.
    fn waiting(&self) -> BoxFuture<'_, Result<Vec<Question>, String>>;

    /// All questions of one run, answered or not, oldest first.
    fn of_run<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Question>, String>>;
}
