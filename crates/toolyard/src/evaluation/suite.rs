//! The questions of a test set over one catalogue, ready to be asked.

use std::collections::{BTreeMap, HashSet};

use toolyard_core::ContentHash;

use super::{
    data::{DataError, QueryText, Source, TaskText, ToolText, Tools},
    measure::{Enough, Wanted},
    split::{Half, Role, Split, half_of},
    steps::steps_of,
};

/// How many past requests of a tool are remembered when history is measured.
pub const PAST_USES: usize = 30;

/// The whole text at once: the usual way of asking.
pub const WHOLE_TEXT: &str = "whole text";
/// Step by step.
pub const PER_STEP: &str = "per step";

/// Tools and queries of their own.
#[derive(Debug)]
pub struct Set {
    /// Named after its folder.
    pub name: String,
    /// Its tools.
    pub tools: Tools,
    /// Where its queries stand.
    pub source: Source,
    /// Its queries, with their lines.
    pub queries: Vec<(usize, QueryText)>,
}

/// Queries over another set's tools. Any tool they accept is enough.
#[derive(Debug)]
pub struct Guest {
    /// Named after its folder.
    pub name: String,
    /// Its queries.
    pub queries: Source,
    /// Its tasks of several steps.
    pub tasks: Option<Source>,
}

/// One catalogue, and what is asked of it.
#[derive(Debug)]
pub struct Suite {
    /// The set's name.
    pub name: String,
    /// The catalogue.
    pub tools: Vec<ToolText>,
    /// The questions, a group for each row of the table.
    pub groups: Vec<Group>,
    /// What to remember and what to ask then.
    pub history: Option<History>,
}

/// Questions of a kind.
#[derive(Debug)]
pub struct Group {
    /// What the row is called.
    pub set: String,
    /// In which language, where the set says so.
    pub language: Option<String>,
    /// In what manner.
    pub asked: String,
    /// The questions.
    pub questions: Vec<Question>,
}

/// Past requests and the questions that follow.
#[derive(Debug, Default)]
pub struct History {
    /// Tools and the requests they answered.
    pub past: Vec<(usize, String)>,
    /// What is asked afterwards.
    pub questions: Vec<Question>,
}

/// One question.
#[derive(Debug, Clone)]
pub struct Question {
    /// What is searched for.
    pub ask: Ask,
    /// What should be found.
    pub wanted: Wanted,
}

/// What is searched for.
#[derive(Debug, Clone)]
pub enum Ask {
    /// A text.
    Text(String),
    /// A task, and each of its steps.
    Steps(String, Vec<String>),
}

impl Set {
    /// Reads a set.
    pub fn read(name: String, tools: &Source, source: Source) -> Result<Self, DataError> {
        let queries = source.lines::<QueryText>()?;
        let mut ids = HashSet::new();
        for (line, query) in &queries {
            if !ids.insert(query.id.as_str()) {
                return Err(source.problem(*line, "a query of this id was there before"));
            }
        }
        Ok(Self { name, tools: Tools::read(tools)?, queries, source })
    }

    /// The suite of this set alone.
    pub fn suite(&self, split: Split) -> Result<Suite, DataError> {
        let (mut whole, mut stepwise) = (Vec::new(), Vec::new());
        let (mut history, mut uses) = (History::default(), BTreeMap::<usize, Vec<&QueryText>>::new());
        for (line, query) in &self.queries {
            let (half, wanted) = (half(query), self.wanted(*line, query, 0)?);
            let question = Question { ask: Ask::Text(query.text.clone()), wanted };
            let steps = query.steps.as_deref().map(steps_of).unwrap_or_default();
            if split.takes(half) && !steps.is_empty() {
                stepwise.push(Question {
                    ask: Ask::Steps(query.text.clone(), steps),
                    wanted: question.wanted.clone(),
                });
            }
            match split.role(&query.id, half) {
                Some(Role::Measured) => history.questions.push(question.clone()),
                Some(Role::Past) => query
                    .relevant
                    .iter()
                    .filter_map(|id| self.tools.position(id))
                    .for_each(|tool| uses.entry(tool).or_default().push(query)),
                None => {}
            }
            if split.takes(half) {
                whole.push(question);
            }
        }
        history.past = past(uses);
        let group = |asked: &str, questions| Group {
            set: self.name.clone(),
            language: None,
            asked: asked.to_owned(),
            questions,
        };
        Ok(Suite {
            name: self.name.clone(),
            tools: self.tools.list.clone(),
            groups: vec![group(WHOLE_TEXT, whole), group(PER_STEP, stepwise)],
            history: Some(history),
        })
    }

    /// What a query wants, in a catalogue where this set's tools begin at `offset`.
    fn wanted(&self, line: usize, query: &QueryText, offset: usize) -> Result<Wanted, DataError> {
        let places = |ids: &[String]| places(&self.source, line, ids, &self.tools, offset);
        let relevant = places(&query.relevant)?;
        let alternatives =
            query.alternatives.iter().map(|group| places(group)).collect::<Result<Vec<_>, _>>()?;
        if alternatives.iter().any(|group| !group.iter().any(|tool| relevant.contains(tool))) {
            return Err(self.source.problem(line, "a group of alternatives has no relevant tool in it"));
        }
        Ok(Wanted::new(&relevant, &alternatives, Enough::All))
    }
}

/// All sets as one catalogue: each query must find its tools among those of all.
pub fn mixed(sets: &[Set], split: Split) -> Result<Suite, DataError> {
    let (mut tools, mut questions) = (Vec::new(), Vec::new());
    for set in sets {
        for (line, query) in set.queries.iter().filter(|(_, query)| split.takes(half(query))) {
            let wanted = set.wanted(*line, query, tools.len())?;
            questions.push(Question { ask: Ask::Text(query.text.clone()), wanted });
        }
        let renamed = set.tools.list.iter().map(|tool| {
            let id = format!("{}/{}", set.name, tool.id);
            ToolText { id, ..tool.clone() }
        });
        tools.extend(renamed);
    }
    let (name, asked) = ("mixed".to_owned(), WHOLE_TEXT.to_owned());
    let group = Group { set: name.clone(), language: None, asked, questions };
    Ok(Suite { name, tools, groups: vec![group], history: None })
}

impl Guest {
    /// The suite over the first of these catalogues that has all it asks for.
    pub fn suite<'a>(
        &self,
        catalogues: impl IntoIterator<Item = &'a Tools>,
        split: Split,
    ) -> Result<Suite, DataError> {
        let queries = self.queries.lines::<QueryText>()?;
        let tasks = self.tasks.as_ref().map(Source::lines::<TaskText>).transpose()?.unwrap_or_default();
        let asked = || queries.iter().flat_map(|(_, query)| &query.relevant);
        let has_all = |tools: &&Tools| asked().all(|id| tools.position(id).is_some());
        let tools = catalogues.into_iter().find(has_all);
        let tools = tools.ok_or_else(|| DataError::NoTools { file: self.queries.file.clone() })?;
        let mut groups: Vec<Group> = Vec::new();
        for (line, query) in queries.iter().filter(|(_, query)| split.takes(half(query))) {
            let relevant = places(&self.queries, *line, &query.relevant, tools, 0)?;
            let wanted = Wanted::new(&relevant, &[], Enough::One);
            let asked = query.kind.as_deref().unwrap_or(WHOLE_TEXT);
            let question = Question { ask: Ask::Text(query.text.clone()), wanted };
            file(&mut groups, &self.name, query.lang.as_deref(), asked, question);
        }
        if let Some(source) = &self.tasks {
            let name = format!("{} tasks", self.name);
            for (line, task) in &tasks {
                if split.takes(task.split.unwrap_or_else(|| half_of(&task.id))) {
                    file_task(&mut groups, &name, source, *line, task, tools)?;
                }
            }
        }
        Ok(Suite { name: self.name.clone(), tools: tools.list.clone(), groups, history: None })
    }
}

/// Every step of a task is a question: is one of its tools in its own list, and is one in the list of the whole text?
fn file_task(
    groups: &mut Vec<Group>,
    name: &str,
    source: &Source,
    line: usize,
    task: &TaskText,
    tools: &Tools,
) -> Result<(), DataError> {
    for (language, whole) in [("en", &task.text_en), ("zh", &task.text_zh)] {
        for step in &task.steps {
            let relevant = places(source, line, &step.relevant, tools, 0)?;
            let wanted = Wanted::new(&relevant, &[], Enough::One);
            let of_step = if language == "en" { &step.en } else { &step.zh };
            for (asked, text) in [(WHOLE_TEXT, whole), (PER_STEP, of_step)] {
                let question = Question { ask: Ask::Text(text.clone()), wanted: wanted.clone() };
                file(groups, name, Some(language), asked, question);
            }
        }
    }
    Ok(())
}

/// Puts a question to those of its kind.
fn file(groups: &mut Vec<Group>, set: &str, language: Option<&str>, asked: &str, question: Question) {
    let same = |group: &&mut Group| {
        group.set == set && group.language.as_deref() == language && group.asked == asked
    };
    if let Some(group) = groups.iter_mut().find(same) {
        group.questions.push(question);
        return;
    }
    let (set, language, asked) = (set.to_owned(), language.map(str::to_owned), asked.to_owned());
    groups.push(Group { set, language, asked, questions: vec![question] });
}

/// Where these tools stand.
fn places(
    source: &Source,
    line: usize,
    ids: &[String],
    tools: &Tools,
    offset: usize,
) -> Result<Vec<usize>, DataError> {
    if ids.is_empty() {
        return Err(source.problem(line, "no tool is named where at least one must be"));
    }
    let place = |id: &String| tools.position(id).map(|place| place + offset);
    let unknown = |id: &String| source.problem(line, format!("there is no tool `{id}`"));
    ids.iter().map(|id| place(id).ok_or_else(|| unknown(id))).collect()
}

/// Up to [`PAST_USES`] requests of each tool, chosen and ordered by the hash of the query's id.
fn past(uses: BTreeMap<usize, Vec<&QueryText>>) -> Vec<(usize, String)> {
    let chosen = |(tool, mut queries): (usize, Vec<&QueryText>)| {
        queries.sort_by_cached_key(|query| ContentHash::of(&query.id));
        let texts: Vec<_> = queries.iter().take(PAST_USES).map(|query| (tool, query.text.clone())).collect();
        texts
    };
    uses.into_iter().flat_map(chosen).collect()
}

fn half(query: &QueryText) -> Half {
    query.split.unwrap_or_else(|| half_of(&query.id))
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;
