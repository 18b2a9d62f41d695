//! Three servers with secrets in the files of three editors work behind the hub at once, and no plain secret is on disk.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{Person, call, editors::Editor, short_hash};

/// By place: a variable, a header, and an option.
const SECRETS: [&str; 3] = [
    "ghp_canaryone0123456789abcdefghijklmnop",
    "canary-two-in-a-header-7654321",
    "canary-three-in-an-option-1234567",
];

const fn editor(name: &'static str, file: &'static str, text: &'static str) -> Editor {
    Editor { name, file, text, lists: &[], only: None, without: &[] }
}

/// `@` is the home folder, `PORT` that of the HTTP server.
const EDITORS: [Editor; 3] = [
    editor(
        "claude",
        ".claude.json",
        r#"{
  "numStartups": 3,
  "mcpServers": {
    "issues": {
      "type": "stdio",
      "command": "python3",
      "args": ["@/secret_server.py", "issues"],
      "env": { "ISSUES_TOKEN": "ghp_canaryone0123456789abcdefghijklmnop" }
    }
  }
}
"#,
    ),
    editor(
        "cursor",
        ".cursor/mcp.json",
        r#"{
  // at work
  "mcpServers": {
    "wiki": { "url": "http://127.0.0.1:PORT/mcp", "headers": { "Authorization": "Bearer canary-two-in-a-header-7654321" } }, // read
  },
}
"#,
    ),
    editor(
        "vscode",
        ".config/Code/User/mcp.json",
        "{\n\t\"servers\": {\n\t\t\"maps\": {\n\t\t\t\"command\": \"python3\",\n\
         \t\t\t\"args\": [\"${userHome}/secret_server.py\", \"maps\", \"--api-key\", \"canary-three-in-an-option-1234567\"]\n\t\t}\n\t},\n\
         \t\"inputs\": []\n}\n",
    ),
];

/// A running HTTP server, which ends with the test.
struct HttpServer(Child);

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_http_server(person: &Person) -> (HttpServer, String) {
    use std::io::BufRead as _;
    let mut command = Command::new("python3");
    command.arg(person.path("secret_server.py")).args(["wiki", "--http"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut port = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    (HttpServer(child), port.trim().to_owned())
}

fn run(person: &Person, args: &[&str]) -> String {
    let output = person.command(args).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {text}");
    let printed = SECRETS.iter().find(|secret| text.contains(**secret));
    assert_eq!(printed, None, "{args:?} prints a secret: {text}");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_with_secrets_work_without_variables_and_without_plain_secrets() {
    let person = Person { home: tempfile::tempdir().unwrap() };
    person.write("secret_server.py", include_str!("secret_server.py"));
    person.write("notes/empty", "");
    let (_server, port) = start_http_server(&person);
    let text_of = |editor: &Editor| person.text_of(editor).replace("PORT", &port);
    for editor in &EDITORS {
        person.write(editor.file, &text_of(editor));
    }

    // Import: the plan says which secrets move and where they go.
    let imported = run(&person, &["import", "--yes"]);
    for line in [
        "the secret in env.ISSUES_TOKEN is kept as `${secret:ISSUES_TOKEN}`",
        "the secret in headers.Authorization is kept as `${secret:WIKI_TOKEN}`",
        "the secret in args[3] is kept as `${secret:MAPS_API_KEY}`",
        "Stored 3 secrets, encrypted with a key in a private file: ISSUES_TOKEN, MAPS_API_KEY, WIKI_TOKEN",
    ] {
        assert!(imported.contains(line), "{line}: {imported}");
    }
    for editor in &EDITORS {
        assert_eq!(person.read(editor.file), text_of(editor), "import does not change {}", editor.file);
    }
    let listed: Value = serde_json::from_str(&run(&person, &["secrets", "list", "--json"])).unwrap();
    let expected = json!([
        {"name": "ISSUES_TOKEN", "stored": true, "used_by": ["issues"]},
        {"name": "MAPS_API_KEY", "stored": true, "used_by": ["maps"]},
        {"name": "WIKI_TOKEN", "stored": true, "used_by": ["wiki"]},
    ]);
    assert_eq!(listed["secrets"], expected);

    // Connect: each editor starts the hub, without a variable of a shell, and each server has its secret.
    run(&person, &["servers", "test"]);
    for editor in &EDITORS {
        run(&person, &["connect", editor.name, "--yes"]);
        assert!(SECRETS.iter().all(|secret| !person.read(editor.file).contains(secret)), "{}", editor.file);
    }
    for ((editor, secret), tool) in
        EDITORS.iter().zip(SECRETS).zip(["whoami_issues", "whoami_wiki", "whoami_maps"])
    {
        let client = person.open(editor, None).await;
        let answer = call(&client, tool, json!({})).await;
        assert_eq!(answer, Ok(format!("token {}", short_hash(secret))), "{}", editor.name);
        client.cancel().await.unwrap();
    }
    person.assert_no_plain_secrets(&SECRETS);

    // A new key changes nothing for the servers; undo restores every byte.
    run(&person, &["secrets", "rotate-key"]);
    let client = person.open(&EDITORS[1], None).await;
    let answer = call(&client, "whoami_wiki", json!({})).await;
    assert_eq!(answer, Ok(format!("token {}", short_hash(SECRETS[1]))));
    client.cancel().await.unwrap();
    for editor in &EDITORS {
        run(&person, &["connect", editor.name, "--undo", "--yes"]);
        assert_eq!(person.read(editor.file), text_of(editor), "{}", editor.file);
    }
    person.assert_no_plain_secrets(&SECRETS);
}
