//! Tests of the graph of a plan.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{layout::Place, *};
use crate::text::Language;

fn step(id: &str, depends_on: &[&str]) -> StepView {
    StepView {
        id: id.to_owned(),
        tool: Some("search_documents".to_owned()),
        description: format!("Searches the documents for {id}"),
        depends_on: depends_on.iter().map(|&id| id.to_owned()).collect(),
        ..StepView::default()
    }
}

fn layout(steps: &[StepView]) -> Layout {
    Layout::of_steps(steps, 960)
}

fn assert_well_formed(steps: &[StepView]) {
    let layout = layout(steps);
    assert_eq!(layout.places.len(), steps.len(), "every step is drawn once");
    for (before, after) in &layout.edges {
        assert!(layout.places[before].row < layout.places[after].row, "an edge leads down");
    }
    let node = layout.node;
    let places: Vec<&Place> = layout.places.values().collect();
    for (index, place) in places.iter().enumerate() {
        assert!(place.x + node.width <= layout.width && place.y + node.height <= layout.height);
        for other in &places[index + 1..] {
            let is_apart =
                place.x.abs_diff(other.x) >= node.width || place.y.abs_diff(other.y) >= node.height;
            assert!(is_apart, "nodes at {place:?} and {other:?} overlap");
        }
    }
}

/// Whether all tags are closed in order, and nothing but known names is a tag.
fn assert_valid_svg(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        let known = ["svg", "defs", "g", "a", "title", "rect", "use", "text", "path", "circle"];
        assert!(known.contains(&name), "unexpected element {name}");
        assert!(!tag.contains(" on"), "no handler in {tag}");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "all elements are closed");
    assert!(!svg.contains("style="), "no inline style, which the pages forbid");
}

fn draw(steps: &[StepView], width: usize, language: Language) -> PlanGraph {
    draw_plan(steps, width, DrawingText::of(language), &|_| String::new())
}

fn english(steps: &[StepView]) -> PlanGraph {
    draw(steps, 960, Language::English)
}

/// The width of a drawing in pixels.
fn width_of(graph: &PlanGraph) -> usize {
    graph.svg.split(" width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
}

#[test]
fn a_plan_without_steps_is_drawn_empty() {
    assert_valid_svg(&english(&[]).svg);
}

#[test]
fn a_step_shows_its_state_by_attribute_symbol_and_words() {
    let mut one = step("fetch", &[]);
    one.state = "failed".to_owned();
    let svg = english(&[one]).svg;
    assert!(svg.contains(r##"<a href="#step-fetch" data-step="fetch" data-state="failed""##), "{svg}");
    assert!(svg.contains("<title>Failed: fetch · search_documents · Searches"), "{svg}");
    assert!(svg.contains(r##"<use href="#pg-n-failed""##), "{svg}");
    assert!(svg.contains(r#"aria-label="Plan · Steps: 1 · Failed 1""#), "{svg}");
}

#[test]
fn positions_do_not_depend_on_states() {
    let steps: Vec<StepView> =
        vec![step("a", &[]), step("b", &["a"]), step("c", &["a"]), step("d", &["b", "c"]), step("e", &["a"])];
    let mut ended = steps.clone();
    for step in &mut ended {
        (step.state, step.duration_ms) = ("done".to_owned(), Some(123_456));
    }
    let corners = |svg: &str| -> Vec<String> {
        svg.split("translate(").skip(1).map(|part| part.split(')').next().unwrap().to_owned()).collect()
    };
    assert_eq!(corners(&english(&steps).svg), corners(&english(&ended).svg));
    assert_eq!(english(&steps).svg, english(&steps).svg, "deterministic");
}

#[test]
fn cycles_and_unknown_dependencies_are_left_out() {
    let steps = [step("a", &["c", "a"]), step("b", &["a", "missing"]), step("c", &["b"]), step("a", &["b"])];
    let rows: Vec<usize> = layout(&steps).places.values().map(|place| place.row).collect();
    assert_eq!(rows, [0, 1, 2, 2]);
    assert_well_formed(&steps);
}

#[test]
fn a_dependency_that_follows_from_others_is_not_drawn() {
    let layout = layout(&[step("a", &[]), step("b", &["a"]), step("c", &["a", "b"])]);
    assert_eq!(layout.edges, [(0, 1), (1, 2)]);
}

#[test]
fn a_dependency_that_passes_rows_is_drawn_around_them() {
    let steps = [step("a", &[]), step("b", &[]), step("c", &["a"]), step("d", &["b", "c"])];
    let layout = layout(&steps);
    let passing: Vec<_> = layout.edges.iter().filter(|edge| layout.passes_rows(**edge)).collect();
    assert_eq!(passing, [&(1, 3)]);
    let nodes_end = layout.places.values().map(|place| place.x + layout.node.width).max().unwrap();
    assert!(layout.lanes_x > nodes_end && layout.width > layout.lanes_x);
    let svg = english(&steps).svg;
    assert!(svg.contains(&format!("H{}V", layout.lanes_x + 4)), "{svg}");
}

/// Steps that have the same predecessors are drawn in the order of the plan.
fn assert_siblings_in_order(steps: &[StepView]) {
    let layout = layout(steps);
    let before = |step: usize| -> BTreeSet<usize> {
        layout.edges.iter().filter(|edge| edge.1 == step).map(|edge| edge.0).collect()
    };
    for (&step, place) in &layout.places {
        for (&other, later) in layout.places.range(step + 1..) {
            let is_ordered = (place.row, place.x) < (later.row, later.x);
            assert!(is_ordered || before(step) != before(other), "{step} is drawn after {other}");
        }
    }
}

#[test]
fn siblings_keep_the_order_of_the_plan_although_edges_cross() {
    assert_siblings_in_order(&[
        step("s0", &[]),
        step("s1", &["s0"]),
        step("s2", &["s0"]),
        step("s3", &["s2"]),
        step("s4", &["s0"]),
        step("s5", &["s4", "s1"]),
    ]);
}

#[test]
fn a_wide_layer_is_wrapped() {
    let names: Vec<String> = (0..180).map(|number| format!("part{number}")).collect();
    let mut steps = vec![step("start", &[])];
    steps.extend(names.iter().map(|name| step(name, &["start"])));
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    steps.push(step("end", &all));
    let graph = english(&steps);
    assert!(width_of(&graph) <= 960, "{} pixels wide", width_of(&graph));
    assert!(graph.svg.len() <= MAX_GRAPH_BYTES, "{} bytes", graph.svg.len());
    assert!(graph.svg.contains("search_documents"), "small nodes still name their tools");
    assert_eq!(graph.hidden_dependencies, 0);
    assert_well_formed(&steps);
}

#[test]
fn two_hundred_steps_in_a_chain_stay_within_the_size_and_scroll_down() {
    let steps: Vec<StepView> = (0..200)
        .map(|number: usize| step(&format!("step_{number}"), &[&format!("step_{}", number.wrapping_sub(1))]))
        .collect();
    let graph = english(&steps);
    assert!(width_of(&graph) < 960);
    assert!(graph.svg.len() <= MAX_GRAPH_BYTES, "{} bytes", graph.svg.len());
    assert_well_formed(&steps);
}

#[test]
fn two_hundred_steps_in_a_mesh_keep_all_edges_and_tools() {
    let steps: Vec<StepView> = (0..200_usize)
        .map(|number| {
            let (layer, column) = (number / 8, number % 8);
            let before =
                [column, (column + 1) % 8].map(|column| format!("s{}_{column}", layer.wrapping_sub(1)));
            step(&format!("s{layer}_{column}"), &before.each_ref().map(String::as_str))
        })
        .collect();
    let graph = draw_plan(&steps, 1_080, DrawingText::of(Language::Chinese), &|_| "?from=190".to_owned());
    assert_eq!(graph.hidden_dependencies, 0);
    assert_eq!(graph.svg.matches("search_documents</text>").count(), 200);
    let edges = graph.svg.split("class=\"pg-edges\" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(edges.matches('M').count(), 384, "24 layers with 16 edges each");
    assert!(edges.len() < 12_000, "{} bytes", edges.len());
    assert!(graph.svg.len() <= MAX_GRAPH_BYTES, "{} bytes", graph.svg.len());
}

#[test]
fn dense_plans_are_bounded_and_say_what_is_hidden() {
    let steps: Vec<StepView> = (0..400_usize)
        .map(|number| {
            let before: Vec<String> = (0..100)
                .filter(|other| (number * 7 + other * 13) % 3 != 0)
                .map(|n| format!("s{n}"))
                .collect();
            let before = if number < 100 { Vec::new() } else { before };
            StepView { depends_on: before, ..step(&format!("s{number}"), &[]) }
        })
        .collect();
    let graph = english(&steps);
    assert_eq!(graph.hidden_steps, 160);
    assert!(graph.svg.len() <= MAX_GRAPH_BYTES, "{} bytes", graph.svg.len());
    assert_valid_svg(&graph.svg);
}

#[test]
fn hostile_texts_stay_text() {
    let attack = "\"><script>alert(1)</script>' onload='x";
    let steps: Vec<StepView> = (0..200)
        .map(|number| StepView {
            id: format!("{attack}{attack}{number}"),
            tool: Some(attack.repeat(30)),
            description: attack.repeat(300),
            depends_on: vec![format!("{attack}{attack}{}", number / 2), attack.to_owned()],
            ..StepView::default()
        })
        .collect();
    let graph = english(&steps);
    assert_valid_svg(&graph.svg);
    assert!(!graph.svg.contains("<script"));
    assert!(graph.svg.len() <= MAX_GRAPH_BYTES, "{} bytes", graph.svg.len());
}

fn any_plan() -> impl Strategy<Value = Vec<StepView>> {
    let one = ("[a-l]{1,2}|\\PC{0,200}", proptest::collection::vec("[a-l]{1,2}", 0..5), "\\PC{0,80}");
    proptest::collection::vec(one, 0..60).prop_map(|steps| {
        let of = |(id, depends_on, text): (String, Vec<String>, String)| StepView {
            id,
            tool: Some(text.clone()),
            description: text,
            depends_on,
            ..StepView::default()
        };
        steps.into_iter().map(of).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nodes_never_overlap_and_edges_lead_to_higher_layers(steps in any_plan()) {
        assert_well_formed(&steps);
    }

    #[test]
    fn siblings_keep_the_order_of_the_plan(steps in any_plan()) {
        assert_siblings_in_order(&steps);
    }

    #[test]
    fn drawings_are_valid_bounded_and_deterministic(steps in any_plan(), width in 0..5_000_usize) {
        let graph = draw(&steps, width, Language::Chinese);
        assert_valid_svg(&graph.svg);
        prop_assert!(graph.svg.len() <= MAX_GRAPH_BYTES);
        prop_assert_eq!(graph.svg, draw(&steps, width, Language::Chinese).svg);
    }
}
