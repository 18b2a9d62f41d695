//! Asks programs what they can do: all of them within one limit, and each once per content of its skill.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use toolyard_core::{ContentHash, Descriptions};

use super::{
    description::{Description, Kept},
    program::Program,
};

/// How many programs are asked at the same time.
const CONCURRENT: usize = 8;
/// What follows a failure that is remembered.
const REMEMBERED: &str = "asked again when the skill changes";
/// What follows a failure that is not.
const NOT_REMEMBERED: &str = "asked again at the next load";

/// A program whose tools are wanted.
pub(super) struct Question {
    pub(super) program: Arc<Program>,
    /// Under which name its answer is kept; without one, it is asked every time.
    pub(super) key: Option<ContentHash>,
    /// Its place among the programs of its skill: a skill with many of them must not crowd out the others.
    pub(super) turn: usize,
}

/// The tools of a program, or what is wrong with it.
pub(super) type Answer = Result<Description, String>;

/// The answers to all questions, in their order. Whatever the programs do, this takes hardly longer than `limit`.
pub(super) async fn answers(
    questions: Vec<Question>,
    descriptions: Arc<dyn Descriptions>,
    limit: Duration,
) -> Vec<Answer> {
    let looking_up = questions.into_iter().map(|question| {
        let descriptions = Arc::clone(&descriptions);
        async move { (known(&question, &*descriptions).await, question) }
    });
    let looked_up: Vec<(Option<Answer>, Question)> =
        stream::iter(looking_up).buffered(CONCURRENT).collect().await;
    let (mut answers, mut unknown) = (Vec::new(), Vec::new());
    for (index, (answer, question)) in looked_up.into_iter().enumerate() {
        if answer.is_none() {
            unknown.push((index, question));
        }
        answers.push(answer);
    }
    unknown.sort_by_key(|(_, question)| question.turn);
    let until = Instant::now() + limit;
    let asking = unknown.into_iter().map(|(index, question)| {
        let descriptions = Arc::clone(&descriptions);
        async move { (index, asked(&question, &*descriptions, until, limit).await) }
    });
    // Not in order: one that hangs must not keep those behind it from being asked.
    let mut asking = stream::iter(asking).buffer_unordered(CONCURRENT);
    while let Some((index, answer)) = asking.next().await {
        if let Some(place) = answers.get_mut(index) {
            *place = Some(answer);
        }
    }
    answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err("it was not asked".to_owned()))).collect()
}

/// What the program said when its skill had the same content.
async fn known(question: &Question, descriptions: &dyn Descriptions) -> Option<Answer> {
    let kept = descriptions.description(question.key.as_ref()?).await?;
    let understood = Kept::read(&kept);
    if understood.is_none() {
        let program = question.program.path.display();
        tracing::warn!(%program, "a kept description is not understood; asking again");
    }
    understood.map(|kept| match kept {
        Kept::Tools(description) => Ok(description),
        Kept::Failed(message) => Err(format!("{message}; {REMEMBERED}")),
    })
}

/// Runs the program, and remembers what came of it.
async fn asked(
    question: &Question,
    descriptions: &dyn Descriptions,
    until: Instant,
    limit: Duration,
) -> Answer {
    let time = until.saturating_duration_since(Instant::now());
    if time.is_zero() {
        return Err(format!("other programs used up the time to describe themselves; {NOT_REMEMBERED}"));
    }
    match question.program.describe(until).await {
        Ok(description) => {
            if let (Some(key), Some(tools)) = (&question.key, description.to_kept()) {
                descriptions.keep_description(key, &tools).await;
            }
            Ok(description)
        }
        Err(failure) => {
            // A program that had to wait for others, and so had little time itself, deserves another chance.
            let lasting = failure.lasting && (!failure.too_late || time >= limit / 2);
            let Some(key) = question.key.filter(|_| lasting) else {
                return Err(format!("{}; {NOT_REMEMBERED}", failure.message));
            };
            descriptions.keep_description(&key, &Kept::failed(&failure.message)).await;
            Err(format!("{}; {REMEMBERED}", failure.message))
        }
    }
}
