//! `toolyard open`: opens the console of the running gateway in a browser, signed in as operator.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use serde::Deserialize;
use serde_json::json;
use toolyard_console::{OPERATOR_HEADER, SIGN_IN_CODE_PATH, SIGN_IN_PATH};

use crate::{
    cli::OpenArgs,
    config::{
        CliContext,
        running_hubs::{OperatorSecret, running_hubs},
    },
    error::CliError,
    terminal::Output,
};

/// A gateway on this machine answers at once.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
struct SignInCode {
    code: String,
}

pub(super) async fn run(arguments: &OpenArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let hubs = running_hubs(context).into_iter().filter(|hub| hub.has_settings_of(context));
    let mut consoles = hubs.filter_map(|hub| Some((hub.url?, hub.operator_secret?)));
    let Some((url, secret)) = consoles.next() else {
        let message = "no gateway with these settings runs on this machine";
        return Err(CliError::unreachable(message).with_hint("start it with toolyard serve --http"));
    };
    let origin = url.strip_suffix("/mcp").unwrap_or(&url);
    let code = request_code(origin, &secret).await?;
    let link = format!("{origin}{SIGN_IN_PATH}?code={code}");
    let is_opened = !arguments.no_browser && start_browser(&link);
    if output.is_json() {
        output.json(&json!({ "url": link, "browser_started": is_opened }));
        return Ok(());
    }
    output.line(&link);
    if is_opened {
        output.message("opened in your browser; the link works once, within 10 minutes");
    } else {
        output.message("open this link in a browser; it works once, within 10 minutes");
    }
    Ok(())
}

async fn request_code(origin: &str, secret: &OperatorSecret) -> Result<String, CliError> {
    let failed = |error: reqwest::Error| {
        CliError::unreachable(format!("failed to get a sign-in link from {origin}: {}", error.without_url()))
            .with_hint("is the gateway stopping? start it again with toolyard serve --http")
    };
    // A proxy must not see the secret.
    let client = reqwest::Client::builder().no_proxy().timeout(REQUEST_TIMEOUT).build().map_err(failed)?;
    let request = client.post(format!("{origin}{SIGN_IN_CODE_PATH}")).header(OPERATOR_HEADER, &secret.0);
    let response = request.send().await.and_then(reqwest::Response::error_for_status).map_err(failed)?;
    Ok(response.json::<SignInCode>().await.map_err(failed)?.code)
}

/// Starts the browser of this system; whether there is one.
fn start_browser(link: &str) -> bool {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("cmd", &["/C", "start", ""])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(link);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}
