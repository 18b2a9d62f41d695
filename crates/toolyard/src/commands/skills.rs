//! `toolyard skills`: lists, shows and trusts skills.

use serde_json::json;
use toolyard_core::{AuditedDecision, ContentHash, Servers as _, ToolCallRequest};
use toolyard_hub::{Budget, CallOptions};
use toolyard_tools::skill::{LoadedSkills, Skill, SkillStatus, TrustState, TrustedSkills, scan};

use crate::{
    cli::SkillsCommand,
    commands::setup::open,
    config::{CliContext, record_decision},
    error::CliError,
    terminal::{Output, confirm},
};

pub(super) async fn run(
    command: SkillsCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        SkillsCommand::List => {
            list(open(context).await?.skills(), output);
            Ok(())
        }
        SkillsCommand::Show { name } => show(&name, context, output).await,
        SkillsCommand::Trust { name, yes } => trust(&name, yes, context, output).await,
        SkillsCommand::Untrust { name } => untrust(&name, context, output).await,
    }
}

fn list(loaded: &LoadedSkills, output: &Output) {
    if output.is_json() {
        let rejected: Vec<_> = loaded
            .rejected
            .iter()
            .map(|rejected| json!({"path": rejected.path, "reason": rejected.reason.to_string()}))
            .collect();
        let shadowed: Vec<_> = loaded
            .shadowed
            .iter()
            .map(|shadowed| json!({"name": shadowed.name, "path": shadowed.path, "used": shadowed.by}))
            .collect();
        output.json(&json!({"skills": loaded.skills, "rejected": rejected, "shadowed": shadowed}));
        return;
    }
    let row = |skill: &SkillStatus| {
        [
            skill.name.clone(),
            format!("{:?}", skill.scope).to_lowercase(),
            trust_label(skill.trust).to_owned(),
            skill.tools.join(", "),
            skill.description.clone(),
        ]
    };
    if loaded.skills.is_empty() {
        output.message("No skills found. Put folders with a SKILL.md into .agents/skills");
    } else {
        let rows: Vec<_> = loaded.skills.iter().map(row).collect();
        output.table(["NAME", "SCOPE", "PROGRAMS", "TOOLS", "DESCRIPTION"], rows);
    }
    for skill in &loaded.skills {
        for problem in &skill.problems {
            output.message(&format!("{}: {problem}", skill.name));
        }
    }
    for rejected in &loaded.rejected {
        output.message(&format!("ignored: {}: {}", rejected.path.display(), rejected.reason));
    }
    for shadowed in &loaded.shadowed {
        output.message(&format!(
            "ignored: {} ({}): {} has the same name",
            shadowed.name,
            shadowed.path.display(),
            shadowed.by.display()
        ));
    }
}

fn trust_label(trust: TrustState) -> &'static str {
    match trust {
        TrustState::Implicit => "own",
        TrustState::Trusted => "trusted",
        TrustState::Untrusted => "not trusted",
        TrustState::Changed => "changed",
    }
}

async fn show(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let toolyard = open(context).await?;
    let Some(skill) = toolyard.skills().skills.iter().find(|skill| skill.name == name) else {
        return Err(unknown_skill(name));
    };
    let request = ToolCallRequest::new(name, json!({})).with_source(format!("skill:{name}"));
    let options = CallOptions::default().with_budget(Budget::Unlimited);
    let instructions = match skill.tools.iter().any(|tool| tool == name) {
        true => toolyard.hub().execute(&request, &options).await.ok().map(|result| result.to_text()),
        false => None,
    };
    if output.is_json() {
        output.json(&json!({"skill": skill, "instructions": instructions}));
        return Ok(());
    }
    output.line(&format!("{}   programs: {}", skill.name, trust_label(skill.trust)));
    output.line(&format!("  {}", skill.description));
    output.line(&format!("  Folder: {}", skill.path.display()));
    output.line(&format!("  Tools: {}", skill.tools.join(", ")));
    for problem in &skill.problems {
        output.line(&format!("  Problem: {problem}"));
    }
    if let Some(instructions) = instructions {
        output.line("");
        output.untrusted_text(&instructions);
    }
    Ok(())
}

async fn trust(name: &str, yes: bool, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let skill = find(name, context)?;
    let store = context.require_operator_store()?;
    let decisions = store.trust_decisions(TrustedSkills::KIND).await?;
    match TrustedSkills::new(decisions).state(&skill)? {
        TrustState::Implicit => {
            output.message(&format!("{name} is in your own skill folder and needs no trust"));
            return Ok(());
        }
        TrustState::Trusted => {
            output.message(&format!("{name} is already trusted"));
            return Ok(());
        }
        TrustState::Untrusted | TrustState::Changed => {}
    }
    // Hashed before the prompt, so that a change made meanwhile is not trusted.
    let decision = TrustedSkills::decision_for(&skill, jiff::Timestamp::now().as_millisecond())?;
    if !yes {
        output.message(&format!("{} in {}", skill.name, skill.path.display()));
        output.message("Its programs will run with your permissions when its tools are listed or called.");
        let not_trusted = format!("{name} was not trusted");
        if !confirm("Trust it with its current content?", &not_trusted)? {
            return Err(CliError::denied(not_trusted));
        }
    }
    record_decision(AuditedDecision::TrustSkill, &decision.subject, decision.content, context).await?;
    store.put_trust(&decision).await?;
    output.message(&format!("trusted {name}; a changed skill must be trusted again"));
    Ok(())
}

async fn untrust(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let skill = find(name, context)?;
    let subject = TrustedSkills::subject(&skill)?;
    let store = context.require_operator_store()?;
    record_decision(AuditedDecision::RevokeSkillTrust, subject, ContentHash::of(""), context).await?;
    let removed = store.remove_trust(TrustedSkills::KIND, subject).await?;
    output.message(&if removed {
        format!("{name} is no longer trusted")
    } else {
        format!("{name} was not trusted")
    });
    Ok(())
}

fn find(name: &str, context: &CliContext) -> Result<Skill, CliError> {
    let found = scan(&context.skill_environment.skill_folders);
    found.skills.into_iter().find(|skill| skill.name == name).ok_or_else(|| unknown_skill(name))
}

fn unknown_skill(name: &str) -> CliError {
    CliError::usage(format!("skill `{name}` does not exist")).with_hint("list skills: toolyard skills list")
}
