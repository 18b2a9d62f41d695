//! Whose prompts, resources and skills are offered where, when several servers have the same.

use serde_json::{Value, json};

use super::*;

fn raw(values: &[Value]) -> Vec<RawJson> {
    values.iter().map(RawJson::from_value).collect()
}

fn skill(folder: &str) -> Value {
    json!({"uri": format!("{folder}SKILL.md"), "frontmatter": {"name": "x", "description": "d"},
        "resources": [{"uri": format!("{folder}SKILL.md"), "digest": "sha256:0", "size": 1.0}]})
}

fn index(offers: Vec<(&str, Offer)>, local: &[&str]) -> Index {
    let offers = offers.into_iter().map(|(id, offer)| (id.into(), Arc::new(offer))).collect();
    Index::new(offers, local.iter().map(|folder| (*folder).to_owned()).collect())
}

fn route(index: &Index, address: &str) -> Option<(String, String)> {
    index.route(address).map(|route| (route.server.to_string(), route.address))
}

fn to(server: &str, address: &str) -> Option<(String, String)> {
    Some((server.to_owned(), address.to_owned()))
}

#[test]
fn prompts_keep_everything_but_their_name() {
    let prompt = RawJson::parse(r#"{"name":"review","x":1.50,"arguments":[{"name":"review"}]}"#.to_owned());
    let offer = Offer { prompts: vec![prompt.unwrap()], ..Offer::default() };
    let both = index(vec![("a", offer.clone()), ("b", offer)], &[]);
    assert_eq!(both.prompts[1].get(), r#"{"name":"b.review","x":1.50,"arguments":[{"name":"review"}]}"#);
    assert_eq!(both.prompt("b.review").unwrap(), (&"b".into(), "review"));
    assert_eq!(both.prompt("review"), None);
}

#[test]
fn the_first_server_with_an_address_answers_for_it_and_the_others_are_named() {
    let offer = |name: &str| Offer {
        resources: raw(&[json!({"uri": "note://x", "name": name}), json!({"uri": format!("note://{name}")})]),
        has_resources: true,
        ..Offer::default()
    };
    let both = index(vec![("a", offer("a")), ("b", offer("b"))], &[]);
    assert_eq!(both.resources.len(), 3);
    assert_eq!(route(&both, "note://x"), to("a", "note://x"));
    assert_eq!(route(&both, "note://b"), to("b", "note://b"));
    assert_eq!(both.warnings, ["note://x of b is not offered: a has that address"]);
    assert_eq!(route(&both, "note://unknown"), None);
    assert_eq!(route(&index(vec![("a", offer("a"))], &[]), "note://unknown"), to("a", "note://unknown"));
}

#[test]
fn the_template_that_says_more_about_an_address_is_followed() {
    let offer = |template: &str| Offer {
        templates: raw(&[json!({"uriTemplate": template, "name": "t"})]),
        has_resources: true,
        ..Offer::default()
    };
    let index =
        index(vec![("a", offer("{+all}")), ("b", offer("note://{id}")), ("c", offer("note://{id}"))], &[]);
    assert_eq!(route(&index, "note://7"), to("b", "note://7"));
    assert_eq!(route(&index, "other://7/8"), to("a", "other://7/8"));
    assert_eq!(index.templates.len(), 2);
    assert_eq!(index.warnings, ["note://{id} of c is not offered: b has that template"]);
    assert_eq!(index.template("note://{id}").unwrap().as_str(), "b");
}

#[test]
fn a_skill_of_a_server_stands_aside_for_one_of_this_machine_and_says_so() {
    let offer = Offer {
        skills: raw(&[skill("skill://x/")]),
        resources: raw(&[json!({"uri": "skill://x/SKILL.md"}), json!({"uri": "skill://x/more.md"})]),
        has_resources: true,
        ..Offer::default()
    };
    let index = index(vec![("a", offer)], &["skill://x/"]);
    let entry = index.skills[0].to_value();
    assert_eq!(entry["uri"], "skill://a/x/SKILL.md");
    assert_eq!(entry["resources"][0]["uri"], "skill://a/x/SKILL.md");
    assert_eq!(entry["_meta"][ORIGIN], "a");
    assert!(entry["_meta"][NOTE].as_str().unwrap().contains("this one is of the server a"));
    assert_eq!(route(&index, "skill://x/SKILL.md"), None, "that is for this machine to answer");
    assert_eq!(route(&index, "skill://a/x/SKILL.md"), to("a", "skill://x/SKILL.md"));
    assert_eq!(route(&index, "skill://a/x"), to("a", "skill://x"));
    let moved_route = index.route("skill://a/x/more.md").unwrap().moved.unwrap();
    assert_eq!(moved_route, ("skill://a/x/".to_owned(), "skill://x/".to_owned()));
    assert!(index.resources.is_empty() && index.warnings.len() == 1, "{:?}", index.warnings);
}

#[test]
fn nobody_puts_files_into_the_skill_of_another() {
    let owner = Offer { skills: raw(&[skill("skill://x/")]), has_resources: true, ..Offer::default() };
    let intruder = Offer {
        resources: raw(&[json!({"uri": "skill://x/scripts/run.sh"})]),
        templates: raw(&[json!({"uriTemplate": "skill://x/{file}"})]),
        has_resources: true,
        ..Offer::default()
    };
    let index = index(vec![("a", intruder), ("z", owner)], &[]);
    assert_eq!(route(&index, "skill://x/scripts/run.sh"), to("z", "skill://x/scripts/run.sh"));
    assert_eq!(route(&index, "skill://x/file"), to("z", "skill://x/file"));
    assert!(index.resources.is_empty() && index.warnings.len() == 1);
}

#[test]
fn addresses_are_moved_and_nothing_else() {
    let result =
        json!({"contents": [{"uri": "skill://x/a.md", "text": "skill://x/ stays"}], "uri": "skill://x"});
    let there = moved(&result.into(), "skill://x/", "skill://s/x/").to_value();
    assert_eq!(there["contents"][0], json!({"uri": "skill://s/x/a.md", "text": "skill://x/ stays"}));
    assert_eq!(there["uri"], "skill://s/x");
}
