//! Compares the Toolyard index with tantivy in one run: time per request and per update, and memory per tool.
//!
//! `toolyard-bench-search [FOLDER] [SIZE…]`; without a folder of test sets the catalogue is synthetic.

mod catalogue;
mod measure;
mod tantivy_index;

use std::{hint::black_box, path::Path, process::Command};

use catalogue::Catalogue;
use measure::{cpu, median, resident_bytes};
use tantivy_index::TantivyIndex;
use toolyard_search::{SearchIndex, lexicon::Lexicons};

/// Numbers of tools that are measured by default.
const CATALOGUE_SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Number of hits per search.
const TOP_K: usize = 10;
/// Number of servers that are added and removed.
const CHANGED_SERVERS: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let folder = words.iter().copied().find(|word| Path::new(word).is_dir());
    let catalogue = folder.map_or_else(Catalogue::synthetic, |folder| Catalogue::read(Path::new(folder)));
    let mut sizes: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = CATALOGUE_SIZES.to_vec();
    }
    match words.first() {
        Some(&"memory-ours") => println!("{}", memory_of_ours(&catalogue, sizes[0])),
        Some(&"memory-theirs") => println!("{}", memory_of_theirs(&catalogue, sizes[0])),
        Some(&"count-ours") => count_ours(&catalogue, sizes[0]),
        Some(&"count-theirs") => count_theirs(&catalogue, sizes[0]),
        _ => sizes.iter().for_each(|size| compare(&catalogue, *size, folder)),
    }
}

/// The requests in lower case with letters and digits only, so that a query parser finds no operators.
fn plain_words(requests: &[String]) -> Vec<String> {
    let words = |text: &String| {
        let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
    };
    requests.iter().map(words).filter(|text| !text.is_empty()).collect()
}

fn build_toolyard_index(catalogue: &Catalogue, size: usize) -> SearchIndex {
    let mut index = SearchIndex::with_lexicon(std::sync::Arc::new(Lexicons::default()));
    catalogue.servers(size).for_each(|(server, tools)| index.put(&server, &tools));
    index
}

fn build_tantivy_index(catalogue: &Catalogue, size: usize) -> TantivyIndex {
    let mut index = TantivyIndex::new();
    catalogue.servers(size).for_each(|server| index.add(&server));
    index.commit();
    index
}

fn compare(catalogue: &Catalogue, size: usize, folder: Option<&str>) {
    let (_, generation) = cpu(|| catalogue.servers(size).for_each(|server| drop(black_box(server))));
    let (mut our, our_build) = cpu(|| build_toolyard_index(catalogue, size));
    let (mut their, their_build) = cpu(|| build_tantivy_index(catalogue, size));
    their.merge();
    println!("\n{size} tools: {our:?}");
    println!(
        "  index all, s of CPU: ours {:.2}, tantivy {:.2}",
        our_build - generation,
        their_build - generation
    );
    queries(catalogue, &our, &mut their, if size > 200_000 { 3 } else { 9 });
    changes(catalogue, size, &mut our, &mut their);
    drop((our, their));
    let memory = |mode: &str| -> f64 {
        let program = std::env::current_exe().expect("this program");
        let output =
            Command::new(program).arg(mode).args(folder).arg(size.to_string()).output().expect("a child");
        String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(f64::NAN)
    };
    println!(
        "  bytes per tool: ours {:.0}, tantivy's files {:.0}",
        memory("memory-ours"),
        memory("memory-theirs")
    );
}

fn queries(catalogue: &Catalogue, our: &SearchIndex, their: &mut TantivyIndex, rounds: usize) {
    let requests = plain_words(&catalogue.requests);
    let requests = if our.len() > 200_000 { &requests[..requests.len().min(100)] } else { &requests[..] };
    let (mut times, mut ratios) = ([const { Vec::new() }; 3], [const { Vec::new() }; 2]);
    for round in 0..=rounds {
        let request_count = requests.len() as f64;
        let our_time = cpu(|| measured_ours(our, requests)).1 / request_count;
        let parsed_time = cpu(|| measured_parsed(their, requests)).1 / request_count;
        let flat_time = cpu(|| measured_flat(their, requests)).1 / request_count;
        if round > 0 {
            times[0].push(our_time);
            times[1].push(parsed_time);
            times[2].push(flat_time);
            ratios[0].push(our_time / parsed_time);
            ratios[1].push(our_time / flat_time);
        }
    }
    let [our, parsed, flat] = times.map(|times| median(times) * 1e6);
    let [of_parsed, of_flat] = ratios.map(median);
    println!("  one request, µs of CPU: ours {our:.0}, tantivy {parsed:.0} parsed, {flat:.0} flat");
    println!("  ours / tantivy, median of {rounds} rounds: {of_parsed:.2} parsed, {of_flat:.2} flat");
}

#[inline(never)]
fn measured_ours(index: &SearchIndex, requests: &[String]) {
    requests.iter().for_each(|request| drop(black_box(index.search(request, TOP_K))));
}

#[inline(never)]
fn measured_parsed(index: &TantivyIndex, requests: &[String]) {
    requests.iter().for_each(|request| assert!(black_box(index.search_parsed(request)) <= TOP_K));
}

#[inline(never)]
fn measured_flat(index: &mut TantivyIndex, requests: &[String]) {
    requests.iter().for_each(|request| assert!(black_box(index.search_flat(request)) <= TOP_K));
}

fn changes(catalogue: &Catalogue, size: usize, our: &mut SearchIndex, their: &mut TantivyIndex) {
    // Servers of the catalogue that are removed; new ones are added and removed.
    let old: Vec<_> =
        catalogue.servers(size).filter(|(_, tools)| tools.len() == 50).take(CHANGED_SERVERS).collect();
    let mut times = [const { Vec::new() }; 5];
    for number in 0..CHANGED_SERVERS {
        let server = catalogue.new_server(number);
        times[0].push(cpu(|| our.put(&server.0, &server.1)).1);
        times[1].push(cpu(|| assert!(our.remove(&server.0.id))).1);
        times[2].push(
            cpu(|| {
                their.add(&server);
                their.commit()
            })
            .1,
        );
        times[3].push(
            cpu(|| {
                their.remove(&server.0.id);
                their.commit()
            })
            .1,
        );
        if let Some((server, _)) = old.get(number) {
            times[4].push(cpu(|| assert!(our.remove(&server.id))).1);
        }
    }
    let worst = times[0].iter().copied().fold(0.0, f64::max) * 1e3;
    let [our_put, our_remove, their_put, their_remove, our_old] = times.map(|times| median(times) * 1e3);
    println!(
        "  add 50 tools, ms of CPU: ours {our_put:.2} (worst of {CHANGED_SERVERS}: {worst:.2}), tantivy {their_put:.2}"
    );
    println!(
        "  remove 50 tools, ms of CPU: ours {our_remove:.2} (an early server {our_old:.2}), tantivy {their_remove:.2}"
    );
}

/// Bytes per tool, by the growth of this process.
fn memory_of_ours(catalogue: &Catalogue, size: usize) -> f64 {
    let before = resident_bytes();
    let index = build_toolyard_index(catalogue, size);
    let grown = resident_bytes() - before;
    black_box(index);
    grown / size as f64
}

/// Bytes per tool, by the size of the index files.
fn memory_of_theirs(catalogue: &Catalogue, size: usize) -> f64 {
    let mut index = build_tantivy_index(catalogue, size);
    index.merge();
    index.bytes() / size as f64
}

/// One round, to be run under an instruction counter.
fn count_ours(catalogue: &Catalogue, size: usize) {
    let (index, requests) = (build_toolyard_index(catalogue, size), plain_words(&catalogue.requests));
    index.search("warm up", TOP_K);
    measured_ours(&index, &requests);
    println!("{} requests", requests.len());
}

fn count_theirs(catalogue: &Catalogue, size: usize) {
    let (mut index, requests) = (build_tantivy_index(catalogue, size), plain_words(&catalogue.requests));
    index.merge();
    measured_parsed(&index, &requests);
    measured_flat(&mut index, &requests);
    println!("{} requests", requests.len());
}
