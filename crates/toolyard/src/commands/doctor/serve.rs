//! Checks `[serve]`: secrets and profiles.

use toolyard::{Toolyard, settings::ServeSettings};
use toolyard_gateway::HubService;

use super::{Finding, Severity};
use crate::config::CliContext;

pub(super) fn check(context: &CliContext, toolyard: &Toolyard) -> Vec<Finding> {
    let serve = &context.serve;
    if *serve == ServeSettings::default() {
        return Vec::new();
    }
    let variable = |name: &str| std::env::var(name).ok();
    let errors = [
        serve.token(variable).err().map(|error| (error, "`toolyard serve --http` fails until this is fixed")),
        serve
            .session_keys(variable)
            .err()
            .map(|error| (error, "`toolyard serve --http` fails until this is fixed")),
        serve.profiles().err().map(|error| (error, "the name is part of a URL: /mcp/NAME")),
    ];
    let mut findings: Vec<Finding> = errors
        .into_iter()
        .flatten()
        .map(|(error, hint)| Finding::new(Severity::Problem, "serve", error.to_string()).hint(hint))
        .collect();
    let snapshot = toolyard.hub().snapshot();
    for (name, settings) in &serve.profiles {
        let missing = |server: &&String| !server.contains('*') && !snapshot.has_source(server);
        for server in settings.servers.iter().filter(missing) {
            let detail = format!("[serve.profiles.{name}] source `{server}` does not exist");
            findings.push(
                Finding::new(Severity::Problem, "serve", detail).hint("list sources: toolyard tools list"),
            );
        }
        let Ok(profile) = serve.profile(name) else { continue };
        let (state, offered) = match HubService::new(toolyard.shared_hub(), profile).tool_count() {
            0 => (Severity::Note, "no tools".to_owned()),
            1 => (Severity::Ok, "1 tool".to_owned()),
            number => (Severity::Ok, format!("{number} tools")),
        };
        findings.push(Finding::new(state, "serve", format!("profile {name} offers {offered}")));
    }
    findings
}
