//! `tools/list` from bytes that were written once for each catalogue.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use toolyard_core::{Catalogue, OfferedTool, RawJson};

use super::{ServerLimits, answer::one_line, methods::LIST_END, speaker::fields};
use crate::definition::{MirroredParameter, mirrored_parameters};

/// A door has two forms of a catalogue; of each, the one before may still be read page by page. Long lists take much memory.
const KEPT: usize = 4;

/// What was written down of the catalogues that were asked for last.
#[derive(Debug, Default)]
pub(super) struct ToolLists {
    kept: Mutex<Vec<Arc<WrittenCatalogue>>>,
}

/// One catalogue, and what was written down of it.
#[derive(Debug)]
pub(super) struct WrittenCatalogue {
    pub(super) catalogue: Arc<Catalogue>,
    pages: OnceLock<Vec<Page>>,
    mirrored: OnceLock<HashMap<Arc<str>, Vec<MirroredParameter>>>,
}

/// One page: its definitions with commas between them and [`LIST_END`], and the cursor that leads to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) entries: Bytes,
    pub(super) next: Option<String>,
    /// Where it begins in the catalogue.
    start: usize,
}

impl ToolLists {
    pub(super) fn of(&self, catalogue: Arc<Catalogue>) -> Arc<WrittenCatalogue> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.iter().find(|written| Arc::ptr_eq(&written.catalogue, &catalogue)) {
            return Arc::clone(found);
        }
        if kept.len() == KEPT {
            kept.remove(0);
        }
        let written =
            Arc::new(WrittenCatalogue { catalogue, pages: OnceLock::new(), mirrored: OnceLock::new() });
        kept.push(Arc::clone(&written));
        written
    }
}

impl WrittenCatalogue {
    /// The page that a cursor leads to; none if it leads nowhere.
    pub(super) fn page(&self, cursor: Option<&str>, limits: &ServerLimits) -> Option<Page> {
        let tools = &self.catalogue.tools;
        let pages = self.pages.get_or_init(|| pages(tools, limits));
        let Some(cursor) = cursor else { return pages.first().cloned() };
        let start = self.start_of(cursor)?;
        if let Some(page) = pages.iter().find(|page| page.start == start) {
            return Some(page.clone());
        }
        // The catalogue has changed between two pages.
        let rest = tools.get(start..)?;
        Some(write_page(rest, start, page_length(rest, limits)))
    }

    /// Which arguments of a tool must be repeated in headers.
    pub(super) fn mirrored(&self, tool: &str) -> &[MirroredParameter] {
        let mirrored = self.mirrored.get_or_init(|| {
            let tools = self.catalogue.tools.iter();
            tools.filter_map(|tool| Some((Arc::clone(&tool.name), mirrored_of(&tool.definition)?))).collect()
        });
        mirrored.get(tool).map_or(&[], Vec::as_slice)
    }

    /// The place after the tool that a cursor names, even if that tool is gone.
    fn start_of(&self, cursor: &str) -> Option<usize> {
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let name = name.strip_prefix(CURSOR)?;
        let tools = &self.catalogue.tools;
        let found = tools.iter().position(|tool| tool.name.as_ref() == name);
        Some(found.map_or_else(|| tools.partition_point(|tool| tool.name.as_ref() <= name), |at| at + 1))
    }
}

/// What a cursor begins with once it is decoded.
const CURSOR: &str = "after:";

fn pages(tools: &[OfferedTool], limits: &ServerLimits) -> Vec<Page> {
    let (mut pages, mut start) = (Vec::new(), 0);
    while let Some(rest) = tools.get(start..).filter(|rest| !rest.is_empty() || pages.is_empty()) {
        let length = page_length(rest, limits);
        pages.push(write_page(rest, start, length));
        if length == 0 {
            break;
        }
        start += length;
    }
    pages
}

/// How many tools go on a page: at least one if there is one.
fn page_length(tools: &[OfferedTool], limits: &ServerLimits) -> usize {
    let mut bytes = 0_usize;
    let fits = |tool: &&OfferedTool| {
        bytes += tool.definition.get().len() + 1;
        bytes <= limits.page_bytes
    };
    let fitting = tools.iter().take(limits.page_entries).take_while(fits).count();
    fitting.max(1).min(tools.len())
}

fn write_page(rest: &[OfferedTool], start: usize, length: usize) -> Page {
    let shown = rest.get(..length).unwrap_or_default();
    let size = shown.iter().map(|tool| tool.definition.get().len() + 1).sum::<usize>();
    let mut entries: Vec<u8> = Vec::with_capacity(size + LIST_END.len());
    for tool in shown {
        if !entries.is_empty() {
            entries.push(b',');
        }
        entries.extend_from_slice(tool.definition.get().as_bytes());
    }
    one_line(&mut entries);
    entries.extend_from_slice(LIST_END.as_bytes());
    let last = shown.last().filter(|_| rest.len() > length);
    let next = last.map(|tool| URL_SAFE_NO_PAD.encode(format!("{CURSOR}{}", tool.name)));
    Page { entries: entries.into(), next, start }
}

fn mirrored_of(definition: &RawJson) -> Option<Vec<MirroredParameter>> {
    if !definition.get().contains("x-mcp-header") {
        return None;
    }
    let mut schema = None;
    fields(definition.get(), |key, value| {
        if key == "inputSchema" {
            schema = Some(definition.part(value));
        }
        Ok(())
    })
    .ok()?;
    // What asks for headers in a way that is invalid asks for none.
    mirrored_parameters(&schema?).ok().filter(|mirrored| !mirrored.is_empty())
}

#[cfg(test)]
#[path = "tool_list_tests.rs"]
mod tests;
