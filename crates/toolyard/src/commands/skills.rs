//! `toolyard skills`: which there are, what they may do, and whether their programs may run.

use serde_json::json;
use toolyard_core::{Servers as _, ToolCallRequest};
use toolyard_hub::{Budget, CallOptions};
use toolyard_tools::skill::{LoadedSkills, Skill, SkillStatus, TrustBook, TrustState, scan};

use crate::{
    cli::SkillsCommand,
    commands::{kept, open, trust::agreed},
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
};

/// Lists, shows, trusts.
pub(crate) async fn run(
    command: SkillsCommand,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        SkillsCommand::List => {
            list(open(workplace).await?.skills(), output);
            Ok(())
        }
        SkillsCommand::Show { name } => show(&name, workplace, output).await,
        SkillsCommand::Trust { name, yes } => trust(&name, yes, workplace, output).await,
        SkillsCommand::Untrust { name } => untrust(&name, workplace, output).await,
    }
}

fn list(loaded: &LoadedSkills, output: &Output) {
    if output.wants_json() {
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
            harmless(&skill.name),
            format!("{:?}", skill.scope).to_lowercase(),
            trust_word(skill.trust).to_owned(),
            harmless(&skill.tools.join(", ")),
            harmless(&skill.description),
        ]
    };
    if loaded.skills.is_empty() {
        output.talk("no skills found; put folders with a SKILL.md into .agents/skills");
    } else {
        let rows: Vec<_> = loaded.skills.iter().map(row).collect();
        output.table(["NAME", "SCOPE", "PROGRAMS", "TOOLS", "DESCRIPTION"], &rows);
    }
    for skill in &loaded.skills {
        for problem in &skill.problems {
            output.talk(&harmless(&format!("{}: {problem}", skill.name)));
        }
    }
    for rejected in &loaded.rejected {
        output.talk(&harmless(&format!("not used: {}: {}", rejected.path.display(), rejected.reason)));
    }
    for shadowed in &loaded.shadowed {
        output.talk(&harmless(&format!(
            "not used: {} ({}): {} has the same name",
            shadowed.name,
            shadowed.path.display(),
            shadowed.by.display()
        )));
    }
}

/// Whether programs may run, in a word.
pub(crate) fn trust_word(trust: TrustState) -> &'static str {
    match trust {
        TrustState::ByNature => "own",
        TrustState::Trusted => "trusted",
        TrustState::Untrusted => "not trusted",
        TrustState::Changed => "changed",
    }
}

async fn show(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let yard = open(workplace).await?;
    let Some(skill) = yard.skills().skills.iter().find(|skill| skill.name == name) else {
        return Err(unknown(name));
    };
    let request = ToolCallRequest::new(name, json!({})).from_source(format!("skill:{name}"));
    let options = CallOptions::default().with_budget(Budget::Whole);
    let instructions = match skill.tools.iter().any(|tool| tool == name) {
        true => yard.hub().execute(&request, &options).await.ok().map(|answer| answer.to_text()),
        false => None,
    };
    if output.wants_json() {
        output.json(&json!({"skill": skill, "instructions": instructions}));
        return Ok(());
    }
    output.line(&format!("{}   programs: {}", harmless(&skill.name), trust_word(skill.trust)));
    output.line(&format!("  {}", harmless(&skill.description)));
    output.line(&format!("  Folder: {}", skill.path.display()));
    output.line(&format!("  Tools: {}", harmless(&skill.tools.join(", "))));
    for problem in &skill.problems {
        output.line(&harmless(&format!("  Problem: {problem}")));
    }
    if let Some(instructions) = instructions {
        output.line("");
        output.foreign(&instructions);
    }
    Ok(())
}

async fn trust(name: &str, yes: bool, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let skill = find(name, workplace)?;
    let store = kept(workplace)?;
    let decisions =
        store.trusted(TrustBook::KIND).await.map_err(|error| Failure::new(Code::Failed, error))?;
    match TrustBook::new(decisions).state(&skill)? {
        TrustState::ByNature => {
            output.talk(&format!("{name} is in your own folder: its programs may run already"));
            return Ok(());
        }
        TrustState::Trusted => {
            output.talk(&format!("{name} is trusted already"));
            return Ok(());
        }
        TrustState::Untrusted | TrustState::Changed => {}
    }
    // What is trusted is what was there before the question; a change in between is not.
    let decision = TrustBook::decision_for(&skill, jiff::Timestamp::now().as_millisecond())?;
    let about = format!("{} in {}", skill.name, skill.path.display());
    let question = "Its programs will run with your rights when its tools are listed or called.";
    if !yes && !agreed(name, &about, question, output)? {
        return Err(Failure::new(Code::Refused, format!("{name} was not trusted")));
    }
    store.put_trust(&decision).await.map_err(|error| Failure::new(Code::Failed, error))?;
    output.talk(&format!("trusted {name} as it is now; a change must be trusted again"));
    Ok(())
}

async fn untrust(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let skill = find(name, workplace)?;
    let subject = TrustBook::subject(&skill)?;
    let removed = kept(workplace)?.remove_trust(TrustBook::KIND, subject).await;
    let removed = removed.map_err(|error| Failure::new(Code::Failed, error))?;
    output.talk(&if removed {
        format!("{name} is no longer trusted")
    } else {
        format!("{name} was not trusted")
    });
    Ok(())
}

fn find(name: &str, workplace: &Workplace) -> Result<Skill, Failure> {
    let found = scan(&workplace.surroundings.skill_folders);
    found.skills.into_iter().find(|skill| skill.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    Failure::new(Code::BadUse, format!("skill `{name}` does not exist"))
        .with_hint("list what there is: toolyard skills list")
}
