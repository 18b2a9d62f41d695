//! `tools/list`: the pages of a catalogue are encoded when they are requested and shared by all responses.

use std::{
    fmt::Display,
    sync::{Arc, OnceLock},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use parking_lot::Mutex;
use toolyard_core::{Catalogue, ListedTool, RawJson};
use toolyard_mcp::{
    definition::{MirroredParameter, mirrored_parameters},
    raw_field,
};

use crate::{config::ServerLimits, dispatch::outcome::LIST_END};

/// An endpoint has up to two catalogues (for the surfaces `full` and `search`), and clients may still be paging
/// through the previous version of each.
const MAX_CACHED_CATALOGUES: usize = 4;

/// Encoded pages that are kept of a catalogue. Clients read lists from the beginning, and few lists have as many pages.
const MAX_CACHED_PAGES: usize = 8;

/// The catalogues that were listed last, encoded.
#[derive(Debug, Default)]
pub(crate) struct ToolListCache {
    recent: Mutex<Vec<Arc<EncodedCatalogue>>>,
}

#[derive(Debug)]
pub(crate) struct EncodedCatalogue {
    pub(crate) catalogue: Arc<Catalogue>,
    /// The pages that were requested last, the latest at the end.
    pages: Mutex<Vec<ToolPage>>,
    /// Whether the tools are sorted by name, as those of most catalogues are.
    is_sorted: OnceLock<bool>,
}

/// A page: definitions separated by commas, [`LIST_END`], and the cursor of the next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolPage {
    pub(crate) entries: Bytes,
    pub(crate) next: Option<String>,
    /// The index of its first tool.
    start: usize,
}

impl ToolListCache {
    pub(crate) fn get(&self, catalogue: Arc<Catalogue>) -> Arc<EncodedCatalogue> {
        let mut recent = self.recent.lock();
        if let Some(found) = recent.iter().find(|encoded| Arc::ptr_eq(&encoded.catalogue, &catalogue)) {
            return Arc::clone(found);
        }
        if recent.len() == MAX_CACHED_CATALOGUES {
            recent.remove(0);
        }
        let encoded =
            Arc::new(EncodedCatalogue { catalogue, pages: Mutex::default(), is_sorted: OnceLock::new() });
        recent.push(Arc::clone(&encoded));
        encoded
    }
}

impl EncodedCatalogue {
    /// The page of a cursor; none for an invalid one.
    pub(crate) fn page(&self, cursor: Option<&str>, limits: &ServerLimits) -> Option<ToolPage> {
        let start = match cursor {
            Some(cursor) => self.page_start(cursor)?,
            None => 0,
        };
        if let Some(page) = use_cached(&mut self.pages.lock(), start) {
            return Some(page);
        }
        let rest = self.catalogue.tools.get(start..)?;
        let page = encode_page(rest, start, page_length(definition_bytes(rest), limits));
        let mut pages = self.pages.lock();
        // Another request may have encoded it meanwhile.
        if use_cached(&mut pages, start).is_none() {
            if pages.len() >= MAX_CACHED_PAGES {
                pages.remove(0);
            }
            pages.push(page.clone());
        }
        Some(page)
    }

    /// The arguments of a tool that clients repeat in headers.
    pub(crate) fn mirrored_parameters(&self, tool: &str) -> Vec<MirroredParameter> {
        let tool = self.position(tool).and_then(|at| self.catalogue.tools.get(at));
        tool.and_then(|tool| read_mirrored_parameters(&tool.definition)).unwrap_or_default()
    }

    /// The index of a tool.
    fn position(&self, name: &str) -> Option<usize> {
        let tools = &self.catalogue.tools;
        if *self.is_sorted.get_or_init(|| tools.is_sorted_by(|one, other| one.name <= other.name)) {
            return tools.binary_search_by(|tool| (*tool.name).cmp(name)).ok();
        }
        tools.iter().position(|tool| *tool.name == *name)
    }

    /// The index after the tool that a cursor names, even if that tool was removed.
    fn page_start(&self, cursor: &str) -> Option<usize> {
        let name = decode_cursor(CURSOR_PREFIX, cursor)?;
        let tools = &self.catalogue.tools;
        Some(
            self.position(&name)
                .map_or_else(|| tools.partition_point(|tool| *tool.name <= *name), |at| at + 1),
        )
    }
}

/// The cached page that begins with this tool, if there is one. It becomes the latest one, and so the last to be removed.
fn use_cached(pages: &mut [ToolPage], start: usize) -> Option<ToolPage> {
    let at = pages.iter().position(|page| page.start == start)?;
    pages.get_mut(at..)?.rotate_left(1);
    pages.last().cloned()
}

/// The beginning of a decoded cursor; the name of the last tool of the previous page follows.
const CURSOR_PREFIX: &str = "after:";

fn definition_bytes(tools: &[ListedTool]) -> impl ExactSizeIterator<Item = usize> {
    tools.iter().map(|tool| tool.definition.get().len())
}

/// The number of entries of these sizes on a page: at least one if there is one.
pub(crate) fn page_length(sizes: impl ExactSizeIterator<Item = usize>, limits: &ServerLimits) -> usize {
    let (mut bytes, entries) = (0_usize, sizes.len());
    let fits = |size: &usize| {
        bytes += size + 1;
        bytes <= limits.page_bytes
    };
    sizes.take(limits.page_entries).take_while(fits).count().max(1).min(entries)
}

pub(crate) fn encode_cursor(prefix: &str, position: impl Display) -> String {
    URL_SAFE_NO_PAD.encode(format!("{prefix}{position}"))
}

pub(crate) fn decode_cursor(prefix: &str, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(prefix).map(str::to_owned)
}

fn encode_page(rest: &[ListedTool], start: usize, length: usize) -> ToolPage {
    let page_tools = rest.get(..length).unwrap_or_default();
    let size = definition_bytes(page_tools).sum::<usize>() + page_tools.len();
    let mut entries: Vec<u8> = Vec::with_capacity(size + LIST_END.len());
    for tool in page_tools {
        if !entries.is_empty() {
            entries.push(b',');
        }
        entries.extend_from_slice(tool.definition.get().as_bytes());
    }
    toolyard_core::text::join_json_lines(&mut entries);
    entries.extend_from_slice(LIST_END.as_bytes());
    let last = page_tools.last().filter(|_| rest.len() > length);
    let next = last.map(|tool| encode_cursor(CURSOR_PREFIX, &tool.name));
    ToolPage { entries: entries.into(), next, start }
}

fn read_mirrored_parameters(definition: &RawJson) -> Option<Vec<MirroredParameter>> {
    if !definition.get().contains("x-mcp-header") {
        return None;
    }
    let schema = raw_field(definition, "inputSchema")?;
    // Invalid header declarations are ignored.
    mirrored_parameters(&schema).ok().filter(|mirrored_parameters| !mirrored_parameters.is_empty())
}

#[cfg(test)]
#[path = "tool_list_tests.rs"]
mod tests;
