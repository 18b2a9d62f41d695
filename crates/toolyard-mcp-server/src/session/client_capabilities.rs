//! [`ClientCapabilities`]: which input a client can provide.

use toolyard_core::{JsonKind, RawJson};

use crate::json_fields::{each_field, text_field};

/// The capabilities of a client that input requests depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientCapabilities {
    pub(crate) elicitation_form: bool,
    pub(crate) elicitation_url: bool,
    pub(crate) sampling: bool,
    pub(crate) sampling_tools: bool,
    pub(crate) sampling_context: bool,
    pub(crate) roots: bool,
    pub(crate) roots_changed: bool,
}

impl ClientCapabilities {
    /// Reads the capabilities that a client declared; malformed ones count as absent.
    pub(crate) fn read(declared: &RawJson) -> Self {
        let mut capabilities = Self::default();
        // Fields before a syntax error count.
        let _ = each_field(declared.get(), |key, value| {
            let is_object = value.kind() == JsonKind::Object;
            match key {
                "elicitation" if is_object => {
                    let mut names_mode = false;
                    each_field(value.get(), |key, value| {
                        let is_object = value.kind() == JsonKind::Object;
                        capabilities.elicitation_form |= is_object && key == "form";
                        capabilities.elicitation_url |= is_object && key == "url";
                        names_mode |= is_object && matches!(key, "form" | "url");
                        Ok(())
                    })?;
                    // Revisions before 2025-11-25 have no modes: every client supports forms.
                    capabilities.elicitation_form |= !names_mode;
                }
                "sampling" if is_object => {
                    capabilities.sampling = true;
                    each_field(value.get(), |key, _| {
                        capabilities.sampling_tools |= key == "tools";
                        capabilities.sampling_context |= key == "context";
                        Ok(())
                    })?;
                }
                "roots" if is_object => {
                    capabilities.roots = true;
                    each_field(value.get(), |key, value| {
                        capabilities.roots_changed |= key == "listChanged" && value.boolean() == Some(true);
                        Ok(())
                    })?;
                }
                _ => {}
            }
            Ok(())
        });
        capabilities
    }

    pub(crate) fn to_json(self) -> RawJson {
        let mut all = serde_json::Map::new();
        let object = |parts: &[(bool, &str, serde_json::Value)]| {
            let has = parts.iter().filter(|(has, ..)| *has);
            serde_json::Value::Object(has.map(|(_, key, value)| ((*key).to_owned(), value.clone())).collect())
        };
        let empty = || serde_json::json!({});
        if self.elicitation_form || self.elicitation_url {
            let parts = [(self.elicitation_form, "form", empty()), (self.elicitation_url, "url", empty())];
            all.insert("elicitation".to_owned(), object(&parts));
        }
        if self.sampling {
            let parts =
                [(self.sampling_tools, "tools", empty()), (self.sampling_context, "context", empty())];
            all.insert("sampling".to_owned(), object(&parts));
        }
        if self.roots {
            all.insert("roots".to_owned(), object(&[(self.roots_changed, "listChanged", true.into())]));
        }
        RawJson::from_value(&serde_json::Value::Object(all))
    }

    /// The capabilities as bits, for a session id.
    pub(crate) fn to_bits(self) -> u8 {
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

    pub(crate) fn from_bits(bits: u8) -> Self {
        let has = |index: u8| bits >> index & 1 == 1;
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

    /// The capability that an input request needs and this client lacks, as a client would declare it.
    pub(crate) fn missing_capability_for(
        self,
        method: &str,
        params: Option<&RawJson>,
    ) -> Option<&'static str> {
        let missing = |has: bool, capability: &'static str| (!has).then_some(capability);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> ClientCapabilities {
        ClientCapabilities::read(&RawJson::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn elicitation_without_modes_supports_forms() {
        assert!(read(r#"{"elicitation":{}}"#).elicitation_form);
        assert!(!read(r#"{"elicitation":{"url":{}}}"#).elicitation_form);
        assert!(!read(r#"{"elicitation":null,"sampling":true}"#).sampling);
        assert_eq!(read("[1]"), ClientCapabilities::default());
    }

    #[test]
    fn requests_need_a_declared_capability() {
        let url = RawJson::parse(r#"{"mode":"url"}"#.to_owned()).unwrap();
        let capabilities = read(r#"{"elicitation":{"form":{}}}"#);
        assert_eq!(capabilities.missing_capability_for("elicitation/create", None), None);
        assert_eq!(
            capabilities.missing_capability_for("elicitation/create", Some(&url)),
            Some(r#"{"elicitation":{"url":{}}}"#)
        );
        assert_eq!(capabilities.missing_capability_for("roots/list", None), Some(r#"{"roots":{}}"#));
        assert_eq!(capabilities.missing_capability_for("anything/else", None), Some("{}"));
    }

    proptest! {
        #[test]
        fn capabilities_survive_in_a_session_id(bits in 0_u8..128) {
            let capabilities = ClientCapabilities::from_bits(bits);
            prop_assert_eq!(capabilities.to_bits(), bits);
            let mut decoded = ClientCapabilities::read(&capabilities.to_json());
            // Details of absent capabilities are not declared.
            prop_assert_eq!(decoded.sampling, capabilities.sampling);
            if !capabilities.sampling {
                (decoded.sampling_tools, decoded.sampling_context) = (capabilities.sampling_tools, capabilities.sampling_context);
            }
            if !capabilities.roots {
                decoded.roots_changed = capabilities.roots_changed;
            }
            prop_assert_eq!(decoded, capabilities);
        }
    }
}
