//! [`ServiceDefinition`]: what a service runs, as a unit of systemd or a property list of launchd.

use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Is in every file that Toolyard writes; other files are not replaced or removed.
pub(super) const OWN_MARK: &str = "Written by `toolyard service install`";
const SYSTEMD_NAME: &str = "toolyard.service";
const LAUNCHD_LABEL: &str = "toolyard";

/// What starts and restarts services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    Systemd,
    Launchd,
}

/// What the service runs. All paths are absolute.
#[derive(Debug)]
pub(super) struct ServiceDefinition {
    pub(super) program: String,
    /// The settings file, if not the usual ones.
    pub(super) config: Option<String>,
    pub(super) address: String,
    /// Variables of the gateway and of its servers.
    pub(super) environment: Vec<(&'static str, String)>,
    /// Further variables, for systemd; the file may be missing.
    pub(super) environment_file: String,
    /// What the gateway prints, for launchd; systemd has a log of its own.
    pub(super) log_file: String,
    /// How long the gateway may take to end.
    pub(super) stop_seconds: u64,
}

impl Manager {
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Systemd => SYSTEMD_NAME,
            Self::Launchd => "toolyard.plist",
        }
    }

    /// The link by which `systemctl --user enable` starts the service at sign-in.
    pub(super) fn enabling_link(self, file: &Path) -> Option<PathBuf> {
        let link = || file.with_file_name("default.target.wants").join(SYSTEMD_NAME);
        (self == Self::Systemd).then(link)
    }

    /// The commands that start the service. `is_update` if it may run already, with an older file.
    pub(super) fn start_commands(self, file: &Path, is_update: bool) -> Vec<String> {
        match self {
            Self::Systemd => {
                // After too many failed starts, it would not be started otherwise.
                let reset = is_update.then_some("reset-failed toolyard");
                // Restarted, because an older one may run.
                let commands =
                    ["daemon-reload", "enable toolyard"].into_iter().chain(reset).chain(["restart toolyard"]);
                commands.map(|command| format!("systemctl --user {command}")).collect()
            }
            Self::Launchd => {
                let load =
                    format!("launchctl bootstrap gui/$(id -u) {}", shell_quoted(&file.to_string_lossy()));
                // A service that is loaded cannot be loaded again.
                let unload = if is_update { self.stop_commands() } else { Vec::new() };
                unload.into_iter().chain([load]).collect()
            }
        }
    }

    pub(super) fn stop_commands(self) -> Vec<String> {
        match self {
            Self::Systemd => {
                vec!["systemctl --user stop toolyard".to_owned(), "systemctl --user daemon-reload".to_owned()]
            }
            Self::Launchd => vec![format!("launchctl bootout gui/$(id -u)/{LAUNCHD_LABEL}")],
        }
    }

    /// How to see whether the service runs, and what it printed.
    pub(super) fn status_commands(self, log_file: &Path) -> String {
        match self {
            Self::Systemd => {
                "systemctl --user status toolyard · logs: journalctl --user -u toolyard".to_owned()
            }
            Self::Launchd => {
                let log = shell_quoted(&log_file.to_string_lossy());
                format!("launchctl print gui/$(id -u)/{LAUNCHD_LABEL} · logs: tail {log}")
            }
        }
    }
}

impl ServiceDefinition {
    /// The content of the service file.
    ///
    /// # Errors
    ///
    /// A path contains a control character, such as a line break, which could add lines to the file.
    pub(super) fn render(&self, manager: Manager) -> Result<String, CliError> {
        let texts = [&self.program, &self.address, &self.environment_file, &self.log_file];
        let variables = self.environment.iter().map(|(_, value)| value);
        let mut texts = texts.into_iter().chain(&self.config).chain(variables);
        if let Some(text) = texts.find(|text| text.contains(char::is_control)) {
            return Err(CliError::failed(format!("{text:?} contains a control character"))
                .with_hint("rename the folder, or remove it from PATH"));
        }
        Ok(match manager {
            Manager::Systemd => self.systemd_unit(),
            Manager::Launchd => self.launchd_property_list(),
        })
    }

    /// The arguments of the program.
    fn arguments(&self) -> Vec<&str> {
        let config = self.config.iter().flat_map(|file| ["--config", file]);
        config.chain(["serve", "--http", &self.address]).collect()
    }

    fn systemd_unit(&self) -> String {
        let arguments = self.arguments().into_iter().map(systemd_argument);
        let command =
            std::iter::once(systemd_program(&self.program)).chain(arguments).collect::<Vec<_>>().join(" ");
        let variable = |(name, value): &(&str, String)| {
            format!("Environment={}\n", systemd_quoted(&format!("{name}={value}")))
        };
        let environment: String = self.environment.iter().map(variable).collect();
        let stop_seconds = self.stop_seconds;
        // Paths of this setting are not quoted.
        let environment_file = self.environment_file.replace('%', "%%");
        format!(
            "# {OWN_MARK}; it replaces changes here. Add settings with: systemctl --user edit toolyard
[Unit]
Description=Toolyard gateway
# Not started for ever if it fails at once.
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
ExecStart={command}
ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
{environment}EnvironmentFile=-{environment_file}
Restart=on-failure
RestartSec=2
# The gateway lets calls finish and ends its servers itself.
KillMode=mixed
TimeoutStopSec={stop_seconds}

[Install]
WantedBy=default.target
"
        )
    }

    fn launchd_property_list(&self) -> String {
        let argument = |text: &str| format!("    <string>{}</string>\n", xml_escaped(text));
        let arguments: String =
            std::iter::once(self.program.as_str()).chain(self.arguments()).map(argument).collect();
        let variable = |(name, value): &(&str, String)| {
            format!("    <key>{name}</key>\n    <string>{}</string>\n", xml_escaped(value))
        };
        let environment: String = self.environment.iter().map(variable).collect();
        let (log_file, stop_seconds) = (xml_escaped(&self.log_file), self.stop_seconds);
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- {OWN_MARK}; it replaces changes here. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{LAUNCHD_LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{environment}  </dict>
  <key>StandardOutPath</key>
  <string>{log_file}</string>
  <key>StandardErrorPath</key>
  <string>{log_file}</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>{stop_seconds}</integer>
</dict>
</plist>
"#
        )
    }
}

/// The program of a command line in a unit, where `$` has no meaning.
fn systemd_program(path: &str) -> String {
    if is_plain(path) { path.to_owned() } else { systemd_quoted(path) }
}

/// An argument of a command line in a unit, where `$` begins a variable.
fn systemd_argument(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { systemd_quoted(&text.replace('$', "$$")) }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-:[]".contains(&byte))
}

/// A quoted value in a unit, where `%` begins a specifier.
fn systemd_quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

fn xml_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> ServiceDefinition {
        ServiceDefinition {
            program: "/home/a b/100%/$d/toolyard".to_owned(),
            config: Some("/etc/$x/\"toolyard\".toml".to_owned()),
            address: "127.0.0.1:7300".to_owned(),
            environment: vec![
                ("PATH", "/home/a&b/bin:/usr/bin".to_owned()),
                ("XDG_DATA_HOME", "/data/\"d\"".to_owned()),
            ],
            environment_file: "/home/a b/100%/service.env".to_owned(),
            log_file: "/home/a b/service.log".to_owned(),
            stop_seconds: 60,
        }
    }

    #[test]
    fn a_unit_of_systemd_starts_the_gateway() {
        insta::assert_snapshot!(definition().render(Manager::Systemd).unwrap(), @r#"
        # Written by `toolyard service install`; it replaces changes here. Add settings with: systemctl --user edit toolyard
        [Unit]
        Description=Toolyard gateway
        # Not started for ever if it fails at once.
        StartLimitIntervalSec=60
        StartLimitBurst=5

        [Service]
        ExecStart="/home/a b/100%%/$d/toolyard" --config "/etc/$$x/\"toolyard\".toml" serve --http 127.0.0.1:7300
        ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
        Environment="PATH=/home/a&b/bin:/usr/bin"
        Environment="XDG_DATA_HOME=/data/\"d\""
        EnvironmentFile=-/home/a b/100%%/service.env
        Restart=on-failure
        RestartSec=2
        # The gateway lets calls finish and ends its servers itself.
        KillMode=mixed
        TimeoutStopSec=60

        [Install]
        WantedBy=default.target
        "#);
    }

    #[test]
    fn a_property_list_of_launchd_starts_the_gateway() {
        insta::assert_snapshot!(definition().render(Manager::Launchd).unwrap(), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <!-- Written by `toolyard service install`; it replaces changes here. -->
        <plist version="1.0">
        <dict>
          <key>Label</key>
          <string>toolyard</string>
          <key>ProgramArguments</key>
          <array>
            <string>/home/a b/100%/$d/toolyard</string>
            <string>--config</string>
            <string>/etc/$x/"toolyard".toml</string>
            <string>serve</string>
            <string>--http</string>
            <string>127.0.0.1:7300</string>
          </array>
          <key>EnvironmentVariables</key>
          <dict>
            <key>PATH</key>
            <string>/home/a&amp;b/bin:/usr/bin</string>
            <key>XDG_DATA_HOME</key>
            <string>/data/"d"</string>
          </dict>
          <key>StandardOutPath</key>
          <string>/home/a b/service.log</string>
          <key>StandardErrorPath</key>
          <string>/home/a b/service.log</string>
          <key>RunAtLoad</key>
          <true/>
          <key>KeepAlive</key>
          <dict>
            <key>SuccessfulExit</key>
            <false/>
          </dict>
          <key>ExitTimeOut</key>
          <integer>60</integer>
        </dict>
        </plist>
        "#);
    }

    #[test]
    fn a_line_break_cannot_add_settings_to_the_file() {
        let environment = vec![("PATH", "/a\nExecStartPre=/b".to_owned())];
        let definition = ServiceDefinition { environment, ..definition() };
        for manager in [Manager::Systemd, Manager::Launchd] {
            assert!(definition.render(manager).unwrap_err().message().contains("control character"));
        }
    }

    #[test]
    fn commands_load_and_unload_the_file() {
        let file = Path::new("/Users/O'Neil/toolyard.plist");
        let load = r"launchctl bootstrap gui/$(id -u) '/Users/O'\''Neil/toolyard.plist'";
        assert_eq!(Manager::Launchd.start_commands(file, false), [load]);
        let unload = "launchctl bootout gui/$(id -u)/toolyard";
        assert_eq!(Manager::Launchd.start_commands(file, true), [unload, load]);
        let file = Path::new("/c/systemd/user/toolyard.service");
        let link = Manager::Systemd.enabling_link(file).unwrap();
        assert_eq!(link, Path::new("/c/systemd/user/default.target.wants/toolyard.service"));
    }
}
