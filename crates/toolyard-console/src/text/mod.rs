//! Texts of the pages, in English and Chinese. A text without a translation does not compile.
//!
//! Each page has a file with a list of texts, `name: "English", "中文";`. A `{}` in a text is replaced by [`fill`].

/// Defines the texts of a page: a struct with a field per text and an instance per language.
///
/// With `by name`, texts are also found by their names: those for words of the API.
macro_rules! texts {
    ($name:ident by name { $($field:ident: $english:literal, $chinese:literal;)* }) => {
        texts! { $name { $($field: $english, $chinese;)* } }

        impl $name {
            /// The text with this name, a prefix and a word of the API; `None` if there is none.
            pub(crate) fn named(&self, prefix: &str, word: &str) -> Option<&'static str> {
                let texts = [$((stringify!($field), self.$field),)*];
                let is_named = |name: &str| name.strip_prefix(prefix) == Some(word);
                texts.into_iter().find(|(name, _)| is_named(name)).map(|(_, text)| text)
            }
        }
    };
    ($name:ident { $($field:ident: $english:literal, $chinese:literal;)* }) => {
        #[derive(Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: &'static str,)*
        }

        impl $name {
            const ENGLISH: Self = Self { $($field: $english,)* };
            const CHINESE: Self = Self { $($field: $chinese,)* };

            /// The texts in a language.
            pub(crate) const fn of(language: $crate::text::Language) -> &'static Self {
                match language {
                    $crate::text::Language::English => &Self::ENGLISH,
                    $crate::text::Language::Chinese => &Self::CHINESE,
                }
            }

            #[cfg(test)]
            pub(crate) const ALL: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($field), $english, $chinese),)*];
        }
    };
}

mod agents;
mod approvals;
mod audit;
mod chat;
mod cluster;
mod common;
mod drawings;
mod failures;
mod language;
mod overview;
mod runs;
mod servers;
mod settings;
mod sign_in;
mod tools;

pub(crate) use agents::AgentsText;
pub(crate) use approvals::ApprovalsText;
pub(crate) use audit::AuditText;
pub(crate) use chat::ChatText;
pub(crate) use cluster::ClusterText;
pub(crate) use common::{CommonText, NavigationText};
pub(crate) use drawings::DrawingText;
pub(crate) use failures::FailureText;
pub(crate) use language::Language;
pub(crate) use overview::OverviewText;
pub(crate) use runs::RunsText;
pub(crate) use servers::ServersText;
pub(crate) use settings::SettingsText;
pub(crate) use sign_in::SignInText;
pub(crate) use tools::ToolsText;

/// A text with its first `{}` replaced.
pub(crate) fn fill(text: &str, value: impl std::fmt::Display) -> String {
    text.replacen("{}", &value.to_string(), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translations_are_there_and_have_the_same_placeholders() {
        let all = [
            AgentsText::ALL,
            ApprovalsText::ALL,
            AuditText::ALL,
            ChatText::ALL,
            ClusterText::ALL,
            CommonText::ALL,
            DrawingText::ALL,
            FailureText::ALL,
            NavigationText::ALL,
            OverviewText::ALL,
            RunsText::ALL,
            ServersText::ALL,
            SettingsText::ALL,
            SignInText::ALL,
            ToolsText::ALL,
        ];
        for (name, english, chinese) in all.into_iter().flatten() {
            assert!(!english.is_empty() && !chinese.is_empty(), "{name}");
            assert_eq!(english.matches("{}").count(), chinese.matches("{}").count(), "{name}");
            assert!(!chinese.contains(','), "{name}: Chinese text has Chinese punctuation");
        }
    }
}
