//! What a server can change without being noticed: nothing.

use serde_json::{Value, json};
use toolyard_core::RawJson;

use super::*;
use crate::definition::{JudgeRules, judge_list};

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {name: {}}}})
}

fn list(tools: &[Value]) -> JudgedList {
    let raw: Vec<RawJson> = tools.iter().map(RawJson::from_value).collect();
    judge_list(&raw, JudgeRules::default())
}

/// A server whose lists are decided on one after the other, as the store remembers them.
#[derive(Default)]
struct Server {
    history: Vec<ToolDefinition>,
    first_sight: FirstSight,
    now: i64,
}

impl Server {
    fn sends(&mut self, tools: &[Value]) -> PinDecision {
        self.now += 1;
        let decision = decide(&self.history, list(tools), self.first_sight, self.now);
        self.remember(decision.records.clone());
        decision
    }

    fn remember(&mut self, records: Vec<ToolDefinition>) {
        for record in records {
            let same =
                self.history.iter_mut().find(|known| known.tool == record.tool && known.hash == record.hash);
            match same {
                Some(known) => known.approved |= record.approved,
                None => self.history.push(record),
            }
        }
    }
}

fn serving(decision: &PinDecision) -> Vec<&str> {
    decision.in_service.iter().map(|tool| tool.spec.name.as_ref()).collect()
}

fn waiting(decision: &PinDecision) -> Vec<String> {
    decision.blocked.iter().map(|blocked| format!("{}: {}", blocked.tool.spec.name, blocked.reason)).collect()
}

#[test]
fn what_is_seen_first_serves_and_is_told() {
    let mut server = Server::default();
    let first = server.sends(&[tool("a", "A"), tool("b", "B")]);
    assert_eq!(serving(&first), ["a", "b"]);
    assert_eq!(first.first_seen, ["a", "b"]);
    assert!(first.records.iter().all(|record| record.approved));
    let again = server.sends(&[tool("b", "B"), tool("a", "A")]);
    assert_eq!(serving(&again), ["b", "a"]);
    assert_eq!((again.first_seen.len(), again.records.len()), (0, 0));
}

#[test]
fn a_changed_tool_waits_until_it_is_approved_and_may_return() {
    let mut server = Server::default();
    server.sends(&[tool("a", "A"), tool("b", "B")]);
    let changed = server.sends(&[tool("a", "A, and more"), tool("b", "B")]);
    assert_eq!(serving(&changed), ["b"]);
    assert_eq!(waiting(&changed), ["a: its definition changed since it was approved"]);
    assert_eq!(changed.blocked[0].difference, ["description: \"A\" -> \"A, and more\""]);
    let still = server.sends(&[tool("a", "A, and more"), tool("b", "B")]);
    assert_eq!(serving(&still), ["b"], "having been seen is not having been approved");
    assert_eq!(serving(&server.sends(&[tool("a", "A"), tool("b", "B")])), ["a", "b"]);
    server.remember(still.approval(None, server.now).unwrap());
    assert_eq!(serving(&server.sends(&[tool("a", "A, and more")])), ["a"]);
    assert_eq!(serving(&server.sends(&[tool("a", "something else")])), [""; 0]);
    assert_eq!(server.history.iter().filter(|known| known.tool == "a").count(), 3);
}

#[test]
fn approval_is_for_what_was_shown_and_nothing_else() {
    let mut server = Server::default();
    server.sends(&[tool("a", "A"), tool("b", "B")]);
    let shown = server.sends(&[tool("a", "A2"), tool("b", "B2")]);
    assert_eq!(shown.approval(Some(&["c".to_owned()]), 9), Err(NotBlocked("c".to_owned())));
    server.remember(shown.approval(Some(&["a".to_owned()]), 9).unwrap());
    let later = server.sends(&[tool("a", "A3"), tool("b", "B2")]);
    assert_eq!(serving(&later), [""; 0]);
    assert_eq!(serving(&server.sends(&[tool("a", "A2"), tool("b", "B2")])), ["a"]);
}

#[test]
fn a_strict_server_serves_nothing_unasked() {
    let mut server = Server { first_sight: FirstSight::Ask, ..Server::default() };
    let first = server.sends(&[tool("a", "A")]);
    assert_eq!(waiting(&first), ["a: nobody approved it yet"]);
    server.remember(first.approval(None, server.now).unwrap());
    let second = server.sends(&[tool("a", "A"), tool("b", "B")]);
    assert_eq!(
        (serving(&second), waiting(&second)),
        (vec!["a"], vec!["b: nobody approved it yet".to_owned()])
    );
    server.first_sight = FirstSight::Trust;
    assert_eq!(
        serving(&server.sends(&[tool("a", "A"), tool("b", "B")])),
        ["a"],
        "what waits goes on waiting"
    );
}

#[test]
fn a_new_tool_of_a_known_server_is_told() {
    let mut server = Server::default();
    server.sends(&[tool("a", "A")]);
    let more = server.sends(&[tool("a", "A"), tool("b", "B")]);
    assert_eq!((serving(&more), more.first_seen.as_slice()), (vec!["a", "b"], ["b".to_owned()].as_slice()));
    let fewer = server.sends(&[tool("b", "B")]);
    assert_eq!(fewer.gone, ["a"]);
    assert_eq!(serving(&server.sends(&[tool("a", "A"), tool("b", "B")])), ["a", "b"]);
}

#[test]
fn a_pin_is_not_shed_by_a_new_name() {
    let mut server = Server::default();
    let original = tool("a", "Reads a file");
    server.sends(std::slice::from_ref(&original));
    let mut renamed = original.clone();
    renamed["name"] = json!("z");
    renamed["title"] = json!("Z");
    let decision = server.sends(std::slice::from_ref(&renamed));
    assert_eq!((serving(&decision).len(), decision.gone.as_slice()), (0, ["a".to_owned()].as_slice()));
    assert_eq!(waiting(&decision), ["z: it looks like a under a changed name"]);
    assert_eq!(decision.blocked[0].difference, ["name: \"a\" -> \"z\"", "title: added: \"Z\""]);
    assert_eq!(waiting(&server.sends(std::slice::from_ref(&renamed))).len(), 1, "it goes on waiting");
    let both = server.sends(&[original.clone(), renamed.clone()]);
    assert_eq!((serving(&both), waiting(&both)), (vec!["a"], vec!["z: nobody approved it yet".to_owned()]));
    server.remember(decision.approval(None, server.now).unwrap());
    assert_eq!(serving(&server.sends(&[renamed])), ["z"]);
}

#[test]
fn a_blocked_definition_does_not_return_under_another_name() {
    let mut server = Server::default();
    server.sends(&[tool("a", "Reads a file")]);
    server.sends(&[tool("a", "Reads a file and your keys")]);
    let laundered = server.sends(&[tool("b", "Reads a file and your keys")]);
    assert_eq!(waiting(&laundered), ["b: it looks like a under a changed name"]);
}

#[test]
fn a_quarantined_tool_is_not_gone() {
    let mut server = Server::default();
    server.sends(&[tool("a", "A"), tool("b", "B")]);
    let decision = server.sends(&[tool("a", "A\u{e0041}"), tool("b", "B")]);
    assert_eq!((serving(&decision), decision.gone.len(), decision.quarantined.len()), (vec!["b"], 0, 1));
}
