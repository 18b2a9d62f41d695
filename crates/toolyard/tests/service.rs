//! `toolyard service`: the file that it writes and removes, and what it tells its user.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a panic in a test helper fails the test, as intended")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

struct TestHome {
    folder: tempfile::TempDir,
}

impl TestHome {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn unit(&self) -> PathBuf {
        self.folder.path().join("config/systemd/user/toolyard.service")
    }

    /// What a command prints, with its exit code.
    fn run(&self, args: &[&str]) -> String {
        let home = self.folder.path();
        let output = Command::new(env!("CARGO_BIN_EXE_toolyard"))
            .args(args)
            .current_dir(home)
            .env_clear()
            .env("PATH", "/opt/node/bin:relative:/usr/bin")
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = format!("{}--- exit {}", String::from_utf8(text).unwrap(), output.status.code().unwrap());
        text.replace(env!("CARGO_BIN_EXE_toolyard"), "/bin/toolyard").replace(home.to_str().unwrap(), "HOME")
    }
}

#[test]
fn a_dry_run_prints_the_unit_and_writes_nothing() {
    let home = TestHome::new();
    insta::assert_snapshot!(home.run(&["service", "install", "--dry-run", "--http", "7411"]), @r#"
    # Written by `toolyard service install`; it replaces changes here. Add settings with: systemctl --user edit toolyard
    [Unit]
    Description=Toolyard gateway

    [Service]
    ExecStart=/bin/toolyard serve --http 127.0.0.1:7411
    ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
    Environment="PATH=/opt/node/bin:/usr/bin"
    EnvironmentFile=-HOME/config/toolyard/service.env
    Restart=on-failure
    RestartSec=2
    # The gateway lets calls finish and ends its servers itself.
    KillMode=mixed
    TimeoutStopSec=60

    [Install]
    WantedBy=default.target
    nothing was written; the file would be HOME/config/systemd/user/toolyard.service
    start the service now and at every sign-in:
      systemctl --user daemon-reload
      systemctl --user enable toolyard
      systemctl --user restart toolyard
      hint: to keep it running while you are signed out: loginctl enable-linger
    --- exit 0
    "#);
    assert!(!home.unit().exists());
}

#[test]
fn an_installed_service_is_shown_and_removed() {
    let home = TestHome::new();
    assert!(home.run(&["service", "install"]).contains("created HOME/config/systemd/user/toolyard.service"));
    assert!(home.run(&["service", "install", "--json"]).contains("\"action\": \"unchanged\""));
    insta::assert_snapshot!(home.run(&["service", "status"]), @r"
    service   installed: HOME/config/systemd/user/toolyard.service
    gateway   none runs with these settings
      hint: systemctl --user status toolyard · logs: journalctl --user -u toolyard
    --- exit 0
    ");
    // What `systemctl --user enable` leaves.
    let link = home.unit().with_file_name("default.target.wants").join("toolyard.service");
    std::fs::create_dir(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(home.unit(), &link).unwrap();
    insta::assert_snapshot!(home.run(&["service", "uninstall"]), @r"
    removed HOME/config/systemd/user/toolyard.service
    removed HOME/config/systemd/user/default.target.wants/toolyard.service
    stop the service if it runs:
      systemctl --user stop toolyard
      systemctl --user daemon-reload
    --- exit 0
    ");
    assert!(!home.unit().exists() && !link.is_symlink());
    insta::assert_snapshot!(home.run(&["service", "uninstall"]), @r"
    error: the service is not installed: no HOME/config/systemd/user/toolyard.service
      hint: install it: toolyard service install
    --- exit 2
    ");
}

#[test]
fn variables_that_only_the_terminal_has_are_named() {
    let home = TestHome::new();
    let settings = home.folder.path().join("config/toolyard/toolyard.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(
        settings,
        "[servers.x]\ncommand = \"x\"\nenv = { KEY = \"${X_KEY}\", S = \"${secret:S}\" }\n",
    )
    .unwrap();
    let report = home.run(&["service", "install"]);
    assert!(report.contains("note: servers need variables that only your terminal has: X_KEY\n"), "{report}");
}

#[test]
fn a_file_of_somebody_else_is_kept() {
    let home = TestHome::new();
    let write = |file: &Path| {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "[Service]\n").unwrap();
    };
    write(&home.unit());
    for command in ["install", "uninstall"] {
        let refused = home.run(&["service", command]);
        assert!(refused.contains("was not written by Toolyard") && refused.ends_with("exit 4"), "{refused}");
    }
    assert_eq!(std::fs::read_to_string(home.unit()).unwrap(), "[Service]\n");
    assert!(home.run(&["service", "install", "--force"]).contains("updated "));
}
