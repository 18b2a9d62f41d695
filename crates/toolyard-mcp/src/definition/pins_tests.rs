//! No change of a definition goes unnoticed.

use serde_json::{Value, json};
use toolyard_core::RawJson;

use super::*;
use crate::definition::{ValidationRules, validate_tools};

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {name: {}}}})
}

fn validate_list(tools: &[Value]) -> ValidatedTools {
    let raw: Vec<RawJson> = tools.iter().map(RawJson::from_value).collect();
    validate_tools(&raw, ValidationRules::default())
}

/// A server whose tool lists are checked one after another against the definitions stored before.
#[derive(Default)]
struct Server {
    history: Vec<StoredDefinition>,
    new_tool_policy: NewToolPolicy,
    /// Names that another source has.
    names_in_use: Vec<&'static str>,
    now: i64,
}

impl Server {
    fn send_tools(&mut self, tools: &[Value]) -> PinDecision {
        self.now += 1;
        let name_user = |name: &str| self.names_in_use.contains(&name).then(|| "bank".into());
        let decision =
            decide_pins(&self.history, validate_list(tools), self.new_tool_policy, &name_user, self.now);
        self.store(decision.records.clone());
        decision
    }

    fn store(&mut self, records: Vec<StoredDefinition>) {
        for record in records {
            let stored =
                self.history.iter_mut().find(|known| known.tool == record.tool && known.hash == record.hash);
            match stored {
                Some(known) => known.approved |= record.approved,
                None => self.history.push(record),
            }
        }
    }
}

fn approved_names(decision: &PinDecision) -> Vec<&str> {
    decision.approved.iter().map(|tool| tool.spec.name.as_ref()).collect()
}

fn quarantined_reasons(decision: &PinDecision) -> Vec<String> {
    decision
        .quarantined
        .iter()
        .map(|quarantined| format!("{}: {}", quarantined.tool.spec.name, quarantined.reason))
        .collect()
}

#[test]
fn new_tools_are_approved_and_reported() {
    let mut server = Server::default();
    let first = server.send_tools(&[tool("a", "A"), tool("b", "B")]);
    assert_eq!(approved_names(&first), ["a", "b"]);
    assert_eq!(first.newly_approved, ["a", "b"]);
    assert!(first.records.iter().all(|record| record.approved));
    let again = server.send_tools(&[tool("b", "B"), tool("a", "A")]);
    assert_eq!(approved_names(&again), ["b", "a"]);
    assert_eq!((again.newly_approved.len(), again.records.len()), (0, 0));
}

#[test]
fn a_changed_tool_is_quarantined_until_it_is_approved_or_reverted() {
    let mut server = Server::default();
    server.send_tools(&[tool("a", "A"), tool("b", "B")]);
    let changed = server.send_tools(&[tool("a", "A, and more"), tool("b", "B")]);
    assert_eq!(approved_names(&changed), ["b"]);
    assert_eq!(quarantined_reasons(&changed), ["a: the definition changed since it was approved"]);
    assert_eq!(changed.quarantined[0].difference, ["description: \"A\" -> \"A, and more\""]);
    let still = server.send_tools(&[tool("a", "A, and more"), tool("b", "B")]);
    assert_eq!(approved_names(&still), ["b"], "seeing a definition again does not approve it");
    assert_eq!(approved_names(&server.send_tools(&[tool("a", "A"), tool("b", "B")])), ["a", "b"]);
    server.store(still.approval_records(None, server.now).unwrap());
    assert_eq!(approved_names(&server.send_tools(&[tool("a", "A, and more")])), ["a"]);
    assert_eq!(approved_names(&server.send_tools(&[tool("a", "something else")])), [""; 0]);
    assert_eq!(server.history.iter().filter(|known| known.tool == "a").count(), 3);
}

#[test]
fn approval_covers_only_the_definition_that_was_shown() {
    let mut server = Server::default();
    server.send_tools(&[tool("a", "A"), tool("b", "B")]);
    let shown = server.send_tools(&[tool("a", "A2"), tool("b", "B2")]);
    assert_eq!(shown.approval_records(Some(&["c".to_owned()]), 9), Err(NotQuarantined("c".to_owned())));
    server.store(shown.approval_records(Some(&["a".to_owned()]), 9).unwrap());
    let later = server.send_tools(&[tool("a", "A3"), tool("b", "B2")]);
    assert_eq!(approved_names(&later), [""; 0]);
    assert_eq!(approved_names(&server.send_tools(&[tool("a", "A2"), tool("b", "B2")])), ["a"]);
}

#[test]
fn a_policy_may_quarantine_new_tools() {
    let mut server = Server { new_tool_policy: NewToolPolicy::Quarantine, ..Server::default() };
    let first = server.send_tools(&[tool("a", "A")]);
    assert_eq!(quarantined_reasons(&first), ["a: not approved yet"]);
    server.store(first.approval_records(None, server.now).unwrap());
    let second = server.send_tools(&[tool("a", "A"), tool("b", "B")]);
    assert_eq!(
        (approved_names(&second), quarantined_reasons(&second)),
        (vec!["a"], vec!["b: not approved yet".to_owned()])
    );
    server.new_tool_policy = NewToolPolicy::Approve;
    assert_eq!(
        approved_names(&server.send_tools(&[tool("a", "A"), tool("b", "B")])),
        ["a"],
        "quarantined tools stay quarantined"
    );
}

#[test]
fn a_new_tool_of_a_known_server_is_reported() {
    let mut server = Server::default();
    server.send_tools(&[tool("a", "A")]);
    let more = server.send_tools(&[tool("a", "A"), tool("b", "B")]);
    assert_eq!(
        (approved_names(&more), more.newly_approved.as_slice()),
        (vec!["a", "b"], ["b".to_owned()].as_slice())
    );
    let fewer = server.send_tools(&[tool("b", "B")]);
    assert_eq!(fewer.removed, ["a"]);
    assert_eq!(approved_names(&server.send_tools(&[tool("a", "A"), tool("b", "B")])), ["a", "b"]);
}

#[test]
fn a_new_name_does_not_evade_a_pin() {
    let mut server = Server::default();
    let original = tool("a", "Reads a file");
    server.send_tools(std::slice::from_ref(&original));
    let mut renamed = original.clone();
    renamed["name"] = json!("z");
    renamed["title"] = json!("Z");
    let decision = server.send_tools(std::slice::from_ref(&renamed));
    assert_eq!(
        (approved_names(&decision).len(), decision.removed.as_slice()),
        (0, ["a".to_owned()].as_slice())
    );
    assert_eq!(quarantined_reasons(&decision), ["z: looks like a under a new name"]);
    assert_eq!(decision.quarantined[0].difference, ["name: \"a\" -> \"z\"", "title: added: \"Z\""]);
    assert_eq!(
        quarantined_reasons(&server.send_tools(std::slice::from_ref(&renamed))).len(),
        1,
        "still quarantined"
    );
    let both = server.send_tools(&[original.clone(), renamed.clone()]);
    assert_eq!(
        (approved_names(&both), quarantined_reasons(&both)),
        (vec!["a"], vec!["z: not approved yet".to_owned()])
    );
    server.store(decision.approval_records(None, server.now).unwrap());
    assert_eq!(approved_names(&server.send_tools(&[renamed])), ["z"]);
}

#[test]
fn a_quarantined_definition_does_not_return_under_another_name() {
    let mut server = Server::default();
    server.send_tools(&[tool("a", "Reads a file")]);
    server.send_tools(&[tool("a", "Reads a file and your keys")]);
    let renamed = server.send_tools(&[tool("b", "Reads a file and your keys")]);
    assert_eq!(quarantined_reasons(&renamed), ["b: looks like a under a new name"]);
}

#[test]
fn a_rejected_tool_is_not_reported_as_removed() {
    let mut server = Server::default();
    server.send_tools(&[tool("a", "A"), tool("b", "B")]);
    let decision = server.send_tools(&[tool("a", "A\u{e0041}"), tool("b", "B")]);
    assert_eq!(
        (approved_names(&decision), decision.removed.len(), decision.rejected.len()),
        (vec!["b"], 0, 1)
    );
}

#[test]
fn later_tools_of_an_untrusted_server_are_held() {
    let mut server =
        Server { new_tool_policy: NewToolPolicy::ApproveFirst { trusted: false }, ..Server::default() };
    assert_eq!(approved_names(&server.send_tools(&[])), [""; 0], "an empty list is no first approval");
    assert_eq!(approved_names(&server.send_tools(&[tool("a", "A"), tool("b", "B")])), ["a", "b"]);
    server.names_in_use = vec!["pay", "a"];
    let later = server.send_tools(&[tool("a", "A"), tool("c", "C"), tool("pay", "P")]);
    let reasons = [
        "c: new since the first approval",
        "pay: new since the first approval, and `bank` has a tool of the same name",
    ];
    assert_eq!(
        (approved_names(&later), quarantined_reasons(&later)),
        (vec!["a"], reasons.map(str::to_owned).to_vec())
    );
    let again = server.send_tools(&[tool("a", "A"), tool("c", "C"), tool("pay", "P")]);
    assert_eq!(quarantined_reasons(&again), reasons, "the reason stays");
    server.store(again.approval_records(None, 9).unwrap());
    let approved = server.send_tools(&[tool("a", "A"), tool("c", "C"), tool("pay", "P")]);
    assert_eq!(approved_names(&approved), ["a", "c", "pay"]);
}

#[test]
fn later_tools_of_a_trusted_server_are_held_if_they_collide_or_raise_the_risk() {
    let with_hints = |name: &str, hints: Value| {
        let mut tool = tool(name, name);
        tool["annotations"] = hints;
        tool
    };
    let reads = |name: &str| with_hints(name, json!({"readOnlyHint": true}));
    let mut server =
        Server { new_tool_policy: NewToolPolicy::ApproveFirst { trusted: true }, ..Server::default() };
    server.send_tools(&[reads("a")]);
    server.names_in_use = vec!["pay"];
    let later = server.send_tools(&[reads("a"), reads("b"), reads("pay"), tool("write", "W")]);
    assert_eq!(approved_names(&later), ["a", "b"]);
    assert_eq!(
        quarantined_reasons(&later),
        [
            "pay: new since the first approval, and `bank` has a tool of the same name",
            "write: new since the first approval, and riskier than all approved tools of the server: writes",
        ]
    );
    server.store(later.approval_records(Some(&["write".to_owned()]), 9).unwrap());
    let destroys = with_hints("drop", json!({"destructiveHint": true}));
    let later = server.send_tools(&[reads("a"), tool("write", "W"), tool("write2", "W2"), destroys]);
    assert_eq!(approved_names(&later), ["a", "write", "write2"]);
    assert_eq!(later.quarantined.len(), 1);
}
