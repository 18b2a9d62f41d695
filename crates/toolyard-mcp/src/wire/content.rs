//! The content of a call's result as blocks, whatever a server puts there, within bounds on what it can grow to.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use toolyard_core::{ContentBlock, JsonCursor, JsonFault, JsonText};

/// More blocks than this are counted and not shown; the raw result has them all.
const MAX_BLOCKS: usize = 10_000;
/// JSON of any kind becomes values only up to this many bytes of one result: a value takes many times the memory of its
/// text. Texts, pictures and sounds are not concerned.
const MAX_VALUES: usize = 256 << 10;

/// Reads the blocks that stand where `content` should be: a list of them, or one, or a text alone.
pub(super) fn read_content(cursor: &mut JsonCursor<'_>) -> Result<Vec<ContentBlock>, JsonFault> {
    let mut reader = Reader { values_left: MAX_VALUES };
    if !cursor.enter_array()? {
        return Ok(Vec::from_iter(reader.block(cursor)?));
    }
    // Most results have one block.
    let (mut blocks, mut more) = (Vec::with_capacity(1), 0_usize);
    while cursor.next_item()? {
        if blocks.len() < MAX_BLOCKS {
            blocks.extend(reader.block(cursor)?);
        } else {
            cursor.skip()?;
            more += 1;
        }
    }
    if more > 0 {
        blocks.push(ContentBlock::text(format!("[{more} more blocks are not shown]")));
    }
    Ok(blocks)
}

struct Reader {
    values_left: usize,
}

/// The fields of a block that are known; those that are not what they should be are left out.
#[derive(Default)]
struct Fields<'t> {
    kind: Option<Cow<'t, str>>,
    text: Option<Cow<'t, str>>,
    data: Option<Cow<'t, str>>,
    mime_type: Option<Cow<'t, str>>,
    uri: Option<Cow<'t, str>>,
    name: Option<Cow<'t, str>>,
    resource: Option<JsonText<'t>>,
}

impl<'t> Fields<'t> {
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

impl Reader {
    /// One block; none for `null`.
    fn block(&mut self, cursor: &mut JsonCursor<'_>) -> Result<Option<ContentBlock>, JsonFault> {
        let whole = cursor.rest();
        if !cursor.enter_object()? {
            if let Some(text) = cursor.string()? {
                return Ok(Some(ContentBlock::text(text)));
            }
            let value = self.value(cursor.skip()?);
            return Ok((!value.is_null()).then_some(ContentBlock::Other(value)));
        }
        let mut fields = Fields::default();
        while let Some(key) = cursor.next_key()? {
            match fields.text_field(&key) {
                Some(field) => {
                    *field = cursor.string()?;
                    if field.is_none() {
                        cursor.skip()?;
                    }
                }
                None if key == "resource" => fields.resource = Some(cursor.skip()?),
                None => drop(cursor.skip()?),
            }
        }
        let kind = fields.kind.clone();
        Ok(Some(match self.known(fields) {
            Some(block) => block,
            None => match self.value(JsonCursor::new(whole, usize::MAX).skip()?) {
                // Too much of something unknown: what it is, is still said.
                Value::Null => ContentBlock::Other(json!({ "type": kind })),
                value => ContentBlock::Other(value),
            },
        }))
    }

    fn known(&mut self, fields: Fields<'_>) -> Option<ContentBlock> {
        let mime_type = || fields.mime_type.map_or("application/octet-stream".to_owned(), Cow::into_owned);
        Some(match fields.kind.as_deref() {
            Some("text") | None => ContentBlock::text(fields.text?),
            Some("image") => ContentBlock::Image { data: fields.data?.into_owned(), mime_type: mime_type() },
            Some("audio") => ContentBlock::Audio { data: fields.data?.into_owned(), mime_type: mime_type() },
            Some("resource_link") => {
                let uri = fields.uri?.into_owned();
                ContentBlock::ResourceLink { name: fields.name.map_or(uri.clone(), Cow::into_owned), uri }
            }
            Some("resource") => ContentBlock::Resource { resource: self.resource(fields.resource?)? },
            Some(_) => return None,
        })
    }

    /// An embedded resource. Its texts are taken whole; everything else of it counts as values.
    fn resource(&mut self, resource: JsonText<'_>) -> Option<Value> {
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
                None => self.value(cursor.skip().ok()?),
            };
            if self.afford(key.len()) {
                fields.insert(key.into_owned(), value);
            }
        }
        Some(Value::Object(fields))
    }

    /// Any JSON as a value, or `null` if that would be too much.
    fn value(&mut self, text: JsonText<'_>) -> Value {
        match self.afford(text.get().len()) {
            true => serde_json::from_str(text.get()).unwrap_or_default(),
            false => Value::Null,
        }
    }

    /// Whether so much more JSON may become values.
    fn afford(&mut self, bytes: usize) -> bool {
        // Even the smallest value takes some room.
        let left = self.values_left.checked_sub(bytes + 16);
        self.values_left = left.unwrap_or(self.values_left);
        left.is_some()
    }
}
