//! What the doctor finds on `[serve]`.

use toolyard::{Toolyard, settings::ServeSettings};
use toolyard_hub::surface::HubService;

use super::doctor::{Finding, State};
use crate::folders::Workplace;

/// Secrets that are missing, profiles that name nobody or offer nothing; nothing where nothing is set.
pub(super) fn serve(workplace: &Workplace, yard: &Toolyard) -> Vec<Finding> {
    let serve = &workplace.serve;
    if *serve == ServeSettings::default() {
        return Vec::new();
    }
    let variable = |name: &str| std::env::var(name).ok();
    let wrong = [
        serve.token(variable).err().map(|error| (error, "`toolyard serve --http` stops until then")),
        serve.session_keys(variable).err().map(|error| (error, "`toolyard serve --http` stops until then")),
        serve.profiles().err().map(|error| (error, "its name is part of an address: /mcp/NAME")),
    ];
    let mut findings: Vec<Finding> = wrong
        .into_iter()
        .flatten()
        .map(|(error, hint)| Finding::new(State::Problem, "serve", error.to_string()).hint(hint))
        .collect();
    let snapshot = yard.hub().snapshot();
    for (name, settings) in &serve.profiles {
        let missing = |server: &&String| !server.contains('*') && !snapshot.has_source(server);
        for server in settings.servers.iter().filter(missing) {
            let detail = format!("[serve.profiles.{name}] there is no source `{server}`");
            findings.push(
                Finding::new(State::Problem, "serve", detail).hint("see the ids with `toolyard tools list`"),
            );
        }
        let Ok(profile) = serve.profile(name) else { continue };
        let (state, offered) = match HubService::new(yard.shared_hub(), profile).tools() {
            0 => (State::Note, "no tools".to_owned()),
            1 => (State::Fine, "1 tool".to_owned()),
            number => (State::Fine, format!("{number} tools")),
        };
        findings.push(Finding::new(state, "serve", format!("profile {name} offers {offered}")));
    }
    findings
}
