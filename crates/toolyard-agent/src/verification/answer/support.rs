//! Whether a step did what a claim of the answer says.

use std::collections::BTreeSet;

use super::{
    action::{is_draft, is_unnamed, says_so, supports},
    claims::{Claim, ClaimedVerb, Voice},
    denial::has_open_state,
    fact::StepFact,
    families::{Family, Kind},
    grounding::Grounds,
    replaced::unfinished_steps,
    requests::{Certainty, Wish},
    text::{has_chinese, is_chinese, words},
};

/// What a run offers as support for the claims of its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Support<'a> {
    pub(super) wishes: &'a [Wish],
    pub(super) steps: &'a [StepFact],
    pub(super) grounds: &'a Grounds,
    /// Whether the request asks for a change, or a step may have made one.
    pub(super) is_change: bool,
}

/// The support for claims that were compared with each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClaimSupport<'a> {
    run: Support<'a>,
    /// Whether only one claim says more than that something was written.
    is_only_claim: bool,
    /// Whether there is a step for each verb that no family has, besides the steps that other claims are about.
    may_paraphrase: bool,
    /// Whether the claims that say more than that something was written take all steps.
    lacks_free_step: bool,
    /// Whether a step started something that its result calls queued or running.
    is_open: bool,
    /// Whether no step failed or was left out.
    is_clean: bool,
    /// Whether the answer has only one claim.
    is_only_part: bool,
    /// Whether the answer claims more kinds of changes than tools made.
    exceeds_tools: bool,
    /// Whether the answer claims more changes than there are steps that made one.
    exceeds_steps: bool,
}

impl<'a> Support<'a> {
    pub(super) fn for_claims(self, claims: &[Claim]) -> ClaimSupport<'a> {
        let mut unknown: Vec<&str> = Vec::new();
        let mut known: Vec<&Family> = Vec::new();
        // What tells of a result is about no step.
        let claims: Vec<&Claim> = claims.iter().filter(|claim| !self.grounds.paraphrases(claim)).collect();
        for claim in &claims {
            match &claim.verb {
                ClaimedVerb::Unknown(stem)
                    if stem.is_empty()
                        || self.grounds.names_stem(stem)
                        || unknown.contains(&stem.as_str()) => {}
                ClaimedVerb::Unknown(stem) => unknown.push(stem),
                ClaimedVerb::Known(family, _) if known.contains(family) => {}
                ClaimedVerb::Known(family, _) => known.push(family),
            }
        }
        let effective: Vec<&StepFact> = self.steps.iter().filter(|step| step.is_effective()).collect();
        let parts: BTreeSet<&str> =
            claims.iter().filter(|claim| !claim.says_only_done()).map(|claim| claim.part.as_str()).collect();
        let tools: BTreeSet<&str> = effective.iter().map(|step| step.tool.as_str()).collect();
        let is_free = |step: &&&StepFact| !known.iter().any(|family| says_so(step, family));
        let is_specific = |claim: &&&Claim| match &claim.verb {
            ClaimedVerb::Known(family, _) => matches!(family.kind, Kind::Specific | Kind::Strict),
            ClaimedVerb::Unknown(_) => true,
        };
        let specific =
            known.iter().filter(|family| matches!(family.kind, Kind::Specific | Kind::Strict)).count();
        ClaimSupport {
            run: self,
            is_only_claim: claims.iter().filter(is_specific).count() == 1,
            may_paraphrase: unknown.len() <= effective.iter().filter(is_free).count(),
            lacks_free_step: specific > 0 && specific >= effective.len(),
            is_open: effective.iter().any(|step| has_open_state(&step.result)),
            is_clean: unfinished_steps(self.steps).is_empty(),
            is_only_part: parts.len() == 1,
            exceeds_tools: parts.len().max(known.len() + unknown.len()) > tools.len(),
            exceeds_steps: parts.len() > effective.len(),
        }
    }
}

impl ClaimSupport<'_> {
    /// Whether a step did what a claim says. What the request asks for is checked with the request. In a run that only
    /// reads, an answer may describe changes that others made.
    pub(super) fn supports(&self, claim: &Claim) -> bool {
        let Support { wishes, steps, grounds, is_change } = self.run;
        if self.is_open && claim.ends_process() && !grounds.quotes(&claim.part) {
            return false;
        }
        let has_change = || steps.iter().any(StepFact::is_effective);
        let is_about_run = || grounds.is_about_run(claim);
        let is_done = match &claim.verb {
            ClaimedVerb::Known(family, _) => {
                let is_said = steps.iter().any(|step| step.is_effective() && says_so(step, family));
                let is_clear = is_said && family.kind != Kind::Generic;
                let is_supported = is_said || steps.iter().any(|step| supports(step, family));
                // The only specific claim may put the only wish into other words.
                let is_paraphrase = || {
                    family.kind == Kind::Specific
                        && self.is_only_claim
                        && wishes.len() == 1
                        && !self.exceeds_steps
                        && !steps.iter().any(is_draft)
                };
                let is_wished = || wishes.iter().any(|wish| wish.family == Some(family)) || is_paraphrase();
                // With a step for each claim, a claim may put its step into other words.
                let is_other_word = || {
                    (family.kind != Kind::Strict || steps.iter().any(is_unnamed) || self.is_known(claim))
                        && !self.exceeds_tools
                        && !claim.is_addition
                        && !steps.iter().any(is_draft)
                        && is_about_run()
                };
                let needs_topic =
                    !is_clear || claim.is_addition || self.exceeds_steps || claim.voice == Voice::Own;
                let needs_topic = needs_topic && family.kind != Kind::Any;
                // What was stored besides all that other claims are about needs a step of its own.
                let is_surplus = family.kind == Kind::Generic
                    && self.lacks_free_step
                    && !is_wished()
                    && (!has_chinese(&claim.text) || !grounds.is_about_changes(claim));
                (is_supported || (has_change() && (is_wished() || is_other_word())))
                    && !is_surplus
                    && (!needs_topic || is_about_run())
            }
            // A verb that is not known may put a change into other words if the clause is about it.
            ClaimedVerb::Unknown(stem) if stem.is_empty() => {
                let may_paraphrase = self.is_only_part || !self.exceeds_tools;
                // 甲报了两次 may tell what was read.
                let may_paraphrase = may_paraphrase || (self.is_clean && !claim.text.contains('已'));
                let is_paraphrase = may_paraphrase && !claim.is_addition && claim.voice != Voice::Own;
                // More than the steps did must be about what they changed, not only about what was requested.
                let is_surplus = self.exceeds_steps && claim.text.contains('已');
                let is_about = || if is_surplus { grounds.is_about_changes(claim) } else { is_about_run() };
                has_change() && (is_paraphrase || is_about())
            }
            ClaimedVerb::Unknown(stem) => {
                let may_paraphrase = self.may_paraphrase && !claim.is_addition;
                has_change() && (grounds.names_stem(stem) || (may_paraphrase && is_about_run()))
            }
        };
        let is_named = || match &claim.verb {
            // "Disk use dropped from 8 to 3 GB"
            ClaimedVerb::Known(family, _) => family.kind != Kind::Strict || claim.tells_from_to(),
            ClaimedVerb::Unknown(stem) => !self.exceeds_steps || grounds.names_stem(stem),
        };
        let is_told = claim.is_weak
            && has_change()
            && (!self.exceeds_tools || (is_about_run() && (is_named() || !self.exceeds_steps)));
        let is_quoted = || claim.voice == Voice::Other && grounds.quotes(&claim.part);
        is_done
            || is_told
            || is_quoted()
            || self.is_reason(claim)
            || self.is_cause(claim)
            || ((!is_change || self.asks_for_text()) && self.is_described(claim))
    }

    /// Whether all steps ended, and all that a claim names is in the run.
    fn is_known(&self, claim: &Claim) -> bool {
        self.is_clean && self.run.grounds.knows_all(claim)
    }

    /// Whether nothing was changed, and the request perhaps asks for a text only.
    fn asks_for_text(&self) -> bool {
        let may_be_text = |wish: &Wish| wish.certainty == Certainty::Possible && wish.family.is_some();
        self.run.wishes.iter().all(may_be_text) && !self.run.steps.iter().any(|step| step.changes)
    }

    /// Whether a claim may tell what was read.
    fn is_described(&self, claim: &Claim) -> bool {
        let grounds = self.run.grounds;
        let is_wished = |family: &Family| {
            self.run.wishes.iter().any(|wish| wish.family.is_some_and(|other| other == family))
        };
        match (&claim.verb, claim.voice) {
            (_, Voice::Own) => false,
            (ClaimedVerb::Known(family, _), _) if is_wished(family) => false,
            _ if grounds.paraphrases(claim) => true,
            // 已分派给运维处理 says more than 已处理.
            (ClaimedVerb::Known(_, verb), _) if claim.says_only_done() => {
                let says_more = has_chinese(verb) && !claim.text.contains(&format!("已{verb}"));
                !says_more || self.reads_done_words(claim)
            }
            (ClaimedVerb::Known(family, stem), Voice::Perfect) => {
                grounds.names_family(family) && grounds.reads_stem(stem)
            }
            (ClaimedVerb::Known(family, stem), Voice::Other) => {
                self.run.steps.is_empty()
                    || (self.run.wishes.is_empty()
                        && family.kind != Kind::Strict
                        && !claim.text.contains('已'))
                    || claim.is_apposition()
                    || claim.tells_past()
                    || grounds.names_family(family)
                    || grounds.reads_stem(stem)
            }
            // 账单已还清: what is done must have been read.
            (ClaimedVerb::Unknown(stem), _) if stem.is_empty() => self.reads_done_words(claim),
            (ClaimedVerb::Unknown(stem), Voice::Perfect) => grounds.reads_stem(stem),
            (ClaimedVerb::Unknown(_), Voice::Other) => true,
        }
    }

    fn reads_done_words(&self, claim: &Claim) -> bool {
        let is_read = |words: [String; 2]| words.iter().any(|word| self.run.grounds.contains(word));
        done_words(&claim.text).is_none_or(is_read)
    }

    /// "The file was locked at first" tells why a step failed.
    fn is_cause(&self, claim: &Claim) -> bool {
        let is_attempt = |word: &String| matches!(word.as_str(), "attempt" | "attempts" | "try");
        let tells_attempt = words(&claim.text).iter().any(is_attempt) && claim.voice != Voice::Own;
        if tells_attempt && self.run.steps.iter().any(|step| !step.is_done()) {
            return true;
        }
        match (&claim.verb, claim.voice) {
            (ClaimedVerb::Known(family, _), Voice::Other) => {
                !self.run.wishes.iter().any(|wish| wish.family == Some(family))
                    && self.run.grounds.failed_with(family)
            }
            _ => false,
        }
    }

    /// "It is already closed" tells why nothing was to be done.
    fn is_reason(&self, claim: &Claim) -> bool {
        let is_untouched = !self.run.steps.iter().any(|step| step.changes);
        claim.voice != Voice::Own && claim.text.contains("already") && is_untouched
    }
}

/// The two characters after 已 or 已经.
fn done_words(clause: &str) -> Option<[String; 2]> {
    let (_, rest) = clause.split_once('已')?;
    let mut letters = rest.strip_prefix('经').unwrap_or(rest).chars().filter(|letter| is_chinese(*letter));
    Some([letters.next()?.to_string(), letters.next()?.to_string()])
}
