//! `tools/list`: each catalogue is encoded once and shared by all responses.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use toolyard_core::{Catalogue, OfferedTool, RawJson};
use toolyard_mcp::definition::{MirroredParameter, mirrored_parameters};

use crate::{config::ServerLimits, dispatch::outcome::LIST_END, json_fields::each_field};

/// An endpoint has two catalogues, and clients may still be paging through the previous version of each.
const MAX_CACHED_CATALOGUES: usize = 4;

/// The catalogues that were listed last, encoded.
#[derive(Debug, Default)]
pub(crate) struct ToolListCache {
    recent: Mutex<Vec<Arc<EncodedCatalogue>>>,
}

/// A catalogue and its encoded pages.
#[derive(Debug)]
pub(crate) struct EncodedCatalogue {
    pub(crate) catalogue: Arc<Catalogue>,
    pages: OnceLock<Vec<ToolPage>>,
    header_parameters: OnceLock<HashMap<Arc<str>, Vec<MirroredParameter>>>,
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
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = recent.iter().find(|encoded| Arc::ptr_eq(&encoded.catalogue, &catalogue)) {
            return Arc::clone(found);
        }
        if recent.len() == MAX_CACHED_CATALOGUES {
            recent.remove(0);
        }
        let encoded = Arc::new(EncodedCatalogue {
            catalogue,
            pages: OnceLock::new(),
            header_parameters: OnceLock::new(),
        });
        recent.push(Arc::clone(&encoded));
        encoded
    }
}

impl EncodedCatalogue {
    /// The page of a cursor; none for an invalid one.
    pub(crate) fn page(&self, cursor: Option<&str>, limits: &ServerLimits) -> Option<ToolPage> {
        let tools = &self.catalogue.tools;
        let pages = self.pages.get_or_init(|| pages(tools, limits));
        let Some(cursor) = cursor else { return pages.first().cloned() };
        let start = self.page_start(cursor)?;
        if let Some(page) = pages.iter().find(|page| page.start == start) {
            return Some(page.clone());
        }
        // The catalogue has changed since the cursor was issued.
        let rest = tools.get(start..)?;
        Some(encode_page(rest, start, page_length(rest, limits)))
    }

    /// The arguments of a tool that clients repeat in headers.
    pub(crate) fn header_parameters(&self, tool: &str) -> &[MirroredParameter] {
        let header_parameters = self.header_parameters.get_or_init(|| {
            let tools = self.catalogue.tools.iter();
            tools
                .filter_map(|tool| Some((Arc::clone(&tool.name), read_header_parameters(&tool.definition)?)))
                .collect()
        });
        header_parameters.get(tool).map_or(&[], Vec::as_slice)
    }

    /// The index after the tool that a cursor names, even if that tool was removed.
    fn page_start(&self, cursor: &str) -> Option<usize> {
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let name = name.strip_prefix(CURSOR_PREFIX)?;
        let tools = &self.catalogue.tools;
        let found = tools.iter().position(|tool| tool.name.as_ref() == name);
        Some(found.map_or_else(|| tools.partition_point(|tool| tool.name.as_ref() <= name), |at| at + 1))
    }
}

/// The beginning of a decoded cursor.
const CURSOR_PREFIX: &str = "after:";

fn pages(tools: &[OfferedTool], limits: &ServerLimits) -> Vec<ToolPage> {
    let (mut pages, mut start) = (Vec::new(), 0);
    while let Some(rest) = tools.get(start..).filter(|rest| !rest.is_empty() || pages.is_empty()) {
        let length = page_length(rest, limits);
        pages.push(encode_page(rest, start, length));
        if length == 0 {
            break;
        }
        start += length;
    }
    pages
}

/// The number of tools on a page: at least one if there is one.
fn page_length(tools: &[OfferedTool], limits: &ServerLimits) -> usize {
    let mut bytes = 0_usize;
    let fits = |tool: &&OfferedTool| {
        bytes += tool.definition.get().len() + 1;
        bytes <= limits.page_bytes
    };
    let fitting = tools.iter().take(limits.page_entries).take_while(fits).count();
    fitting.max(1).min(tools.len())
}

fn encode_page(rest: &[OfferedTool], start: usize, length: usize) -> ToolPage {
    let shown = rest.get(..length).unwrap_or_default();
    let size = shown.iter().map(|tool| tool.definition.get().len() + 1).sum::<usize>();
    let mut entries: Vec<u8> = Vec::with_capacity(size + LIST_END.len());
    for tool in shown {
        if !entries.is_empty() {
            entries.push(b',');
        }
        entries.extend_from_slice(tool.definition.get().as_bytes());
    }
    toolyard_core::text::join_json_lines(&mut entries);
    entries.extend_from_slice(LIST_END.as_bytes());
    let last = shown.last().filter(|_| rest.len() > length);
    let next = last.map(|tool| URL_SAFE_NO_PAD.encode(format!("{CURSOR_PREFIX}{}", tool.name)));
    ToolPage { entries: entries.into(), next, start }
}

fn read_header_parameters(definition: &RawJson) -> Option<Vec<MirroredParameter>> {
    if !definition.get().contains("x-mcp-header") {
        return None;
    }
    let mut schema = None;
    each_field(definition.get(), |key, value| {
        if key == "inputSchema" {
            schema = Some(definition.part(value));
        }
        Ok(())
    })
    .ok()?;
    // Invalid header declarations are ignored.
    mirrored_parameters(&schema?).ok().filter(|header_parameters| !header_parameters.is_empty())
}

#[cfg(test)]
#[path = "tool_list_tests.rs"]
mod tests;
