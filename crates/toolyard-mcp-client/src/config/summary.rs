//! Settings for display: a summary line and warnings, without secrets and unsafe characters.

use super::{
    ServerSettings, TransportSetting,
    redacted::safe_preview,
    secrets::{ExtractedSecret, extract_secrets},
};

impl ServerSettings {
    /// The transport in one line: `stdio  uvx excel-mcp-server stdio`.
    pub fn summary(&self) -> String {
        let mut settings = self.clone();
        let secrets = extract_secrets(&mut settings, "secret");
        let hide = |text: &str| {
            let hide_secret = |text: String, secret: &ExtractedSecret| {
                text.replace(&format!("${{{}}}", secret.variable), "[secret]")
            };
            safe_preview(&secrets.iter().fold(text.to_owned(), hide_secret))
        };
        let mut words = Vec::new();
        match (&settings.command, &settings.url) {
            (Some(command), _) => {
                words.push("stdio ".to_owned());
                words.extend([command].into_iter().chain(&settings.args).map(|word| hide(word)));
                words.extend(
                    settings
                        .env
                        .iter()
                        .map(|(name, value)| format!(" {} = {}", safe_preview(name), hide(value))),
                );
            }
            (None, Some(url)) => {
                let is_sse = settings.transport == Some(TransportSetting::Sse);
                words.push(if is_sse { "sse   " } else { "http  " }.to_owned());
                words.push(hide(url));
                let header =
                    |(name, value): (&String, &String)| format!(" {}: {}", safe_preview(name), hide(value));
                words.extend(settings.headers.iter().map(header));
            }
            (None, None) => words.push("nothing".to_owned()),
        }
        words.join(" ")
    }

    /// A warning for each secret that is written into the settings.
    pub fn warnings(&self, name: &str) -> Vec<String> {
        let warning = |secret: ExtractedSecret| {
            format!(
                "server `{name}`: {} looks like a secret: write `${{{}}}` instead and set \
                 that variable",
                secret.field, secret.variable
            )
        };
        extract_secrets(&mut self.clone(), name).into_iter().map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_one_safe_line() {
        let line = |text: &str| toml::from_str::<ServerSettings>(text).unwrap().summary();
        let lines = [
            line("command = 'uvx'\nargs = ['excel-mcp-server', 'stdio']"),
            line("command = 'x'\nargs = ['--api-key', 'Swordfish', \"a\\u001b[31m\\n\\u202eb\"]\nenv = {A_TOKEN = '${A}', B_TOKEN = 'Swordfish'}"),
            line("url = 'https://example.org/mcp?token=Swordfish'\nheaders = {Authorization = 'Bearer ${TOKEN}'}"),
            line("url = 'https://example.org/sse'\ntransport = 'sse'"),
            line(""),
        ]
        .join("\n");
        assert!(!lines.contains("Swordfish"), "{lines}");
        insta::assert_snapshot!(lines, @"
        stdio  uvx excel-mcp-server stdio
        stdio  x --api-key [secret] a�[31m��b  A_TOKEN = ${A}  B_TOKEN = [secret]
        http   https://example.org/mcp?token=[secret]  Authorization: Bearer ${TOKEN}
        sse    https://example.org/sse
        nothing
        ");
    }
}
