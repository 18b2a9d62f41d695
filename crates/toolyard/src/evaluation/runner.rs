//! Asks every engine every question, and writes down what came of it.

use std::{collections::BTreeMap, time::Instant};

use super::{
    Engine, Retriever,
    measure::{Figures, Outcome},
    report::{Curve, Point, Report, Row, key},
    split::Split,
    suite::{Ask, Group, History, PAST_USES, PER_STEP, Question, Suite},
    tokens::TokenCounter,
};

/// How many tools are shown to a model, and judged.
const SHOWN: usize = 10;
/// How far a curve goes.
const CURVE: usize = 50;

/// What is measured besides the table.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Which half the suites hold.
    pub split: Split,
    /// How tokens are counted.
    pub tokens: TokenCounter,
    /// Whether curves for a plot are wanted.
    pub curves: bool,
}

/// Measures all engines on all suites; `stage` hears what is being done.
pub fn evaluate(
    suites: &[Suite],
    engines: &[Engine<'_>],
    plan: &Plan,
    stage: &mut dyn FnMut(&str),
) -> Report {
    let mut report = Report {
        split: plan.split,
        tokens: plan.tokens.method.to_owned(),
        engines: engines.iter().map(|engine| engine.name.to_owned()).collect(),
        rows: Vec::new(),
        curves: Vec::new(),
    };
    for suite in suites {
        let costs = plan.tokens.of_tools(&suite.tools);
        let parts: Vec<Part> = engines
            .iter()
            .map(|engine| {
                stage(&format!("{}: {}", suite.name, engine.name));
                measure(suite, engine, &costs, plan.curves)
            })
            .collect();
        collect(suite, &costs, &parts, &mut report);
    }
    report
}

/// What one engine made of one suite.
struct Part {
    engine: String,
    groups: Vec<Option<Figures>>,
    curves: Vec<Option<Vec<Point>>>,
    learned: Option<Learned>,
}

/// What past requests were good for.
struct Learned {
    after: Option<Figures>,
    several_before: Option<Figures>,
    several_after: Option<Figures>,
}

fn measure(suite: &Suite, engine: &Engine<'_>, costs: &[usize], curves: bool) -> Part {
    let retriever = (engine.build)(&suite.tools);
    let figures = |group: &Group| Figures::of(&ask_all(retriever.as_ref(), &group.questions, costs));
    // Lists of steps are as long as their steps are many, and a task's whole text is judged once for each of its steps.
    let drawn = |group: &Group| curves && group.set == suite.name && group.asked != PER_STEP;
    let curve = |group: &Group| drawn(group).then(|| curve(retriever.as_ref(), &group.questions, costs));
    let learned = |history| learn(suite, engine, retriever.as_ref(), history, costs);
    Part {
        engine: engine.name.to_owned(),
        groups: suite.groups.iter().map(figures).collect(),
        curves: suite.groups.iter().map(curve).collect(),
        learned: suite.history.as_ref().and_then(learned),
    }
}

/// Measures again after past requests; nothing for an engine that does not learn from them.
fn learn(
    suite: &Suite,
    engine: &Engine<'_>,
    before: &dyn Retriever,
    history: &History,
    costs: &[usize],
) -> Option<Learned> {
    let mut retriever = (engine.build)(&suite.tools);
    let learns = history.past.iter().fold(false, |learns, (tool, request)| {
        // Every request is told, whatever came of the one before.
        retriever.remember(*tool, request) || learns
    });
    if !learns {
        return None;
    }
    let several = |outcomes: &[Outcome]| {
        let asked = history.questions.iter().zip(outcomes);
        Figures::of(asked.filter(|(question, _)| question.wanted.takes_several()).map(|(_, outcome)| outcome))
    };
    let after = ask_all(retriever.as_ref(), &history.questions, costs);
    let several_before = several(&ask_all(before, &history.questions, costs));
    Some(Learned { after: Figures::of(&after), several_before, several_after: several(&after) })
}

fn ask_all(retriever: &dyn Retriever, questions: &[Question], costs: &[usize]) -> Vec<Outcome> {
    questions
        .iter()
        .map(|question| {
            let start = Instant::now();
            let list = ask(retriever, &question.ask, SHOWN);
            let took = start.elapsed();
            let tokens = list.iter().take(SHOWN).filter_map(|tool| costs.get(*tool)).sum();
            Outcome::of(&question.wanted, &list, tokens, took)
        })
        .collect()
}

fn ask(retriever: &dyn Retriever, ask: &Ask, limit: usize) -> Vec<usize> {
    match ask {
        Ask::Text(text) => retriever.search(text, limit),
        Ask::Steps(task, steps) => retriever.search_steps(task, steps, limit),
    }
}

/// Mean tokens and mean recall of the first 1, 2, … tools.
fn curve(retriever: &dyn Retriever, questions: &[Question], costs: &[usize]) -> Vec<Point> {
    let mut points = vec![Point { tokens: 0.0, recall: 0.0 }; CURVE];
    for question in questions {
        let list = ask(retriever, &question.ask, CURVE);
        let gains = question.wanted.gains(&list);
        let mut tokens = 0;
        for (place, point) in points.iter_mut().enumerate() {
            tokens += list.get(place).and_then(|tool| costs.get(*tool)).unwrap_or(&0);
            point.tokens += tokens as f64 / questions.len() as f64;
            point.recall += 100.0 * question.wanted.recall(&gains, place + 1) / questions.len() as f64;
        }
    }
    points
}

/// Puts what the engines made of a suite side by side.
fn collect(suite: &Suite, costs: &[usize], parts: &[Part], report: &mut Report) {
    let catalogue_tokens = costs.iter().sum();
    let mut add = |set: &str, language: Option<&str>, asked: &str, figures: BTreeMap<String, Figures>| {
        if !figures.is_empty() {
            report.rows.push(Row {
                key: key(set, language, asked),
                set: set.to_owned(),
                language: language.map(str::to_owned),
                asked: asked.to_owned(),
                tools: suite.tools.len(),
                catalogue_tokens,
                figures,
            });
        }
    };
    for (at, group) in suite.groups.iter().enumerate() {
        let figures = by_engine(parts, |part| part.groups.get(at)?.clone());
        add(&group.set, group.language.as_deref(), &group.asked, figures);
        let points = by_engine(parts, |part| part.curves.get(at)?.clone());
        if !points.is_empty() {
            let key = key(&group.set, group.language.as_deref(), &group.asked);
            report.curves.push(Curve { key, catalogue_tokens, points });
        }
    }
    let after = format!("after {PAST_USES} past uses");
    let learned = |choose: fn(&Learned) -> &Option<Figures>| {
        by_engine(parts, |part| choose(part.learned.as_ref()?).clone())
    };
    add(&suite.name, None, &after, learned(|learned| &learned.after));
    add(&suite.name, None, "several tools", learned(|learned| &learned.several_before));
    add(&suite.name, None, &format!("several tools {after}"), learned(|learned| &learned.several_after));
}

/// What there is of something, for each engine that has it.
fn by_engine<T>(parts: &[Part], choose: impl Fn(&Part) -> Option<T>) -> BTreeMap<String, T> {
    parts.iter().filter_map(|part| Some((part.engine.clone(), choose(part)?))).collect()
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
