//! Time and memory of the index at several sizes: `catalogue_sizes [count] [SIZE…]`.
//!
//! Tools and requests are worded as those of `bench/load/sizes/catalogue.py`, whose lists of words it reads. Prints the processor time
//! of a request, bytes per tool, and a hash of all hits and scores, which two versions of the index must agree on. `count`
//! searches once, to be run under an instruction counter that collects in `measured_searches`.

#![expect(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a program that measures and prints its results"
)]

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    hint::black_box,
};

use toolyard_search::{ParamText, SearchIndex, SourceText, ToolText};

const WORD_LISTS: &str = include_str!("../../../bench/load/sizes/catalogue.py");
const TOOLS_PER_SERVER: usize = 100;
const REQUEST_COUNT: usize = 200;
const ROUNDS: usize = 5;
const TOP_K: usize = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut sizes: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![100, 2_000, 100_000, 1_000_000];
    }
    let words = Words::read();
    let requests = words.requests();
    for size in sizes {
        let before = resident_bytes();
        let index = words.index(size);
        let bytes = (resident_bytes() - before) / size as f64;
        if arguments.iter().any(|argument| argument == "count") {
            index.search("warm up", TOP_K);
            measured_searches(&index, &requests);
            continue;
        }
        measured_searches(&index, &requests);
        let times: Vec<f64> =
            (0..ROUNDS).map(|_| cpu_seconds(|| measured_searches(&index, &requests))).collect();
        let best = times.iter().copied().fold(f64::INFINITY, f64::min) / requests.len() as f64 * 1e6;
        println!(
            "{size} tools: {best:.1} µs of CPU per request, {bytes:.0} B per tool, hits {:016x}",
            hits_hash(&index, &requests)
        );
    }
}

#[inline(never)]
fn measured_searches(index: &SearchIndex, requests: &[String]) {
    requests.iter().for_each(|request| drop(black_box(index.search(request, TOP_K))));
}

fn hits_hash(index: &SearchIndex, requests: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for request in requests {
        for hit in index.search(request, TOP_K) {
            (&hit.source, &hit.key, hit.score.to_bits(), &hit.duplicates).hash(&mut hasher);
            hit.matches.iter().for_each(|one| (&one.word, &one.terms, one.score.to_bits()).hash(&mut hasher));
        }
    }
    hasher.finish()
}

/// The words of the catalogue.
struct Words {
    verbs: Vec<&'static str>,
    nouns: Vec<&'static str>,
    qualifiers: Vec<&'static str>,
}

impl Words {
    fn read() -> Self {
        let list = |name: &str| {
            let (_, list) = WORD_LISTS.split_once(&format!("{name} = \"\"\"")).expect("a list of words");
            list.split("\"\"\"").next().unwrap_or_default().split_whitespace().collect()
        };
        Self { verbs: list("VERBS"), nouns: list("NOUNS"), qualifiers: list("QUALIFIERS") }
    }

    fn index(&self, size: usize) -> SearchIndex {
        let mut index = SearchIndex::default();
        for number in 0..size.div_ceil(TOOLS_PER_SERVER) {
            let count = TOOLS_PER_SERVER.min(size - number * TOOLS_PER_SERVER);
            let mut random = Random(number as u64);
            let syllables = [
                "ba", "ce", "do", "fi", "go", "ha", "ki", "lo", "me", "no", "pa", "ro", "si", "tu", "ve",
                "zo",
            ];
            let name: String = (0..3).map(|_| random.one_of(&syllables)).collect();
            let tools: Vec<ToolText> = (0..count).map(|_| self.tool(&mut random)).collect();
            index.put(
                &SourceText { id: format!("{name}{number:05}").into(), description: String::new() },
                &tools,
            );
        }
        index
    }

    fn tool(&self, random: &mut Random) -> ToolText {
        let (verb, adjective) = (random.one_of(&self.verbs), random.one_of(&self.qualifiers));
        let [noun, other, third] = [(); 3].map(|()| random.one_of(&self.nouns));
        let mut params = Vec::new();
        let further: Vec<&str> = (0..random.below(3)).map(|_| random.one_of(&self.nouns)).collect();
        for subject in [noun, other, third].into_iter().chain(further) {
            params.push(ParamText {
                name: format!("{subject}_{}", random.one_of(&["id", "name", "count", "filter"])),
                description: format!("The {} {subject} to {verb}", random.one_of(&self.qualifiers)),
            });
        }
        let description = match random.below(4) {
            0 => format!(
                "{verb} the {adjective} {noun} of a {other} by its identifier, and return the {third} that belongs to it."
            ),
            1 => format!(
                "{verb} one {noun} with its {other} and {third}; use it when the user mentions a {adjective} {noun}."
            ),
            2 => format!(
                "{verb} a {adjective} {noun} in the current {other}. The result has the {third} and the time of the change."
            ),
            _ => format!(
                "{verb} every {noun} that matches a {other}, newest first, with pages of up to 100 {adjective} entries."
            ),
        };
        let name = format!("{verb}_{adjective}_{noun}");
        ToolText { key: name.as_str().into(), name, description, params, ..ToolText::default() }
    }

    fn requests(&self) -> Vec<String> {
        let mut random = Random(u64::MAX / 3);
        let request = |_| {
            let (verb, adjective) = (random.one_of(&self.verbs), random.one_of(&self.qualifiers));
            let [noun, other] = [(); 2].map(|()| random.one_of(&self.nouns));
            match random.below(4) {
                0 => format!("{verb} the {adjective} {noun}"),
                1 => format!("I want to {verb} a {noun} of my {other}"),
                2 => format!("{verb} {noun} and {other}"),
                _ => format!("which {adjective} {noun} has a {other}?"),
            }
        };
        (0..REQUEST_COUNT).map(request).collect()
    }
}

/// A generator whose numbers are the same everywhere (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as usize % bound
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// Processor time of this thread for some work, in seconds.
fn cpu_seconds(work: impl FnOnce()) -> f64 {
    let nanoseconds = || {
        let status = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        status.split(' ').next().and_then(|time| time.parse::<f64>().ok()).unwrap_or_default()
    };
    let before = nanoseconds();
    work();
    (nanoseconds() - before) / 1e9
}

/// Resident memory of this process in bytes.
fn resident_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() * 1024.0
}
