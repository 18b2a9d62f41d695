//! Checks the answer of a run against what its steps did: a heuristic, whose error rates are in design note 0021.
//!
//! | file | purpose |
//! |---|---|
//! | `fact.rs` | what a step did, as evidence |
//! | `action.rs` | which tools change something, and which verbs a step supports |
//! | `denial.rs` | results that say that a change was not made |
//! | `discrepancies.rs` | results that differ from the call, and answers that do not mention it |
//! | `replaced.rs` | steps that failed, and whose work another step did |
//! | `families.rs` | verbs that request or claim the same change |
//! | `requests.rs` | the changes that a request asks for |
//! | `conditions.rs` | conditions of a request, and values of the state before it |
//! | `missing.rs` | requested changes that no step made |
//! | `items.rs` | things that a request lists, and of which only some were changed |
//! | `claims.rs` | the changes that an answer claims |
//! | `support.rs` | whether a step did what a claim says |
//! | `grounding.rs` | whether what an answer names occurs in what the steps did |
//! | `targets.rs` | changes that were made to something else than what the request names |
//! | `records.rs` | records in results, and which of them a change refers to |
//! | `identifiers.rs` | names that can be compared exactly |
//! | `numbers/` | numbers, dates and times that no step returned |
//! | `text.rs` | sentences, clauses and words |

mod action;
mod claims;
mod conditions;
mod denial;
mod discrepancies;
mod fact;
mod families;
mod grounding;
mod identifiers;
mod items;
mod missing;
mod numbers;
mod records;
mod replaced;
mod requests;
mod support;
mod targets;
mod text;

pub(crate) use self::{
    action::{call_changes, tool_changes},
    fact::{FactOutcome, StepFact},
};
use self::{
    claims::{Claim, claims, denies_or_leaves},
    conditions::without_conditions,
    discrepancies::undisclosed_discrepancies,
    grounding::Grounds,
    missing::missing_changes,
    numbers::{NumberEvidence, miscounts, unverified_numbers, unverified_weekdays},
    records::LinkedRecords,
    replaced::unfinished_steps,
    requests::{Certainty, Wish, wishes},
    support::Support,
    targets::other_target,
    text::{is_judged_language, sentences},
};

/// A step that was planned and not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnfinishedStep {
    pub(crate) step: String,
    pub(crate) tool: String,
    pub(crate) reason: String,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AnswerReview {
    pub(crate) unfinished: Vec<UnfinishedStep>,
    /// Clauses of the request whose change no step made.
    pub(crate) missing_changes: Vec<String>,
    /// Clauses of the answer that claim a change no step made.
    pub(crate) unsupported_claims: Vec<String>,
    /// Numbers and names of the answer that are in no result.
    pub(crate) unverified: Vec<String>,
    /// Whether changes were made, and the answer is too long or in a language whose claims cannot be checked.
    pub(crate) is_unjudged: bool,
    /// Whether the model answered nothing.
    pub(crate) has_no_answer: bool,
    /// Whether the answer is a result, not the words of a model.
    pub(crate) is_result: bool,
}

impl AnswerReview {
    /// Whether something that was requested, planned or claimed was not done.
    pub(crate) fn is_partial(&self) -> bool {
        let is_done = self.unfinished.is_empty()
            && self.missing_changes.is_empty()
            && self.unsupported_claims.is_empty();
        self.has_no_answer || !is_done
    }
}

/// Bytes of results that are compared with an answer; of more, only the previews are.
pub(crate) const MAX_EVIDENCE_BYTES: usize = 64 << 10;
/// Bytes of an answer that are reviewed at most; a model that does not stop writes more.
const MAX_REVIEWED_BYTES: usize = 16 << 10;
/// Claims of an answer that are checked.
const MAX_CLAIMS: usize = 50;

/// Reviews an answer to a question, given the steps of the run.
pub(crate) fn review_answer(question: &str, answer: &str, steps: &[StepFact]) -> AnswerReview {
    let is_too_long = answer.len() > MAX_REVIEWED_BYTES;
    let answer = answer.get(..answer.floor_char_boundary(MAX_REVIEWED_BYTES)).unwrap_or(answer);
    let records = LinkedRecords::of(steps);
    let grounds = Grounds::of(question, steps, &records);
    let wishes = wishes(question);
    // In a run that changes nothing, a condition was not met.
    let is_asked = |wish: &Wish| wish.certainty != Certainty::Conditional;
    let is_change = wishes.iter().any(is_asked) || steps.iter().any(|step| step.changes);
    let claims = claims(answer);
    let numbers = NumberEvidence::of_answer(question, answer, steps);
    let mut review = AnswerReview {
        unfinished: unfinished_steps(steps),
        missing_changes: missing_changes(question, answer, &wishes, &claims, steps, &grounds),
        unsupported_claims: Vec::new(),
        unverified: unverified_numbers(answer, &numbers),
        is_unjudged: is_change && (is_too_long || !is_judged_language(answer)),
        ..AnswerReview::default()
    };
    review.unfinished.extend(undisclosed_discrepancies(steps, answer));
    let unchanged = grounds.unchanged_record(&records);
    review.missing_changes.extend(unchanged.filter(|record| !is_left_on_purpose(record, question, answer)));
    review
        .missing_changes
        .extend(other_target(&without_conditions(question), answer, steps).filter(|_| is_change));
    let changes = NumberEvidence::of_changes(question, steps, &records);
    let support = Support { wishes: &wishes, steps, grounds: &grounds, is_change }.for_claims(&claims);
    let is_true = |claim: &Claim| {
        support.supports(claim)
            && !(is_change
                && (miscounts(claim, &numbers, &changes, &records) || grounds.overreaches(claim, &records)))
    };
    for claim in claims.iter().take(MAX_CLAIMS).filter(|claim| !is_true(claim)) {
        if !review.unsupported_claims.contains(&claim.text) {
            review.unsupported_claims.push(claim.text.clone());
        }
    }
    // Without steps and wishes, a quoted passage is a suggestion.
    let is_text = steps.is_empty() && wishes.is_empty();
    let unknown_names = if is_text { Vec::new() } else { grounds.unknown_identifiers(answer) };
    let claims_unknown = |claim: &&Claim| {
        unknown_names.iter().any(|name| claim.sentence.to_lowercase().contains(name.as_str()))
    };
    review.unsupported_claims.extend(claims.iter().find(claims_unknown).map(|claim| claim.text.clone()));
    review.unverified.extend(unknown_names);
    review.unverified.extend(unverified_weekdays(question, answer, steps));
    // A claim with a value from nowhere tells of a change that was not made. Elsewhere, a model may have computed the value.
    let is_claimed = |value: &String| {
        let mut claims = claims.iter();
        is_change
            && claims.any(|claim| claim.text.contains(value.as_str()) || claim.part.contains(value.as_str()))
    };
    let (claimed, other) = review.unverified.into_iter().partition(is_claimed);
    review.unverified = other;
    review.unsupported_claims.extend::<Vec<String>>(claimed);
    review
}

/// Whether the request restricts what is to be changed, and the answer says of a record that it was left: "tick off what is
/// overdue", "Fix bike light isn't due, so I left it".
fn is_left_on_purpose(record: &str, question: &str, answer: &str) -> bool {
    const RESTRICTIONS: [&str; 10] =
        ["that's", "that is", "that are", "which", "whose", "overdue", "older", "unread", "only", "的"];
    let question = question.to_lowercase();
    RESTRICTIONS.iter().any(|word| question.contains(word))
        && sentences(answer)
            .into_iter()
            .any(|sentence| sentence.to_lowercase().contains(record) && denies_or_leaves(sentence))
}

#[cfg(test)]
mod tests;
