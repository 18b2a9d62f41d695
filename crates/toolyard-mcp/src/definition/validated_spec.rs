//! Builds a tool from a definition that was validated before, in one pass and without checking it again.

use toolyard_core::{JsonCursor, JsonError, JsonKind, RawJson, ToolHints, ToolSpec};

/// The tool of a valid definition, equal to what [`validate_tool`](super::validate_tool) returns for it. `None` if the
/// text is no definition.
pub fn parse_validated_spec(raw: &RawJson) -> Option<ToolSpec> {
    let mut fields = SpecFields::default();
    fields.parse(raw).ok()?;
    let mut spec = ToolSpec::new(fields.name?, fields.description.unwrap_or_default());
    spec.title = fields.title.or(fields.annotation_title);
    spec.hints = fields.hints;
    if let Some(schema) = fields.input_schema {
        spec.input_schema = schema;
    }
    spec.output_schema = fields.output_schema;
    Some(spec.with_raw(raw.clone()))
}

#[derive(Default)]
struct SpecFields {
    name: Option<String>,
    title: Option<String>,
    /// Revision 2025-03-26 has the title among the annotations.
    annotation_title: Option<String>,
    description: Option<String>,
    hints: ToolHints,
    input_schema: Option<RawJson>,
    output_schema: Option<RawJson>,
}

impl SpecFields {
    fn parse(&mut self, raw: &RawJson) -> Result<(), JsonError> {
        let mut cursor = JsonCursor::new(raw.get(), usize::MAX);
        cursor.enter_object()?;
        while let Some(key) = cursor.next_key()? {
            if key == "annotations" && cursor.enter_object()? {
                self.parse_annotations(&mut cursor)?;
                continue;
            }
            let value = cursor.next_value()?;
            let to_text = || value.string().map(std::borrow::Cow::into_owned);
            let to_object = || (value.kind() == JsonKind::Object).then(|| raw.part(value));
            match &*key {
                "name" => self.name = to_text(),
                "title" => self.title = to_text(),
                "description" => self.description = to_text(),
                "inputSchema" => self.input_schema = to_object(),
                "outputSchema" => self.output_schema = to_object(),
                _ => {}
            }
        }
        Ok(())
    }

    fn parse_annotations(&mut self, cursor: &mut JsonCursor<'_>) -> Result<(), JsonError> {
        while let Some(key) = cursor.next_key()? {
            let value = cursor.next_value()?;
            match &*key {
                "title" => self.annotation_title = value.string().map(std::borrow::Cow::into_owned),
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
