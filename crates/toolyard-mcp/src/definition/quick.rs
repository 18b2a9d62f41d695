//! A tool out of a definition that was judged already: one walk over its text, nothing is looked for.

use toolyard_core::{JsonCursor, JsonFault, JsonKind, RawJson, ToolHints, ToolSpec};

/// The tool of a definition that was found usable before, the same as judging it again would give; none if it is not
/// one after all.
pub(crate) fn quick_spec(raw: &RawJson) -> Option<ToolSpec> {
    let mut found = Found::default();
    found.read(raw).ok()?;
    let mut spec = ToolSpec::new(found.name?, found.description.unwrap_or_default());
    spec.title = found.title.or(found.earlier_title);
    spec.hints = found.hints;
    if let Some(schema) = found.input_schema {
        spec.input_schema = schema;
    }
    spec.output_schema = found.output_schema;
    Some(spec.with_raw(raw.clone()))
}

#[derive(Default)]
struct Found {
    name: Option<String>,
    title: Option<String>,
    /// Where the revision 2025-03-26 had it.
    earlier_title: Option<String>,
    description: Option<String>,
    hints: ToolHints,
    input_schema: Option<RawJson>,
    output_schema: Option<RawJson>,
}

impl Found {
    fn read(&mut self, raw: &RawJson) -> Result<(), JsonFault> {
        let mut cursor = JsonCursor::new(raw.get(), usize::MAX);
        cursor.enter_object()?;
        while let Some(key) = cursor.next_key()? {
            if key == "annotations" && cursor.enter_object()? {
                self.annotations(&mut cursor)?;
                continue;
            }
            let value = cursor.skip()?;
            let text = || value.string().map(std::borrow::Cow::into_owned);
            let object = || (value.kind() == JsonKind::Object).then(|| raw.part(value));
            match &*key {
                "name" => self.name = text(),
                "title" => self.title = text(),
                "description" => self.description = text(),
                "inputSchema" => self.input_schema = object(),
                "outputSchema" => self.output_schema = object(),
                _ => {}
            }
        }
        Ok(())
    }

    fn annotations(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), JsonFault> {
        while let Some(key) = cursor.next_key()? {
            let value = cursor.skip()?;
            match &*key {
                "title" => self.earlier_title = value.string().map(std::borrow::Cow::into_owned),
                "readOnlyHint" => self.hints.read_only = value.boolean(),
                "destructiveHint" => self.hints.destructive = value.boolean(),
                "idempotentHint" => self.hints.idempotent = value.boolean(),
                "openWorldHint" => self.hints.open_world = value.boolean(),
                _ => {}
            }
        }
        Ok(())
    }
}
