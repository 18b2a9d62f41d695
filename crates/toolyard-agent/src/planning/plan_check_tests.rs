//! Valid plans and every kind of problem.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A catalogue of five tools.
pub(crate) struct TestCatalog;

impl ToolCatalog for TestCatalog {
    fn input_schema(&self, tool: &str) -> Option<RawJson> {
        let schema = match tool {
            "read_data_from_excel" => {
                json!({"type": "object", "required": ["filepath", "sheet_name"], "properties": {
                "filepath": {"type": "string"}, "sheet_name": {"type": "string"}, "start_cell": {"type": "string", "default": "A1"},
                "preview_only": {"type": "boolean"}}})
            }
            "calculate" => {
                json!({"type": "object", "required": ["expression"], "additionalProperties": false, "properties": {
                "expression": {"type": "string"}, "values": {"type": "array"}}})
            }
            "write_data_to_excel" => {
                json!({"type": "object", "required": ["filepath", "sheet_name", "data"], "properties": {
                "filepath": {"type": "string"}, "sheet_name": {"type": "string"}, "start_cell": {"type": "string"},
                "data": {"type": "array", "items": {"type": "array", "items": {}}}}})
            }
            "get_time" => json!({"type": "object", "properties": {"format": {"enum": ["12", "24"]}}}),
            "anything" => json!({"type": "object"}),
            _ => return None,
        };
        Some(RawJson::from_value(&schema))
    }

    fn nearest(&self, tool: &str) -> Option<String> {
        tool.to_lowercase().starts_with("calc").then(|| "calculate".to_owned())
    }
}

fn step(id: &str, tool: &str, arguments: Value) -> Step {
    let Value::Object(arguments) = arguments else { panic!("no object") };
    Step {
        id: id.to_owned(),
        description: String::new(),
        tool_type: tool.to_owned(),
        arguments,
        dependencies: Vec::new(),
    }
}

fn problems(steps: Vec<Step>) -> Vec<String> {
    let problems = check_plan(&Plan { steps }, &TestCatalog, &RunLimits::default(), &["earlier"]);
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn the_plan_of_the_specification_is_valid() {
    let file = json!({"filepath": "test.xlsx", "sheet_name": "Sheet1"});
    let mut write = step("write", "write_data_to_excel", file.clone());
    write.arguments.insert("data".to_owned(), json!([["$sum"]]));
    let sum = step("sum", "calculate", json!({"expression": "sum(values)", "values": "$read.values"}));
    let tell = step("tell", NO_TOOL, json!({}));
    assert_eq!(problems(vec![step("read", "read_data_from_excel", file), sum, write, tell]), [""; 0]);
}

#[test]
fn every_problem_has_a_message() {
    let mut lonely = step("lonely", "calculate", json!({"expression": "$total * 2", "values": "$earlier.x"}));
    lonely.dependencies.push("nobody".to_owned());
    let steps = vec![
        step("a-b", "calculater", json!({})),
        step("x", "frobnicate", json!({})),
        step("x", "get_time", json!({"format": "36"})),
        lonely,
        step("few", "write_data_to_excel", json!({"filepath": 5, "data": [1]})),
        step("many", "calculate", json!({"expression": "1+1", "numbers": [1]})),
        step("call", "calculate", json!({"expression": "x", "values": "$x.values.map(round)"})),
        step("open", "anything", json!({"whatever": "$5 for $AAPL"})),
    ];
    insta::assert_snapshot!(problems(steps).join("\n"), @r#"
    step `a-b`: its id is used twice or is not a plain word
    step `x`: its id is used twice or is not a plain word
    step `a-b`: there is no tool `calculater`; did you mean `calculate`?
    step `x`: there is no tool `frobnicate`
    step `x`: `format` must be one of "12", "24"
    step `lonely`: it refers to `nobody`, but there is no such step
    step `lonely`: it refers to `$total`, but there is no such step
    step `few`: `write_data_to_excel` needs `sheet_name`
    step `few`: `filepath` must be string, not number
    step `few`: `data[]` must be array, not number
    step `many`: `calculate` has no parameter `numbers`; it takes expression, values
    step `call`: `$x.values.map` is followed by something that is no path: only .key, [0], [*] and [1:5] are
    "#);
}

#[test]
fn the_step_limit_is_enforced() {
    let limits = RunLimits { steps: 2, ..RunLimits::default() };
    let steps: Vec<Step> = (0..3).map(|at| step(&format!("s{at}"), "get_time", json!({}))).collect();
    let problems = check_plan(&Plan { steps }, &TestCatalog, &limits, &[]);
    assert_eq!(problems, [PlanProblem::TooLong { steps: 3, limit: 2 }]);
    assert!(matches!(
        check_plan(&Plan::default(), &TestCatalog, &limits, &[])[..],
        [PlanProblem::Unreadable { .. }]
    ));
}

#[test]
fn a_cycle_contains_only_its_members() {
    let mut first = step("first", "get_time", json!({}));
    first.dependencies.push("second".to_owned());
    let second = step("second", "anything", json!({"a": "$third.x"}));
    let third = step("third", "anything", json!({"a": ["$second"]}));
    let own = Plan { steps: vec![step("own", "anything", json!({"a": "$own"}))] };
    let mut cycle = find_cycle(&Plan { steps: vec![first, second, third] }).unwrap();
    cycle.sort();
    assert_eq!(cycle, ["second", "third"]);
    assert_eq!(find_cycle(&own).unwrap(), ["own"]);
}

/// Steps with these dependencies; half of them are references.
fn plan_of(count: usize, edges: &[(usize, usize)]) -> Plan {
    let mut steps: Vec<Step> = (0..count).map(|at| step(&format!("s{at}"), "anything", json!({}))).collect();
    for (at, (from, to)) in edges.iter().enumerate() {
        let needed = format!("s{}", to % count);
        let step = &mut steps[from % count];
        if at % 2 == 0 {
            step.dependencies.push(needed);
        } else {
            step.arguments.insert(format!("a{at}"), json!({"deep": [format!("${needed}.x")]}));
        }
    }
    Plan { steps }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn backward_references_form_no_cycle(edges in prop::collection::vec((1..30_usize, any::<prop::sample::Index>()), 0..80)) {
        let edges: Vec<(usize, usize)> = edges.into_iter().map(|(from, to)| (from, to.index(from))).collect();
        let plan = plan_of(30, &edges);
        prop_assert_eq!(find_cycle(&plan), None);
        prop_assert!(check_plan(&plan, &TestCatalog, &RunLimits::default(), &[]).is_empty());
    }

    #[test]
    fn every_cycle_is_reported(edges in prop::collection::vec((0..20_usize, 0..20_usize), 0..40), ring in prop::collection::vec(0..20_usize, 1..6)) {
        let mut edges = edges;
        for (at, from) in ring.iter().enumerate() {
            edges.push((*from, ring[(at + 1) % ring.len()]));
        }
        let plan = plan_of(20, &edges);
        let found = find_cycle(&plan).expect("a cycle exists");
        // The reported steps form a cycle.
        for (at, id) in found.iter().enumerate() {
            let next = &found[(at + 1) % found.len()];
            prop_assert!(plan.dependencies_of(plan.step(id).unwrap()).contains(next), "{found:?}");
        }
        let problems = check_plan(&plan, &TestCatalog, &RunLimits::default(), &[]);
        let cycle = PlanProblem::Cycle { steps: found };
        prop_assert!(cycle.to_string().starts_with("the plan is circular: `"), "{cycle}");
        prop_assert!(problems.contains(&cycle));
    }
}
