//! What distinguishes a server from another one of the same program: folders, host and account of its settings.
//!
//! Only what cannot be a secret is shown: paths, hosts, references to variables, and values of options that name an
//! account or the like. Of everything else only the name is shown.

use std::collections::BTreeMap;

use toolyard_core::{SourceScope, is_absolute_path, redact};

use super::{
    McpServerConfig, TransportConfig,
    redacted::safe_preview,
    secrets::secret_part,
    template::{Piece, Template, is_private_reference},
};

/// Programs that run another program, which their first argument names.
const LAUNCHERS: [&str; 18] = [
    "npx", "bunx", "pnpx", "pnpm", "yarn", "node", "bun", "deno", "tsx", "uv", "uvx", "pipx", "python",
    "python3", "ruby", "java", "docker", "podman",
];
/// Subcommands of launchers.
const LAUNCHER_COMMANDS: [&str; 7] = ["run", "exec", "dlx", "tool", "x", "start", "task"];
/// Words in the name of an option or variable whose value says what the server acts on.
const SCOPE_WORDS: [&str; 40] = [
    "account",
    "user",
    "username",
    "email",
    "profile",
    "project",
    "org",
    "organization",
    "owner",
    "team",
    "tenant",
    "workspace",
    "space",
    "site",
    "region",
    "zone",
    "timezone",
    "language",
    "database",
    "db",
    "schema",
    "host",
    "port",
    "domain",
    "server",
    "instance",
    "cluster",
    "namespace",
    "context",
    "environment",
    "env",
    "repo",
    "repository",
    "bucket",
    "vault",
    "mailbox",
    "channel",
    "folder",
    "directory",
    "name",
];
/// A longer value is not shown.
const MAX_VALUE_CHARS: usize = 40;

impl McpServerConfig {
    /// What distinguishes this server from others of its program. `lookup` resolves variables, `home` is the home folder.
    pub(crate) fn scope(&self, lookup: impl Fn(&str) -> Option<String>, home: Option<&str>) -> SourceScope {
        let mut builder = ScopeBuilder { scope: SourceScope::default(), lookup: &lookup, home };
        match &self.transport {
            TransportConfig::Stdio { command, args, env, .. } => builder.add_program(command, args, env),
            TransportConfig::Http { url, .. } => builder.add_url(url),
        }
        builder.scope
    }
}

struct ScopeBuilder<'a> {
    scope: SourceScope,
    lookup: &'a dyn Fn(&str) -> Option<String>,
    home: Option<&'a str>,
}

impl ScopeBuilder<'_> {
    fn add_program(&mut self, command: &str, args: &[String], env: &BTreeMap<String, String>) {
        let (program, args) = split_program(command, args);
        self.scope.program = Some(program);
        let mut option = None;
        for arg in args {
            match (option.take(), arg.strip_prefix('-')) {
                (_, Some(flag)) => match arg.split_once('=') {
                    Some((name, value)) => self.add_value(name, value, " "),
                    None if flag.is_empty() => {}
                    None => option = Some(arg.as_str()),
                },
                (Some(name), None) => self.add_value(name, arg, " "),
                (None, None) => self.add_positional(arg),
            }
            // An option without a value so far; its value, if it has one, replaces the label.
            if let Some(name) = option {
                self.add_label(safe_preview(name));
            }
        }
        for (name, value) in env {
            self.add_value(name, value, "=");
        }
    }

    /// A value of a named setting: its folder or host, a reference, a word of an account, or only its name.
    fn add_value(&mut self, name: &str, value: &str, separator: &str) {
        self.scope.labels.retain(|label| label != name);
        // A secret may look like a path.
        if !names_secret(name) && self.add_location(value) {
            return;
        }
        let is_scope_word = |word: &str| SCOPE_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
        let names_scope = name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_scope_word);
        let label = match reference(value) {
            // The name is left out: after `API_KEY=`, the variable would be redacted.
            Some(variable) => format!("${{{variable}}}"),
            None if names_scope && is_plain(name, value) => format!("{name}{separator}{value}"),
            None => name.to_owned(),
        };
        self.add_label(safe_preview(&label));
    }

    fn add_positional(&mut self, arg: &str) {
        if !self.add_location(arg) && arg.contains('@') && is_plain("account", arg) {
            self.add_label(safe_preview(arg));
        }
    }

    /// Adds a path or the host of a URL; returns whether the text is one.
    fn add_location(&mut self, text: &str) -> bool {
        let Some(resolved) = self.resolve(text) else { return false };
        if is_absolute_path(&resolved) {
            self.add_folder(&resolved);
            return true;
        }
        // Only a URL with a host: `a:b` is one as well.
        let is_url = resolved.contains("://") && url::Url::parse(&resolved).is_ok_and(|url| url.has_host());
        if is_url {
            self.add_url(&resolved);
        }
        is_url
    }

    /// A folder, also as it reads with or without `~`.
    fn add_folder(&mut self, path: &str) {
        let home = self.home.filter(|home| home.len() > 1);
        let in_home = home.and_then(|home| path.strip_prefix(home.trim_end_matches('/')));
        let in_home = in_home.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let (label, other) = match (in_home, path.strip_prefix('~'), home) {
            (Some(rest), _, _) => (format!("~{rest}"), Some(path.to_owned())),
            (None, Some(rest), Some(home)) => {
                (path.to_owned(), Some(format!("{}{rest}", home.trim_end_matches('/'))))
            }
            _ => (path.to_owned(), None),
        };
        self.add_label(safe_preview(&label));
        self.scope.folders.extend([Some(label), other].into_iter().flatten());
    }

    /// Host and port: user, path and query may contain secrets.
    fn add_url(&mut self, url: &str) {
        let Some(url) = self.resolve(url).and_then(|url| url::Url::parse(&url).ok()) else { return };
        match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => self.add_label(safe_preview(&format!("{host}:{port}"))),
            (Some(host), None) => self.add_label(safe_preview(host)),
            (None, _) => {}
        }
    }

    fn resolve(&self, text: &str) -> Option<String> {
        // What a stored secret or a file contains is never a label, whatever it looks like.
        let lookup = |name: &str| if is_private_reference(name) { None } else { (self.lookup)(name) };
        Some(Template::parse(text).ok()?.expand(lookup).ok()?.expose().to_owned())
    }

    fn add_label(&mut self, label: String) {
        if !self.scope.labels.contains(&label) {
            self.scope.labels.push(label);
        }
    }
}

/// The program, with what a launcher runs, and the arguments after it.
fn split_program<'a>(command: &str, args: &'a [String]) -> (String, &'a [String]) {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let launcher = base(command);
    if !LAUNCHERS.contains(&launcher.as_str()) {
        return (launcher, args);
    }
    let is_program = |arg: &String| !arg.starts_with('-') && !LAUNCHER_COMMANDS.contains(&arg.as_str());
    match args.iter().position(is_program) {
        Some(at) => {
            let name = args.get(at).map(|arg| base(arg)).unwrap_or_default();
            (format!("{launcher} {name}"), args.get(at + 1..).unwrap_or_default())
        }
        None => (launcher, &[]),
    }
}

/// The variable of a value that is one reference.
fn reference(value: &str) -> Option<String> {
    match Template::parse(value).ok()?.pieces.as_slice() {
        [Piece::Reference { variable, .. }] => Some(variable.clone()),
        _ => None,
    }
}

/// Whether the values of this option or variable are secrets.
fn names_secret(name: &str) -> bool {
    let assignment = format!("{}=Sw0rdfish9xK2mQ7", name.trim_start_matches('-'));
    redact(&assignment) != assignment
}

/// Whether a value is a short word that nothing takes for a secret.
fn is_plain(name: &str, value: &str) -> bool {
    let is_word_char = |letter: char| letter.is_ascii_alphanumeric() || "-_.@:/+".contains(letter);
    let assignment = format!("{}={value}", name.trim_start_matches('-'));
    (1..=MAX_VALUE_CHARS).contains(&value.len())
        && value.chars().all(is_word_char)
        && secret_part(name.trim_start_matches('-'), value).is_none()
        && redact(value) == value
        && redact(&assignment) == assignment
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stdio(command: &str, args: &[&str], env: &[(&str, &str)]) -> SourceScope {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let transport = TransportConfig::Stdio {
            command: command.to_owned(),
            args: owned(args),
            env,
            inherit: Vec::new(),
            cwd: None,
        };
        scope_of(transport)
    }

    fn scope_of(transport: TransportConfig) -> SourceScope {
        let lookup = |name: &str| (name == "DATA").then(|| "/data".to_owned());
        McpServerConfig::new("s", transport).scope(lookup, Some("/home/anna"))
    }

    fn http(url: &str) -> SourceScope {
        scope_of(TransportConfig::Http {
            url: url.to_owned(),
            headers: BTreeMap::new(),
            kind: crate::config::HttpKind::Auto,
        })
    }

    #[test]
    fn folders_are_those_of_arguments_and_variables_but_not_of_the_program() {
        let folders = |scope: SourceScope| scope.folders;
        let npx = "@modelcontextprotocol/server-filesystem";
        assert_eq!(folders(stdio("npx", &["-y", npx, "/data"], &[])), ["/data"]);
        assert_eq!(
            folders(stdio("node", &["/opt/fs/index.js", "/home/anna/docs"], &[])),
            ["~/docs", "/home/anna/docs"]
        );
        assert_eq!(
            folders(stdio("mcp-server-git", &["--repository", "~/code"], &[])),
            ["~/code", "/home/anna/code"]
        );
        assert_eq!(folders(stdio("excel-mcp-server", &["--allow-dir=${DATA}/x"], &[])), ["/data/x"]);
        assert_eq!(folders(stdio("excel", &["stdio"], &[("EXCEL_FILES_PATH", "/data")])), ["/data"]);
        assert_eq!(folders(stdio("time", &["--zone", "UTC"], &[])), [""; 0]);
    }

    #[test]
    fn instances_of_one_program_are_recognized() {
        let npx = "@modelcontextprotocol/server-filesystem";
        let (data, docs) = (stdio("npx", &["-y", npx, "/data"], &[]), stdio("npx", &[npx, "~/docs"], &[]));
        assert!(data.is_other_instance(&docs), "{data:?} {docs:?}");
        assert!(!data.is_other_instance(&stdio("npx", &["-y", npx, "/data"], &[])));
        assert!(!data.is_other_instance(&stdio("npx", &["-y", "other", "/docs"], &[])));
        assert!(!http("http://a/mcp").is_other_instance(&http("http://b/mcp")), "replicas may be equivalent");
    }

    #[test]
    fn accounts_hosts_and_references_are_labels() {
        let labels = |scope: SourceScope| scope.labels.join(" | ");
        assert_eq!(
            labels(stdio("mail", &["--account", "work", "-v", "--retries=3"], &[])),
            "--account work | -v | --retries"
        );
        assert_eq!(labels(stdio("mail", &["anna@example.org"], &[])), "anna@example.org");
        assert_eq!(
            labels(stdio("gh", &[], &[("GITHUB_TOKEN", "${WORK_TOKEN}"), ("API_KEY", "${B_API_KEY}")])),
            "${B_API_KEY} | ${WORK_TOKEN}"
        );
        assert_eq!(
            labels(stdio("time", &["--local-timezone=Europe/Berlin"], &[])),
            "--local-timezone Europe/Berlin"
        );
        assert_eq!(labels(stdio("pg", &["postgres://me:Swordfish1@db.local:5432/x"], &[])), "db.local:5432");
        assert_eq!(labels(http("https://mcp.example.org/v1/Swordfish1?key=Swordfish1")), "mcp.example.org");
    }

    proptest! {
        /// Wherever a secret stands, no label shows it.
        #[test]
        fn no_label_shows_a_secret(secret in "(ghp_[A-Za-z0-9]{36}|sk-[A-Za-z0-9]{40}|xoxb-[0-9]{12}-[A-Za-z0-9]{24}|[A-Za-z0-9]{41,60})", place in 0..9) {
            let scope = match place {
                0 => stdio("x", &[&secret], &[]),
                1 => stdio("x", &["--api-key", &secret], &[]),
                2 => stdio("x", &[&format!("--account={secret}")], &[]),
                3 => stdio("x", &[], &[("API_TOKEN", &format!("/{secret}"))]),
                4 => stdio("x", &[], &[("ACCOUNT_NAME", &secret)]),
                5 => http(&format!("https://u:{secret}@example.org/{secret}?k={secret}")),
                6 => stdio("x", &[&format!("https://{secret}@example.org/{secret}")], &[]),
                7 => stdio("npx", &["tool", "--header", &format!("Authorization: Bearer {secret}")], &[]),
                _ => stdio("x", &["--user", "anna", "--password", &secret], &[]),
            };
            prop_assert!(!scope.labels.join(" ").contains(&secret), "{scope:?}");
        }
    }
}
