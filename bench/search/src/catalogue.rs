//! Catalogues and requests for benchmarks: test sets, multiplied with varied words, or synthetic ones.

use std::{fs, path::Path};

use fastrand::Rng;
use serde::Deserialize;
use toolyard_search::{ParamText, SourceText, ToolText};

/// Larger servers are split.
const MAX_TOOLS_PER_SERVER: usize = 50;
/// Requests per benchmark.
const MAX_REQUESTS: usize = 500;
/// Share of words of a copy that are replaced by other words of the catalogue.
const REPLACED_WORD_RATE: f64 = 0.15;
/// Share of words of a copy that are new.
const NEW_WORD_RATE: f64 = 0.005;

/// A server and its tools.
pub type Server = (SourceText, Vec<ToolText>);

/// A source of any number of servers.
pub struct Catalogue {
    base: Vec<Server>,
    /// All words of all texts, with repetitions.
    words: Vec<String>,
    /// Requests to search for.
    pub requests: Vec<String>,
}

#[derive(Deserialize)]
struct ToolLine {
    id: String,
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    server_description: String,
    #[serde(default)]
    params: Vec<ParamLine>,
}

#[derive(Deserialize)]
struct ParamLine {
    name: String,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize)]
struct RequestLine {
    text: String,
}

impl Catalogue {
    /// The sets of a folder: `SET/tools.jsonl` and `SET/queries.jsonl`.
    pub fn read(folder: &Path) -> Self {
        let mut sets: Vec<_> =
            fs::read_dir(folder).expect("the folder").map(|set| set.unwrap().path()).collect();
        sets.sort();
        let (mut base, mut requests) = (Vec::new(), Vec::new());
        for set in &sets {
            let name = set.file_name().unwrap_or_default().to_string_lossy().into_owned();
            base.extend(servers(&name, lines(&set.join("tools.jsonl"))));
            requests
                .extend(lines::<RequestLine>(&set.join("queries.jsonl")).into_iter().map(|line| line.text));
        }
        Self::new(base, requests)
    }

    /// A synthetic catalogue of made-up words with a skewed frequency distribution.
    pub fn synthetic() -> Self {
        let mut rng = Rng::with_seed(1);
        let syllables =
            ["ra", "me", "to", "lin", "ser", "ba", "con", "du", "fi", "gra", "ho", "pel", "sta", "vor", "wi"];
        let made_up_words: Vec<String> = (0..20_000)
            .map(|_| (0..rng.usize(2..5)).map(|_| syllables[rng.usize(..syllables.len())]).collect())
            .collect();
        let phrase = |rng: &mut Rng, words: usize| {
            // The fourth power: few words are frequent, most are rare.
            let words: Vec<&str> = (0..words)
                .map(|_| made_up_words[(rng.f64().powi(4) * made_up_words.len() as f64) as usize].as_str())
                .collect();
            words.join(" ")
        };
        let mut base = Vec::new();
        for number in 0..200 {
            let tools = (0..50).map(|tool| {
                let name = phrase(&mut rng, 2).replace(' ', "_");
                ToolText {
                    key: format!("{name}_{tool}").into(),
                    name,
                    description: phrase(&mut rng, 18),
                    params: (0..3)
                        .map(|_| ParamText {
                            name: phrase(&mut rng, 2).replace(' ', "_"),
                            description: phrase(&mut rng, 8),
                        })
                        .collect(),
                    ..ToolText::default()
                }
            });
            let tools = tools.collect();
            base.push((
                SourceText { id: format!("made{number}").into(), description: phrase(&mut rng, 20) },
                tools,
            ));
        }
        let requests = (0..MAX_REQUESTS).map(|_| phrase(&mut rng, 12)).collect();
        Self::new(base, requests)
    }

    fn new(mut base: Vec<Server>, mut requests: Vec<String>) -> Self {
        let mut rng = Rng::with_seed(7);
        rng.shuffle(&mut base);
        rng.shuffle(&mut requests);
        requests.truncate(MAX_REQUESTS);
        let texts = base.iter().flat_map(|(_, tools)| tools).map(|tool| tool.description.as_str());
        let words = texts.flat_map(|text| text.split(|letter: char| !letter.is_alphanumeric()));
        let words = words.filter(|word| word.len() > 1).map(str::to_owned).collect();
        Self { base, words, requests }
    }

    /// Servers with this many tools together.
    pub fn servers(&self, tools: usize) -> impl Iterator<Item = Server> {
        let mut left = tools;
        (0..).map_while(move |number| {
            let (server, mut tools) = self.server(number);
            tools.truncate(left);
            left -= tools.len();
            (!tools.is_empty()).then_some((server, tools))
        })
    }

    /// A server of 50 tools that is not among those of [`Self::servers`].
    pub fn new_server(&self, number: usize) -> Server {
        let first = 1_000_000_000 + number * MAX_TOOLS_PER_SERVER;
        let tools = (first..).flat_map(|at| self.server(at).1).take(MAX_TOOLS_PER_SERVER);
        let tools =
            tools.enumerate().map(|(at, tool)| ToolText { key: format!("{}_{at}", tool.key).into(), ..tool });
        let (server, _) = self.server(first);
        (server, tools.collect())
    }

    /// The first servers are those of the catalogue, later ones are varied copies.
    fn server(&self, number: usize) -> Server {
        let (server, tools) = &self.base[number % self.base.len()];
        let copy = number / self.base.len();
        if copy == 0 {
            return (server.clone(), tools.clone());
        }
        let mut rng = Rng::with_seed(number as u64);
        let word = self.word(&mut rng);
        let varied = SourceText {
            id: format!("{} {word}{copy}", server.id).into(),
            description: self.vary(&server.description, &mut rng),
        };
        (varied, tools.iter().map(|tool| self.copy(tool, &mut rng)).collect())
    }

    fn copy(&self, tool: &ToolText, rng: &mut Rng) -> ToolText {
        let mut name = tool.name.clone();
        if rng.bool() {
            name = format!("{name}_{}", self.word(rng));
        }
        ToolText {
            key: name.as_str().into(),
            name,
            title: self.vary(&tool.title, rng),
            description: self.vary(&tool.description, rng),
            params: tool
                .params
                .iter()
                .map(|param| ParamText {
                    name: param.name.clone(),
                    description: self.vary(&param.description, rng),
                })
                .collect(),
            capabilities: tool.capabilities.clone(),
            examples: tool.examples.clone(),
        }
    }

    fn vary(&self, text: &str, rng: &mut Rng) -> String {
        let words = text.split(' ').map(|word| match rng.f64() {
            chance if chance < NEW_WORD_RATE => self.new_word(rng),
            chance if chance < NEW_WORD_RATE + REPLACED_WORD_RATE => self.word(rng).to_owned(),
            _ => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn word(&self, rng: &mut Rng) -> &str {
        &self.words[rng.usize(..self.words.len())]
    }

    /// The beginning of one word and the end of another.
    fn new_word(&self, rng: &mut Rng) -> String {
        let half = |word: &str| word.chars().count().div_ceil(2);
        let (one, other) = (self.word(rng), self.word(rng));
        one.chars().take(half(one)).chain(other.chars().skip(half(other) / 2)).collect()
    }
}

fn lines<T: for<'a> Deserialize<'a>>(file: &Path) -> Vec<T> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of a set")).collect()
}

/// Groups tools by their server, none too large.
fn servers(set: &str, mut tools: Vec<ToolLine>) -> Vec<Server> {
    tools.sort_by(|one, other| one.server.cmp(&other.server));
    let mut all: Vec<Server> = Vec::new();
    let mut current = String::new();
    for tool in tools {
        let is_full = all.last().is_none_or(|(_, tools)| tools.len() == MAX_TOOLS_PER_SERVER);
        if is_full || tool.server != current {
            current.clone_from(&tool.server);
            let id = if tool.server.is_empty() { set } else { &tool.server };
            let id = format!("{id}{}", all.len());
            all.push((SourceText { id: id.into(), description: tool.server_description }, Vec::new()));
        }
        let params = tool.params.into_iter();
        let params =
            params.map(|param| ParamText { name: param.name, description: param.description }).collect();
        let text = ToolText {
            key: tool.id.into(),
            name: tool.name,
            description: tool.description,
            params,
            ..ToolText::default()
        };
        all.last_mut().expect("just pushed").1.push(text);
    }
    all
}
