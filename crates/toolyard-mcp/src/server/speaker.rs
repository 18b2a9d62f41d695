//! Who speaks, in which revision of the protocol, and what it can be asked.

use std::{borrow::Cow, sync::Arc};

use toolyard_core::{JsonCursor, JsonFault, JsonKind, JsonText, RawJson, Viewer};

/// The revision without handshake and sessions.
pub(super) const MODERN: &str = "2026-07-28";
/// The revisions with them, newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// A client's name is kept up to this many bytes.
const MAX_CLIENT: usize = 64;

/// Which of the two protocols is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

/// Who speaks.
#[derive(Debug, Clone)]
pub(super) struct Speaker {
    /// The revision.
    pub(super) version: &'static str,
    /// On whose behalf calls are made.
    pub(super) who: Arc<str>,
    /// What decides which tools it is shown.
    pub(super) viewer: Viewer,
    /// What it can be asked.
    pub(super) offers: ClientOffers,
    /// The same as it said it, where it says it with every request.
    pub(super) capabilities: Option<RawJson>,
    /// Requests of one client have the same.
    pub(super) conversation: u64,
    /// When it introduced itself, in seconds of the clock; none where it does not, or did not.
    pub(super) since: Option<u64>,
}

impl Speaker {
    pub(super) fn era(&self) -> Era {
        if self.version == MODERN { Era::Modern } else { Era::Legacy }
    }

    /// Whether its revision is this one or a later one: they are dates.
    pub(super) fn speaks(&self, version: &str) -> bool {
        self.version >= version
    }
}

/// What a client can be asked, as far as anyone here asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClientOffers {
    pub(super) elicitation_form: bool,
    pub(super) elicitation_url: bool,
    pub(super) sampling: bool,
    pub(super) sampling_tools: bool,
    pub(super) sampling_context: bool,
    pub(super) roots: bool,
    pub(super) roots_changed: bool,
}

impl ClientOffers {
    /// Reads a client's capabilities; what is wrong in them is not offered.
    pub(super) fn read(capabilities: &RawJson) -> Self {
        let mut offers = Self::default();
        // What was read before a fault counts.
        let _ = fields(capabilities.get(), |key, value| {
            let has = value.kind() == JsonKind::Object;
            match key {
                "elicitation" if has => {
                    let mut named = false;
                    fields(value.get(), |key, value| {
                        let has = value.kind() == JsonKind::Object;
                        offers.elicitation_form |= has && key == "form";
                        offers.elicitation_url |= has && key == "url";
                        named |= has && matches!(key, "form" | "url");
                        Ok(())
                    })?;
                    // The revisions before 2025-11-25 knew forms only, and named nothing.
                    offers.elicitation_form |= !named;
                }
                "sampling" if has => {
                    offers.sampling = true;
                    fields(value.get(), |key, _| {
                        offers.sampling_tools |= key == "tools";
                        offers.sampling_context |= key == "context";
                        Ok(())
                    })?;
                }
                "roots" if has => {
                    offers.roots = true;
                    fields(value.get(), |key, value| {
                        offers.roots_changed |= key == "listChanged" && value.boolean() == Some(true);
                        Ok(())
                    })?;
                }
                _ => {}
            }
            Ok(())
        });
        offers
    }

    /// The same as a client says it.
    pub(super) fn to_json(self) -> RawJson {
        let mut all = serde_json::Map::new();
        let part = |parts: &[(bool, &str, serde_json::Value)]| {
            let has = parts.iter().filter(|(has, ..)| *has);
            serde_json::Value::Object(has.map(|(_, key, value)| ((*key).to_owned(), value.clone())).collect())
        };
        let empty = || serde_json::json!({});
        if self.elicitation_form || self.elicitation_url {
            let parts = [(self.elicitation_form, "form", empty()), (self.elicitation_url, "url", empty())];
            all.insert("elicitation".to_owned(), part(&parts));
        }
        if self.sampling {
            let parts =
                [(self.sampling_tools, "tools", empty()), (self.sampling_context, "context", empty())];
            all.insert("sampling".to_owned(), part(&parts));
        }
        if self.roots {
            all.insert("roots".to_owned(), part(&[(self.roots_changed, "listChanged", true.into())]));
        }
        RawJson::from_value(&serde_json::Value::Object(all))
    }

    /// As bits, for a session id.
    pub(super) fn to_bits(self) -> u8 {
        let flags = [
            self.elicitation_form,
            self.elicitation_url,
            self.sampling,
            self.sampling_tools,
            self.sampling_context,
            self.roots,
            self.roots_changed,
        ];
        flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))
    }

    pub(super) fn from_bits(bits: u8) -> Self {
        let has = |place: u8| bits >> place & 1 == 1;
        Self {
            elicitation_form: has(0),
            elicitation_url: has(1),
            sampling: has(2),
            sampling_tools: has(3),
            sampling_context: has(4),
            roots: has(5),
            roots_changed: has(6),
        }
    }

    /// The capability that a question needs and this client does not have, as a client would declare it.
    pub(super) fn missing(self, method: &str, params: Option<&RawJson>) -> Option<&'static str> {
        let missing = |has: bool, what: &'static str| (!has).then_some(what);
        match method {
            "elicitation/create" => {
                match params.and_then(|params| text_field(params.get(), "mode")).as_deref() {
                    Some("url") => missing(self.elicitation_url, r#"{"elicitation":{"url":{}}}"#),
                    _ => missing(self.elicitation_form, r#"{"elicitation":{}}"#),
                }
            }
            "sampling/createMessage" => missing(self.sampling, r#"{"sampling":{}}"#),
            "roots/list" => missing(self.roots, r#"{"roots":{}}"#),
            _ => Some("{}"),
        }
    }
}

/// What a client calls itself, short enough to be kept.
pub(super) fn client_name(name: &str) -> Option<String> {
    let end = (0..=MAX_CLIENT.min(name.len())).rev().find(|end| name.is_char_boundary(*end))?;
    name.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The legacy revision that is spoken with a client that asks for this one: the same if it is known, else the newest.
pub(super) fn negotiated(asked: &str) -> &'static str {
    let [newest, ..] = LEGACY;
    LEGACY.into_iter().find(|known| *known == asked).unwrap_or(newest)
}

/// Walks over the fields of an object.
pub(super) fn fields<'t>(
    json: &'t str,
    mut visit: impl FnMut(&str, JsonText<'t>) -> Result<(), JsonFault>,
) -> Result<bool, JsonFault> {
    let mut cursor = JsonCursor::new(json, usize::MAX);
    if !cursor.enter_object()? {
        return Ok(false);
    }
    while let Some(key) = cursor.next_key()? {
        let value = cursor.skip()?;
        visit(&key, value)?;
    }
    Ok(true)
}

/// One field of an object that holds a text.
pub(super) fn text_field<'t>(json: &'t str, wanted: &str) -> Option<Cow<'t, str>> {
    let mut found = None;
    fields(json, |key, value| {
        if key == wanted {
            found = value.string();
        }
        Ok(())
    })
    .ok()?;
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> ClientOffers {
        ClientOffers::read(&RawJson::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn elicitation_without_modes_means_forms() {
        assert!(read(r#"{"elicitation":{}}"#).elicitation_form);
        assert!(!read(r#"{"elicitation":{"url":{}}}"#).elicitation_form);
        assert!(!read(r#"{"elicitation":null,"sampling":true}"#).sampling);
        assert_eq!(read("[1]"), ClientOffers::default());
    }

    #[test]
    fn nothing_is_asked_that_is_not_offered() {
        let url = RawJson::parse(r#"{"mode":"url"}"#.to_owned()).unwrap();
        let offers = read(r#"{"elicitation":{"form":{}}}"#);
        assert_eq!(offers.missing("elicitation/create", None), None);
        assert_eq!(offers.missing("elicitation/create", Some(&url)), Some(r#"{"elicitation":{"url":{}}}"#));
        assert_eq!(offers.missing("roots/list", None), Some(r#"{"roots":{}}"#));
        assert_eq!(offers.missing("anything/else", None), Some("{}"));
    }

    #[test]
    fn an_unknown_revision_is_answered_with_the_newest() {
        assert_eq!(negotiated("2024-11-05"), "2024-11-05");
        assert_eq!(negotiated("1999-01-01"), "2025-11-25");
        assert_eq!(negotiated(MODERN), "2025-11-25");
    }

    proptest! {
        #[test]
        fn offers_survive_in_a_session_id(bits in 0_u8..128) {
            let offers = ClientOffers::from_bits(bits);
            prop_assert_eq!(offers.to_bits(), bits);
            let mut said = ClientOffers::read(&offers.to_json());
            // Details of what is not offered are not said.
            prop_assert_eq!(said.sampling, offers.sampling);
            if !offers.sampling {
                (said.sampling_tools, said.sampling_context) = (offers.sampling_tools, offers.sampling_context);
            }
            if !offers.roots {
                said.roots_changed = offers.roots_changed;
            }
            prop_assert_eq!(said, offers);
        }
    }
}
