//! Prompts, resources and skills whose names or URIs collide.

use serde_json::{Value, json};

use super::*;

fn raw(values: &[Value]) -> Vec<RawJson> {
    values.iter().map(RawJson::from_value).collect()
}

fn skill(folder_uri: &str) -> Value {
    json!({"uri": format!("{folder_uri}SKILL.md"), "frontmatter": {"name": "x", "description": "d"},
        "resources": [{"uri": format!("{folder_uri}SKILL.md"), "digest": "sha256:0", "size": 1.0}]})
}

fn index(servers: Vec<(&str, ServerContent)>, local_skill_folders: &[&str]) -> ContentIndex {
    let servers = servers.into_iter().map(|(id, content)| (id.into(), Arc::new(content))).collect();
    ContentIndex::new(servers, local_skill_folders.iter().map(|folder| (*folder).to_owned()).collect())
}

fn route(index: &ContentIndex, uri: &str) -> Option<(String, String)> {
    index.route(uri).map(|route| (route.server.to_string(), route.uri))
}

fn expected_route(server: &str, uri: &str) -> Option<(String, String)> {
    Some((server.to_owned(), uri.to_owned()))
}

#[test]
fn a_renamed_prompt_is_otherwise_unchanged() {
    let prompt = RawJson::parse(r#"{"name":"review","x":1.50,"arguments":[{"name":"review"}]}"#.to_owned());
    let content = ServerContent { prompts: vec![prompt.unwrap()], ..ServerContent::default() };
    let both = index(vec![("a", content.clone()), ("b", content)], &[]);
    assert_eq!(both.prompts[1].get(), r#"{"name":"b.review","x":1.50,"arguments":[{"name":"review"}]}"#);
    assert_eq!(both.prompt("b.review").unwrap(), (&"b".into(), "review"));
    assert_eq!(both.prompt("review"), None);
}

#[test]
fn the_first_server_with_a_uri_owns_it_and_the_others_cause_a_warning() {
    let content = |name: &str| ServerContent {
        resources: raw(&[json!({"uri": "note://x", "name": name}), json!({"uri": format!("note://{name}")})]),
        has_resources: true,
        ..ServerContent::default()
    };
    let both = index(vec![("a", content("a")), ("b", content("b"))], &[]);
    assert_eq!(both.resources.len(), 3);
    assert_eq!(route(&both, "note://x"), expected_route("a", "note://x"));
    assert_eq!(route(&both, "note://b"), expected_route("b", "note://b"));
    assert_eq!(both.warnings, ["resource note://x of server `b` is not listed: `a` has this URI"]);
    assert_eq!(route(&both, "note://unknown"), None);
}

#[test]
fn an_unlisted_uri_is_routed_to_the_only_server() {
    let content = ServerContent { has_resources: true, ..ServerContent::default() };
    let index = index(vec![("a", content)], &[]);
    assert_eq!(route(&index, "note://unknown"), expected_route("a", "note://unknown"));
}

#[test]
fn the_most_specific_template_wins() {
    let content = |template: &str| ServerContent {
        templates: raw(&[json!({"uriTemplate": template, "name": "t"})]),
        has_resources: true,
        ..ServerContent::default()
    };
    let index = index(
        vec![("a", content("{+all}")), ("b", content("note://{id}")), ("c", content("note://{id}"))],
        &[],
    );
    assert_eq!(route(&index, "note://7"), expected_route("b", "note://7"));
    assert_eq!(route(&index, "other://7/8"), expected_route("a", "other://7/8"));
    assert_eq!(index.templates.len(), 2);
    assert_eq!(
        index.warnings,
        ["resource template note://{id} of server `c` is not listed: `b` has the same"]
    );
    assert_eq!(index.template_server("note://{id}").unwrap().as_str(), "b");
}

#[test]
fn a_skill_whose_uri_is_taken_is_relocated_with_a_note() {
    let content = ServerContent {
        skills: raw(&[skill("skill://x/")]),
        resources: raw(&[json!({"uri": "skill://x/SKILL.md"}), json!({"uri": "skill://x/more.md"})]),
        has_resources: true,
        ..ServerContent::default()
    };
    let index = index(vec![("a", content)], &["skill://x/"]);
    let entry = index.skills[0].to_value();
    assert_eq!(entry["uri"], "skill://a/x/SKILL.md");
    assert_eq!(entry["resources"][0]["uri"], "skill://a/x/SKILL.md");
    assert_eq!(entry["_meta"][SERVER_META_KEY], "a");
    assert!(entry["_meta"][NOTE_META_KEY].as_str().unwrap().contains("this one is of the server a"));
    assert_eq!(route(&index, "skill://x/SKILL.md"), None, "the local skill owns it");
    assert_eq!(route(&index, "skill://a/x/SKILL.md"), expected_route("a", "skill://x/SKILL.md"));
    assert_eq!(route(&index, "skill://a/x"), expected_route("a", "skill://x"));
    let relocation = index.route("skill://a/x/more.md").unwrap().relocation.unwrap();
    assert_eq!(relocation, Relocation { exposed: "skill://a/x/".to_owned(), own: "skill://x/".to_owned() });
    assert!(index.resources.is_empty(), "its files are found through the skill");
    assert_eq!(
        index.warnings,
        ["skill skill://x/ of server `a` is listed as skill://a/x/: another skill has this URI"]
    );
}

#[test]
fn a_server_cannot_add_files_to_the_skill_of_another() {
    let owner = ServerContent {
        skills: raw(&[skill("skill://x/")]),
        has_resources: true,
        ..ServerContent::default()
    };
    let intruder = ServerContent {
        resources: raw(&[json!({"uri": "skill://x/scripts/run.sh"})]),
        templates: raw(&[json!({"uriTemplate": "skill://x/{file}"})]),
        has_resources: true,
        ..ServerContent::default()
    };
    let index = index(vec![("a", intruder), ("z", owner)], &[]);
    assert_eq!(route(&index, "skill://x/scripts/run.sh"), expected_route("z", "skill://x/scripts/run.sh"));
    assert_eq!(route(&index, "skill://x/file"), expected_route("z", "skill://x/file"));
    assert!(index.resources.is_empty());
    assert_eq!(
        index.warnings,
        ["resource skill://x/scripts/run.sh of server `a` is not listed: `z` has this URI"]
    );
}

#[test]
fn only_uris_are_relocated() {
    let result =
        json!({"contents": [{"uri": "skill://x/a.md", "text": "skill://x/ stays"}], "uri": "skill://x"});
    let relocated = relocate_uris(&result.into(), "skill://x/", "skill://s/x/").to_value();
    assert_eq!(relocated["contents"][0], json!({"uri": "skill://s/x/a.md", "text": "skill://x/ stays"}));
    assert_eq!(relocated["uri"], "skill://s/x");
}
