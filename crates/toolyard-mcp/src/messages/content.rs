//! Decodes the content of a result into blocks, within bounded memory.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolyard_core::{ContentBlock, JsonCursor, JsonError, JsonText};

/// Further blocks are counted but not decoded; the raw result has them all.
const MAX_BLOCKS: usize = 10_000;
/// Bytes of JSON in a result that become values, which take many times the memory of their text. Text, images and audio do
/// not count.
const MAX_VALUE_BYTES: usize = 256 << 10;

/// What every value counts in addition to its text, because even the smallest takes memory.
const MIN_VALUE_BYTES: usize = 16;

/// Decodes the field `content`: a list of blocks, one block, or a string.
pub(super) fn read_content(cursor: &mut JsonCursor<'_>) -> Result<Vec<ContentBlock>, JsonError> {
    let mut reader = ContentReader { value_bytes_left: MAX_VALUE_BYTES };
    if !cursor.enter_array()? {
        return Ok(Vec::from_iter(reader.read_block(cursor)?));
    }
    // Most results have one block.
    let (mut blocks, mut omitted) = (Vec::with_capacity(1), 0_usize);
    while cursor.next_item()? {
        if blocks.len() < MAX_BLOCKS {
            blocks.extend(reader.read_block(cursor)?);
        } else {
            cursor.next_value()?;
            omitted += 1;
        }
    }
    if omitted > 0 {
        blocks.push(ContentBlock::text(format!("[{omitted} more blocks omitted]")));
    }
    Ok(blocks)
}

struct ContentReader {
    value_bytes_left: usize,
}

/// The known fields of a block; values of the wrong type are omitted.
#[derive(Default)]
struct BlockFields<'t> {
    kind: Option<Cow<'t, str>>,
    text: Option<Cow<'t, str>>,
    data: Option<Cow<'t, str>>,
    mime_type: Option<Cow<'t, str>>,
    uri: Option<Cow<'t, str>>,
    name: Option<Cow<'t, str>>,
    resource: Option<JsonText<'t>>,
}

impl<'t> BlockFields<'t> {
    fn text_field(&mut self, key: &str) -> Option<&mut Option<Cow<'t, str>>> {
        Some(match key {
            "type" => &mut self.kind,
            "text" => &mut self.text,
            "data" => &mut self.data,
            "mimeType" => &mut self.mime_type,
            "uri" => &mut self.uri,
            "name" => &mut self.name,
            _ => return None,
        })
    }
}

impl ContentReader {
    /// Decodes one block; none for `null`.
    fn read_block(&mut self, cursor: &mut JsonCursor<'_>) -> Result<Option<ContentBlock>, JsonError> {
        let block_text = cursor.rest();
        if !cursor.enter_object()? {
            if let Some(text) = cursor.string()? {
                return Ok(Some(ContentBlock::text(text)));
            }
            let value = self.read_value(cursor.next_value()?);
            return Ok((!value.is_null()).then_some(ContentBlock::Other(value)));
        }
        let mut fields = BlockFields::default();
        while let Some(key) = cursor.next_key()? {
            match fields.text_field(&key) {
                Some(field) => {
                    *field = cursor.string()?;
                    if field.is_none() {
                        cursor.next_value()?;
                    }
                }
                None if key == "resource" => fields.resource = Some(cursor.next_value()?),
                None => drop(cursor.next_value()?),
            }
        }
        Ok(Some(match self.known_block(&mut fields) {
            Some(block) => block,
            None => match self.read_value(JsonCursor::new(block_text, usize::MAX).next_value()?) {
                // Too large: keep at least the type.
                Value::Null => ContentBlock::Other(json!({ "type": fields.kind })),
                value => ContentBlock::Other(value),
            },
        }))
    }

    fn known_block(&mut self, fields: &mut BlockFields<'_>) -> Option<ContentBlock> {
        let take_binary = |fields: &mut BlockFields<'_>| {
            let mime_type =
                fields.mime_type.take().map_or("application/octet-stream".to_owned(), Cow::into_owned);
            Some((fields.data.take()?.into_owned(), mime_type))
        };
        Some(match fields.kind.as_deref() {
            Some("text") | None => ContentBlock::text(fields.text.take()?),
            Some("image") => {
                take_binary(fields).map(|(data, mime_type)| ContentBlock::Image { data, mime_type })?
            }
            Some("audio") => {
                take_binary(fields).map(|(data, mime_type)| ContentBlock::Audio { data, mime_type })?
            }
            Some("resource_link") => {
                let uri = fields.uri.take()?.into_owned();
                ContentBlock::ResourceLink {
                    name: fields.name.take().map_or(uri.clone(), Cow::into_owned),
                    uri,
                }
            }
            Some("resource") => ContentBlock::Resource { resource: self.read_resource(fields.resource?)? },
            Some(_) => return None,
        })
    }

    /// Decodes an embedded resource. Its texts are kept whole; other fields count as values.
    fn read_resource(&mut self, resource: JsonText<'_>) -> Option<Value> {
        let mut cursor = JsonCursor::new(resource.get(), usize::MAX);
        let mut fields = Map::new();
        if !cursor.enter_object().ok()? {
            return None;
        }
        while let Some(key) = cursor.next_key().ok()? {
            let is_text = matches!(key.as_ref(), "uri" | "mimeType" | "text" | "blob");
            let text = if is_text { cursor.string().ok()? } else { None };
            let value = match text {
                Some(text) => Value::from(text),
                None => self.read_value(cursor.next_value().ok()?),
            };
            if self.reserve_value_bytes(key.len()) {
                fields.insert(key.into_owned(), value);
            }
        }
        Some(Value::Object(fields))
    }

    /// JSON as a value, or `null` beyond the limit.
    fn read_value(&mut self, text: JsonText<'_>) -> Value {
        match self.reserve_value_bytes(text.get().len()) {
            true => serde_json::from_str(text.get()).unwrap_or_default(),
            false => Value::Null,
        }
    }

    /// Whether this many more bytes of JSON may become values.
    fn reserve_value_bytes(&mut self, bytes: usize) -> bool {
        let left = self.value_bytes_left.checked_sub(bytes + MIN_VALUE_BYTES);
        self.value_bytes_left = left.unwrap_or(self.value_bytes_left);
        left.is_some()
    }
}
