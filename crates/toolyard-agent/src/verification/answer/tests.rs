use serde_json::json;

use super::*;

fn done(tool: &str, arguments: &serde_json::Value, result: serde_json::Value) -> StepFact {
    StepFact {
        id: tool.to_owned(),
        tool: tool.to_owned(),
        changes: tool_changes(tool, false),
        arguments: arguments.as_object().unwrap().clone(),
        result,
        is_complete: true,
        ..StepFact::default()
    }
}

#[test]
fn a_claim_without_the_step_that_makes_it_true_is_unsupported() {
    let question = "translate the header row A1:D1 of sheet Sales in sales.xlsx into German";
    let read = done("read_data_from_excel", &json!({"filepath": "sales.xlsx"}), json!([["Month", "Sales"]]));
    let answer = "The header row was translated into German.";
    let review = review_answer(question, answer, std::slice::from_ref(&read));
    assert_eq!(review.unsupported_claims, ["The header row was translated into German"]);
    let write = done("write_data_to_excel", &json!({"filepath": "/data/sales.xlsx"}), json!("ok"));
    assert_eq!(review_answer(question, answer, &[read, write]), AnswerReview::default());
}

#[test]
fn a_requested_change_must_have_been_made() {
    let question = "Delete old.txt";
    let list = done("list_directory", &json!({"path": "/data"}), json!("old.txt\nnew.txt"));
    let review = review_answer(question, "Everything is fine.", std::slice::from_ref(&list));
    assert_eq!(review.missing_changes, [question]);
    let other = done("delete_file", &json!({"path": "/data/new.txt"}), json!("deleted"));
    assert!(review_answer(question, "It is gone.", &[list.clone(), other]).is_partial(), "another file");
    let same = done("delete_file", &json!({"path": "/data/old.txt"}), json!("deleted"));
    assert_eq!(review_answer(question, "It was deleted.", &[list, same]), AnswerReview::default());
}

#[test]
fn steps_that_were_not_done_make_an_answer_partial() {
    let read = done("read", &json!({}), json!("July"));
    let outcome = FactOutcome::Unfinished { reason: "not found".to_owned() };
    let failed = StepFact { outcome, ..done("calculate", &json!({"expression": "1"}), json!(null)) };
    let review = review_answer("Which month?", "July.", &[read, failed]);
    assert_eq!(review.unfinished[0].step, "calculate");
    assert!(review.is_partial());
}

#[test]
fn an_answer_may_describe_changes_that_others_made() {
    let step = done("get_issue", &json!({"number": 12}), json!({"state": "closed", "by": "Anna"}));
    let review = review_answer("Who closed issue 12?", "Issue 12 was closed by Anna.", &[step]);
    assert_eq!(review, AnswerReview::default());
}
