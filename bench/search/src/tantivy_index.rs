//! A tantivy index over the same fields: in memory, one segment, one thread, one term query per word and field.

use std::collections::HashSet;

use tantivy::{
    Index, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, Term,
    collector::TopDocs,
    indexer::NoMergePolicy,
    query::{BooleanQuery, BoostQuery, Occur, Query, QueryParser, TermQuery},
    schema::{Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{
        Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
        TokenStream,
    },
};

use crate::catalogue::Server;

/// Fields and their boosts, as in Toolyard.
const FIELDS: [(&str, f32); 8] = [
    ("name", 2.5),
    ("title", 2.5),
    ("description", 0.87),
    ("param_name", 0.47),
    ("param_description", 0.32),
    ("server", 1.32),
    ("server_description", 0.09),
    ("capability", 0.01),
];
const WRITER_MEMORY_BYTES: usize = 200_000_000;

/// A tantivy index with its reader and writer.
pub struct TantivyIndex {
    index: Index,
    writer: IndexWriter,
    reader: IndexReader,
    searcher: Searcher,
    parser: QueryParser,
    fields: Vec<(Field, f32)>,
    key: Field,
    server_id: Field,
    analyzer: TextAnalyzer,
}

impl TantivyIndex {
    /// An empty index.
    pub fn new() -> Self {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("words")
            .set_index_option(IndexRecordOption::WithFreqs);
        let text = TextOptions::default().set_indexing_options(indexing);
        let fields: Vec<_> =
            FIELDS.iter().map(|(name, boost)| (schema.add_text_field(name, text.clone()), *boost)).collect();
        let key = schema.add_text_field("key", STORED);
        let server_id = schema.add_text_field("server_id", STRING);
        let index = Index::create_in_ram(schema.build());
        let analyzer = analyzer();
        index.tokenizers().register("words", analyzer.clone());
        let writer = index.writer_with_num_threads(1, WRITER_MEMORY_BYTES).expect("a writer");
        writer.set_merge_policy(Box::new(NoMergePolicy));
        let reader: IndexReader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().expect("a reader");
        let mut parser = QueryParser::for_index(&index, fields.iter().map(|(field, _)| *field).collect());
        for (field, boost) in &fields {
            parser.set_field_boost(*field, *boost);
        }
        let searcher = reader.searcher();
        Self { index, writer, reader, searcher, parser, fields, key, server_id, analyzer }
    }

    /// Adds the tools of a server; visible after [`Self::commit`].
    pub fn add(&mut self, (server, tools): &Server) {
        let fields: Vec<Field> = self.fields.iter().map(|(field, _)| *field).collect();
        for tool in tools {
            let mut document = TantivyDocument::new();
            document.add_text(self.key, &tool.key);
            document.add_text(self.server_id, &server.id);
            let join = |texts: &mut dyn Iterator<Item = &str>| texts.collect::<Vec<_>>().join(" ");
            let texts = [
                tool.name.clone(),
                tool.title.clone(),
                tool.description.clone(),
                join(&mut tool.params.iter().map(|param| param.name.as_str())),
                join(&mut tool.params.iter().map(|param| param.description.as_str())),
                server.id.to_string(),
                server.description.clone(),
                tool.capabilities.join(" "),
            ];
            for (field, text) in fields.iter().zip(texts) {
                document.add_text(*field, text);
            }
            self.writer.add_document(document).expect("a document");
        }
    }

    /// Removes the tools of a server; visible after [`Self::commit`].
    pub fn remove(&mut self, server: &str) {
        self.writer.delete_term(Term::from_field_text(self.server_id, server));
    }

    /// Makes changes visible.
    pub fn commit(&mut self) {
        self.writer.commit().expect("a commit");
        self.reader.reload().expect("a new view");
        self.searcher = self.reader.searcher();
    }

    /// Merges all segments into one, the best case of tantivy.
    pub fn merge(&mut self) {
        let segments = self.index.searchable_segment_ids().expect("segments");
        if segments.len() > 1 {
            self.writer.merge(&segments).wait().expect("a merge");
        }
        self.commit();
        assert!(self.searcher.segment_readers().len() <= 1);
    }

    /// Size of the in-memory files.
    pub fn bytes(&self) -> f64 {
        self.searcher.space_usage().expect("a size").total().get_bytes() as f64
    }

    /// Searches with the query parser.
    pub fn search_parsed(&self, request: &str) -> usize {
        let query = self.parser.parse_query(request).expect("words only");
        self.top(&*query)
    }

    /// Searches with one flat list of terms.
    pub fn search_flat(&mut self, request: &str) -> usize {
        let mut words = HashSet::new();
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        let mut tokens = self.analyzer.token_stream(request);
        while let Some(token) = tokens.next() {
            if !words.insert(token.text.clone()) {
                continue;
            }
            for (field, boost) in &self.fields {
                let term =
                    TermQuery::new(Term::from_field_text(*field, &token.text), IndexRecordOption::WithFreqs);
                clauses.push((Occur::Should, Box::new(BoostQuery::new(Box::new(term), *boost))));
            }
        }
        drop(tokens);
        self.top(&BooleanQuery::new(clauses))
    }

    fn top(&self, query: &dyn Query) -> usize {
        self.searcher.search(query, &TopDocs::with_limit(10).order_by_score()).expect("a search").len()
    }
}

/// Lowercase stems without the stop words of Toolyard.
fn analyzer() -> TextAnalyzer {
    let stop = include_str!("../../../crates/toolyard-search/src/analysis/stop_words.txt");
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(64))
        .filter(LowerCaser)
        .filter(StopWordFilter::remove(stop.split_whitespace().map(str::to_owned)))
        .filter(Stemmer::new(Language::English))
        .build()
}
