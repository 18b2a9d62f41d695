//! The settings in effect, over the HTTP API and at the command line.

use serde_json::{Value, json};

use crate::{client::HttpGateway, home_with_server, test_home::TestHome};

const SETTINGS: &str = "config/toolyard/toolyard.toml";

/// The console, signed in by the link of `toolyard open`.
pub(crate) struct OperatorConsole {
    origin: String,
    cookie: String,
    http: reqwest::Client,
}

impl OperatorConsole {
    pub(crate) async fn sign_in(home: &TestHome) -> Self {
        let opened: Value = serde_json::from_str(&home.run(&["open", "--no-browser", "--json"])).unwrap();
        let link = opened["url"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let response = http.get(&link).send().await.unwrap();
        assert_eq!(response.status(), 303, "{link}");
        let cookie = response.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let origin = link.split("/console").next().unwrap().to_owned();
        Self { origin, cookie, http }
    }

    pub(crate) async fn page(&self, path: &str) -> String {
        let request = self.http.get(format!("{}{path}", self.origin)).header("cookie", &self.cookie);
        request.send().await.unwrap().text().await.unwrap()
    }

    /// Submits a form of this page with the hidden fields that are there, and returns the page that it leads to.
    pub(crate) async fn submit(&self, page: &str, action: &str, fields: &str) -> String {
        let form = self.page(page).await;
        let csrf = form.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        let request = self.http.post(format!("{}{action}", self.origin)).header("cookie", &self.cookie);
        let answer = request.body(format!("csrf={csrf}&{fields}")).send().await.unwrap();
        match answer.headers().get("location") {
            Some(location) => self.page(location.to_str().unwrap()).await,
            None => answer.text().await.unwrap(),
        }
    }
}

fn value<'r>(report: &'r Value, key: &str) -> &'r Value {
    let values = report["values"].as_array().unwrap_or_else(|| panic!("{report}"));
    values.iter().find(|value| value["key"] == key).unwrap_or_else(|| panic!("{key} is missing: {report}"))
}

#[tokio::test]
async fn every_setting_has_its_origin_and_no_secret_is_shown() {
    let home = home_with_server();
    let secret = "hunter2-correct-horse-9f8e7d6c5b4a";
    let text = std::fs::read_to_string(home.path(SETTINGS)).unwrap();
    let text = format!("{text}\nenv = {{ API_KEY = \"{secret}\" }}\n[time]\nzone = \"Asia/Shanghai\"\n");
    home.write(SETTINGS, &text);
    let gateway = HttpGateway::start(&home, &["--surface", "full"]);
    let url = gateway.url.replace("/mcp", "/api/v1/settings");
    let request = gateway.http.get(url).bearer_auth(gateway.token.as_ref().unwrap());
    let refused: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(refused["error"]["code"], "operator_only", "settings name files of this machine: {refused}");
    let console = OperatorConsole::sign_in(&home).await;
    let page = console.page("/console/settings").await;
    assert!(page.contains("Asia/Shanghai") && page.contains("command line"), "{page}");
    assert!(!page.contains(secret), "{page}");

    let get =
        || -> Value { serde_json::from_str(&home.run(&["settings", "show", "--all", "--json"])).unwrap() };
    let report = get();
    let file = json!(format!("HOME/{SETTINGS}"));
    let origin = |report: &Value, key: &str| {
        let setting = value(report, key);
        (setting["value"].clone(), setting["origin"].as_str().unwrap().to_owned(), setting["file"].clone())
    };
    assert_eq!(report["files"], json!([file]), "{report}");
    assert_eq!(origin(&report, "time.zone"), (json!("Asia/Shanghai"), "file".to_owned(), file));
    assert_eq!(origin(&report, "journal"), (json!("runs"), "default".to_owned(), json!(null)));
    let key = value(&report, "servers.fake.env.API_KEY");
    assert_eq!((&key["secret"], &key["value"]), (&json!(true), &json!(null)), "{key}");
    assert!(!report.to_string().contains(secret), "{report}");

    let text = text.replace("Asia/Shanghai", "Europe/Berlin");
    home.write(SETTINGS, &format!("{text}[serve]\nallowed_hosts = [\"tools.example\"]\n"));
    gateway.hang_up("these take effect after a restart: time").await;
    let page = console.page("/console/settings").await;
    assert!(page.contains("tools.example"), "those in effect are shown");
    assert!(
        page.contains("Asia/Shanghai") && !page.contains("Europe/Berlin"),
        "the time zone is not reloaded"
    );
    gateway.stop().await;

    let shown: Value = serde_json::from_str(&home.run(&["settings", "show", "--json"])).unwrap();
    assert_eq!(value(&shown, "time.zone")["value"], "Europe/Berlin");
    let table = home.run(&["settings", "show"]);
    assert!(table.contains("time.zone") && table.contains("(secret)"), "{table}");
    assert!(!table.contains(secret) && !table.contains("journal"), "{table}");
    assert!(home.run(&["settings", "show", "--all"]).contains("journal"));
}
