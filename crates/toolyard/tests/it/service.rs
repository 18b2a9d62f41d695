//! `toolyard service`: the file that it writes and removes, and what it tells its user.

use std::{
    io::{BufRead as _, BufReader},
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

    fn write(&self, file: &str, text: &str) {
        let file = self.folder.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let home = self.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command
            .args(args)
            .current_dir(home)
            .env_clear()
            .env("PATH", "/opt/node/bin:relative:/usr/bin")
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .stdin(Stdio::null());
        command
    }

    /// What a command prints, with its exit code.
    fn run(&self, args: &[&str]) -> String {
        let home = self.folder.path();
        let output = self.command(args).output().unwrap();
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
    # Not started for ever if it fails at once.
    StartLimitIntervalSec=60
    StartLimitBurst=5

    [Service]
    ExecStart=/bin/toolyard serve --http 127.0.0.1:7411
    ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
    Environment="PATH=/opt/node/bin:/usr/bin"
    Environment="XDG_CONFIG_HOME=HOME/config"
    Environment="XDG_DATA_HOME=HOME/data"
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
    note: systemd finds the file only if its own XDG_CONFIG_HOME is that of this terminal
      hint: compare: systemctl --user show-environment
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
    gateway   none of yours runs
      hint: systemctl --user status toolyard · logs: journalctl --user -u toolyard
    --- exit 0
    ");
    // What `systemctl --user enable` leaves.
    let link = home.unit().with_file_name("default.target.wants").join("toolyard.service");
    std::fs::create_dir(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(home.unit(), &link).unwrap();
    insta::assert_snapshot!(home.run(&["service", "uninstall"]), @r"
    removed HOME/config/systemd/user/default.target.wants/toolyard.service
    removed HOME/config/systemd/user/toolyard.service
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
fn variables_that_the_service_does_not_have_are_named() {
    let home = TestHome::new();
    home.write(
        "config/toolyard/toolyard.toml",
        "[serve]\ntoken = \"${TOKEN}\"\n[servers.x]\ncommand = \"x\"\nenv = { KEY = \"${X_KEY}\", S = \"${secret:S}\", D = \"${D_KEY:-none}\" }\n\
         [servers.y]\ncommand = \"y\"\nenv = { KEY = \"${GIVEN}\" }\n\
         [models.m]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\nkey = \"${MODEL_KEY}\"\n",
    );
    home.write(
        "config/toolyard/mcp.json",
        r#"{"mcpServers": {"z": {"command": "z", "env": {"TOKEN": "${Z_TOKEN}"}}}}"#,
    );
    home.write("config/toolyard/service.env", "# variables\nGIVEN=1\n");
    // The service has no project.
    home.write("toolyard.toml", "[servers.p]\ncommand = \"p\"\nenv = { KEY = \"${PROJECT_KEY}\" }\n");
    let report = home.run(&["service", "install"]);
    let note = "note: the settings need variables that the service does not have: MODEL_KEY, TOKEN, X_KEY, Z_TOKEN\n";
    assert!(report.contains(note), "{report}");
}

#[test]
fn an_address_that_nobody_can_serve_at_is_refused() {
    let home = TestHome::new();
    for address in
        ["not an address", "7411x", ":", "host:99999", "a b:80", "[::1:80", "a:b:80", "127.0.0.1:+80", "0"]
    {
        let refused = home.run(&["service", "install", "--http", address]);
        assert!(refused.contains("HOST:PORT") && refused.ends_with("--- exit 2"), "{refused}");
    }
    assert!(!home.unit().exists());
    assert!(home.run(&["service", "install", "--http", "[::1]:7411"]).contains("created"));
}

#[test]
fn a_gateway_that_was_started_in_another_folder_is_found() {
    let home = TestHome::new();
    std::fs::create_dir(home.folder.path().join("other")).unwrap();
    let mut gateway = home
        .command(&["serve", "--http", "127.0.0.1:0"])
        .current_dir(home.folder.path().join("other"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(gateway.stderr.take().unwrap()).lines();
    let address = lines.find_map(|line| Some(line.unwrap().strip_prefix("serving at ")?.replace("/mcp", "")));
    let (status, opened) = (home.run(&["service", "status"]), home.run(&["open", "--no-browser"]));
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    let address = address.unwrap();
    assert!(status.contains(&format!("gateway   {address}\n")), "{status}");
    assert!(opened.starts_with(&address) && opened.ends_with("--- exit 0"), "{opened}");
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
