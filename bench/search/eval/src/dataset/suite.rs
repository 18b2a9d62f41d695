//! Suites: the queries of a test set with their relevance judgements, over one catalogue.

use std::collections::{BTreeMap, HashSet};

use toolyard_core::ContentHash;

use super::{
    records::{Catalogue, DatasetError, QueryRecord, SourceFile, TaskRecord, ToolRecord},
    split::{Half, HistoryRole, Split, half_of},
};
use crate::{
    metrics::{RelevanceCriterion, RelevanceJudgements},
    steps::parse_steps,
};

/// Past requests recorded per tool when history is measured.
pub const MAX_PAST_USES: usize = 30;

/// Query mode: one search for the whole text.
pub const WHOLE_TEXT: &str = "whole text";
/// Query mode: one search per step.
pub const PER_STEP: &str = "per step";

/// A test set with its own tools.
#[derive(Debug)]
pub struct TestSet {
    /// Named after its folder.
    pub name: String,
    /// The tools.
    pub tools: Catalogue,
    /// File of the queries.
    pub source: SourceFile,
    /// Queries with their line numbers.
    pub queries: Vec<(usize, QueryRecord)>,
}

/// Queries over the tools of another test set. Any relevant tool is enough.
#[derive(Debug)]
pub struct QuerySet {
    /// Named after its folder.
    pub name: String,
    /// File of the queries.
    pub queries: SourceFile,
    /// File of tasks with several steps.
    pub tasks: Option<SourceFile>,
}

/// One catalogue and the queries over it.
#[derive(Debug)]
pub struct Suite {
    /// Name of the test set.
    pub name: String,
    /// The catalogue.
    pub tools: Vec<ToolRecord>,
    /// One group of queries per row of the table.
    pub groups: Vec<QueryGroup>,
    /// Queries that are measured after past requests.
    pub history: Option<HistoryTest>,
}

/// Queries of one row of the table.
#[derive(Debug)]
pub struct QueryGroup {
    /// Name of the test set.
    pub set: String,
    /// Language of the queries, where the set gives it.
    pub language: Option<String>,
    /// [`WHOLE_TEXT`], [`PER_STEP`] or the kind of query.
    pub mode: String,
    /// The queries.
    pub queries: Vec<EvalQuery>,
}

/// Past requests, and queries measured after them.
#[derive(Debug, Default)]
pub struct HistoryTest {
    /// Positions of tools and the requests they served.
    pub past_requests: Vec<(usize, String)>,
    /// Queries measured afterwards.
    pub queries: Vec<EvalQuery>,
}

/// A query and its relevance judgements.
#[derive(Debug, Clone)]
pub struct EvalQuery {
    /// The text to search for.
    pub input: QueryInput,
    /// The relevant tools.
    pub judgements: RelevanceJudgements,
}

/// The text of a query.
#[derive(Debug, Clone)]
pub enum QueryInput {
    /// A text.
    Text(String),
    /// A task, and each of its steps.
    Steps(String, Vec<String>),
}

impl TestSet {
    /// Reads a set.
    pub fn read(name: String, tools: &SourceFile, source: SourceFile) -> Result<Self, DatasetError> {
        let queries = source.lines::<QueryRecord>()?;
        let mut ids = HashSet::new();
        for (line, query) in &queries {
            if !ids.insert(query.id.as_str()) {
                return Err(source.problem(*line, "duplicate query id"));
            }
        }
        Ok(Self { name, tools: Catalogue::read(tools)?, queries, source })
    }

    /// The suite of this set alone.
    pub fn suite(&self, split: Split) -> Result<Suite, DatasetError> {
        let (mut whole, mut stepwise) = (Vec::new(), Vec::new());
        let (mut history, mut uses) = (HistoryTest::default(), BTreeMap::<usize, Vec<&QueryRecord>>::new());
        for (line, record) in &self.queries {
            let (half, judgements) = (half(record), self.judgements(*line, record, 0)?);
            let query = EvalQuery { input: QueryInput::Text(record.text.clone()), judgements };
            let steps = record.steps.as_deref().map(parse_steps).unwrap_or_default();
            if split.includes(half) && !steps.is_empty() {
                stepwise.push(EvalQuery {
                    input: QueryInput::Steps(record.text.clone(), steps),
                    judgements: query.judgements.clone(),
                });
            }
            match split.role(&record.id, half) {
                Some(HistoryRole::Measured) => history.queries.push(query.clone()),
                Some(HistoryRole::Past) => record
                    .relevant
                    .iter()
                    .filter_map(|id| self.tools.position(id))
                    .for_each(|tool| uses.entry(tool).or_default().push(record)),
                None => {}
            }
            if split.includes(half) {
                whole.push(query);
            }
        }
        history.past_requests = past_requests(uses);
        let group = |mode: &str, queries| QueryGroup {
            set: self.name.clone(),
            language: None,
            mode: mode.to_owned(),
            queries,
        };
        Ok(Suite {
            name: self.name.clone(),
            tools: self.tools.list.clone(),
            groups: vec![group(WHOLE_TEXT, whole), group(PER_STEP, stepwise)],
            history: Some(history),
        })
    }

    /// The judgements of a query in a catalogue in which the tools of this set start at `offset`.
    fn judgements(
        &self,
        line: usize,
        query: &QueryRecord,
        offset: usize,
    ) -> Result<RelevanceJudgements, DatasetError> {
        let positions = |ids: &[String]| positions(&self.source, line, ids, &self.tools, offset);
        let relevant = positions(&query.relevant)?;
        let alternatives =
            query.alternatives.iter().map(|group| positions(group)).collect::<Result<Vec<_>, _>>()?;
        if alternatives.iter().any(|group| !group.iter().any(|tool| relevant.contains(tool))) {
            return Err(self.source.problem(line, "a group of alternatives has no relevant tool in it"));
        }
        Ok(RelevanceJudgements::new(&relevant, &alternatives, RelevanceCriterion::All))
    }
}

/// A suite over the tools of all sets as one catalogue.
pub fn mixed(sets: &[TestSet], split: Split) -> Result<Suite, DatasetError> {
    let (mut tools, mut queries) = (Vec::new(), Vec::new());
    for set in sets {
        for (line, query) in set.queries.iter().filter(|(_, query)| split.includes(half(query))) {
            let judgements = set.judgements(*line, query, tools.len())?;
            queries.push(EvalQuery { input: QueryInput::Text(query.text.clone()), judgements });
        }
        let renamed = set.tools.list.iter().map(|tool| {
            let id = format!("{}/{}", set.name, tool.id);
            ToolRecord { id, ..tool.clone() }
        });
        tools.extend(renamed);
    }
    let (name, mode) = ("mixed".to_owned(), WHOLE_TEXT.to_owned());
    let group = QueryGroup { set: name.clone(), language: None, mode, queries };
    Ok(Suite { name, tools, groups: vec![group], history: None })
}

impl QuerySet {
    /// The suite over the first catalogue that has all relevant tools.
    pub fn suite<'a>(
        &self,
        catalogues: impl IntoIterator<Item = &'a Catalogue>,
        split: Split,
    ) -> Result<Suite, DatasetError> {
        let queries = self.queries.lines::<QueryRecord>()?;
        let tasks = self.tasks.as_ref().map(SourceFile::lines::<TaskRecord>).transpose()?.unwrap_or_default();
        let relevant = || queries.iter().flat_map(|(_, query)| &query.relevant);
        let has_all = |tools: &&Catalogue| relevant().all(|id| tools.position(id).is_some());
        let tools = catalogues.into_iter().find(has_all);
        let tools = tools.ok_or_else(|| DatasetError::NoTools { file: self.queries.file.clone() })?;
        let mut groups: Vec<QueryGroup> = Vec::new();
        for (line, record) in queries.iter().filter(|(_, query)| split.includes(half(query))) {
            let relevant = positions(&self.queries, *line, &record.relevant, tools, 0)?;
            let judgements = RelevanceJudgements::new(&relevant, &[], RelevanceCriterion::Any);
            let mode = record.kind.as_deref().unwrap_or(WHOLE_TEXT);
            let query = EvalQuery { input: QueryInput::Text(record.text.clone()), judgements };
            add_to_group(&mut groups, &self.name, record.lang.as_deref(), mode, query);
        }
        if let Some(source) = &self.tasks {
            let name = format!("{} tasks", self.name);
            for (line, task) in &tasks {
                if split.includes(task.split.unwrap_or_else(|| half_of(&task.id))) {
                    add_task(&mut groups, &name, source, *line, task, tools)?;
                }
            }
        }
        Ok(Suite { name: self.name.clone(), tools: tools.list.clone(), groups, history: None })
    }
}

/// Adds two queries per step of a task: one for the text of the step, one for the text of the whole task.
fn add_task(
    groups: &mut Vec<QueryGroup>,
    name: &str,
    source: &SourceFile,
    line: usize,
    task: &TaskRecord,
    tools: &Catalogue,
) -> Result<(), DatasetError> {
    for (language, whole) in [("en", &task.text_en), ("zh", &task.text_zh)] {
        for step in &task.steps {
            let relevant = positions(source, line, &step.relevant, tools, 0)?;
            let judgements = RelevanceJudgements::new(&relevant, &[], RelevanceCriterion::Any);
            let step_text = if language == "en" { &step.en } else { &step.zh };
            for (mode, text) in [(WHOLE_TEXT, whole), (PER_STEP, step_text)] {
                let query =
                    EvalQuery { input: QueryInput::Text(text.clone()), judgements: judgements.clone() };
                add_to_group(groups, name, Some(language), mode, query);
            }
        }
    }
    Ok(())
}

fn add_to_group(
    groups: &mut Vec<QueryGroup>,
    set: &str,
    language: Option<&str>,
    mode: &str,
    query: EvalQuery,
) {
    let is_same_group = |group: &&mut QueryGroup| {
        group.set == set && group.language.as_deref() == language && group.mode == mode
    };
    if let Some(group) = groups.iter_mut().find(is_same_group) {
        group.queries.push(query);
        return;
    }
    let (set, language, mode) = (set.to_owned(), language.map(str::to_owned), mode.to_owned());
    groups.push(QueryGroup { set, language, mode, queries: vec![query] });
}

/// Positions of tools in the catalogue.
fn positions(
    source: &SourceFile,
    line: usize,
    ids: &[String],
    tools: &Catalogue,
    offset: usize,
) -> Result<Vec<usize>, DatasetError> {
    if ids.is_empty() {
        return Err(source.problem(line, "a list of relevant tools is empty"));
    }
    let position = |id: &String| tools.position(id).map(|position| position + offset);
    let unknown = |id: &String| source.problem(line, format!("there is no tool `{id}`"));
    ids.iter().map(|id| position(id).ok_or_else(|| unknown(id))).collect()
}

/// Up to [`MAX_PAST_USES`] requests of each tool, selected and ordered by the hash of the query id.
fn past_requests(uses: BTreeMap<usize, Vec<&QueryRecord>>) -> Vec<(usize, String)> {
    let selected = |(tool, mut queries): (usize, Vec<&QueryRecord>)| {
        queries.sort_by_cached_key(|query| ContentHash::of(&query.id));
        let texts: Vec<_> =
            queries.iter().take(MAX_PAST_USES).map(|query| (tool, query.text.clone())).collect();
        texts
    };
    uses.into_iter().flat_map(selected).collect()
}

fn half(query: &QueryRecord) -> Half {
    query.split.unwrap_or_else(|| half_of(&query.id))
}

#[cfg(test)]
#[path = "suite_tests.rs"]
mod tests;
