//! `toolyard chat`: messages to an agent, one after the other, with what was said before.

use std::sync::Arc;

use toolyard::Toolyard;
use toolyard_agent::{CancelToken, DEFAULT_AGENT, O200k, RunEnd, RunEvent, recent};
use toolyard_core::{ConversationQuery, Conversations as _, Message, RunId};
use toolyard_model::{ModelMessage, Role};
use toolyard_store::StoredConversation;

use super::{
    asking_setup, built,
    chat_input::{Input, Line},
    chat_words::{self, HELP, Said},
    close,
    discovery::discover,
    driving::{advise, agent, conclude, drive},
    kept, prepared, runs, runs_show,
};
use crate::{
    cli::ChatArgs,
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
    run_view::{Decider, View},
};

/// So many messages may be told to the model again.
const MOST_TOLD: usize = 200;
/// So many tokens of them, the latest first.
const TOLD_TOKENS: usize = 2_000;
/// The role under which a run stands that waited for a person when it was asked; what came of it is in its log.
const WAITS: &str = "run";

/// Talks until somebody leaves.
pub(crate) async fn run(arguments: ChatArgs, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let store = kept(workplace)?;
    let name = arguments.conversation.clone().unwrap_or_else(fresh_name);
    let conversation = store.conversation(name.as_str());
    let builder = prepared(workplace, asking_setup(workplace)).conversation(Arc::new(conversation.clone()));
    let yard = built(builder).await?;
    discover(&yard, workplace, output).await?;
    let mut chat = Chat {
        yard: &yard,
        output,
        agent: arguments.who.agent.unwrap_or_else(|| DEFAULT_AGENT.to_owned()),
        model: arguments.who.model,
        yes: arguments.yes,
        said: recalled(&conversation).await?,
        conversation,
        runs: Vec::new(),
    };
    let outcome = chat.go(&name).await;
    close(&yard, workplace).await?;
    outcome
}

/// A name that no other conversation has.
fn fresh_name() -> String {
    let now = jiff::Zoned::now().strftime("chat-%Y%m%d-%H%M%S").to_string();
    format!("{now}-{}", std::process::id())
}

async fn recalled(conversation: &StoredConversation) -> Result<Vec<Message>, Failure> {
    let query = ConversationQuery { limit: usize::MAX, ..ConversationQuery::default() };
    conversation.recall(&query).await.map_err(|error| Failure::new(Code::Failed, error))
}

/// One chat.
struct Chat<'a> {
    yard: &'a Toolyard,
    output: &'a Output,
    agent: String,
    model: Option<String>,
    yes: bool,
    conversation: StoredConversation,
    /// What was said, the oldest first.
    said: Vec<Message>,
    runs: Vec<RunId>,
}

/// How a question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Ask,
    Plan,
    DryRun,
}

impl Chat<'_> {
    async fn go(&mut self, name: &str) -> Result<(), Failure> {
        let model = self.yard.agents().model_name(&self.agent, self.model.as_deref())?;
        advise(self.yard, &model, self.output);
        let before = self.said.iter().filter(|message| message.role == "user");
        let mut input = Input::new(before.map(|message| message.text.clone()))?;
        if input.is_terminal() {
            self.output
                .talk(&format!("{} thinks with {model}; /help says what else can be said", self.agent));
        }
        let mut last = Ok(());
        loop {
            let line = match input.next().await? {
                Line::Text(line) => line,
                Line::Interrupted => {
                    self.output.talk("nothing is under way; ctrl-d or /exit leaves");
                    continue;
                }
                Line::End => break,
            };
            if chat_words::read(&line) == Said::Exit {
                break;
            }
            last = self.take(&line).await;
            if let Err(failure) = &last {
                failure.tell(self.output);
            }
        }
        if input.is_terminal() {
            self.output.talk(&format!("go on with it: toolyard chat --conversation {name}"));
            return Ok(());
        }
        // Whoever pipes messages in wants to know how the last one went.
        last.map_err(Failure::silent)
    }

    async fn take(&mut self, line: &str) -> Result<(), Failure> {
        let output = self.output;
        match chat_words::read(line) {
            Said::Nothing | Said::Exit => {}
            Said::Message(text) => return self.ask(text, Manner::Ask).await,
            Said::Plan(text) => return self.ask(text, Manner::Plan).await,
            Said::DryRun(text) => return self.ask(text, Manner::DryRun).await,
            Said::Help => output.talk(HELP),
            Said::Clear => {
                self.said.clear();
                output.talk("what was said is not told to the model any more");
            }
            Said::History => {
                for Message { role, text } in &self.said {
                    output.talk(&harmless(&format!("{role}: {text}")));
                }
            }
            Said::Tools(words) => self.tools(words),
            Said::Runs => self.runs.iter().for_each(|run| output.talk(&format!("run {run}"))),
            Said::Show(run) => return self.show(run).await,
            Said::Model(name) => return self.choose_model(name),
            Said::Agent(name) => return self.choose_agent(name),
            Said::Unknown(word) => {
                let message = format!("/{word} means nothing here");
                return Err(Failure::new(Code::BadUse, message).with_hint("/help says what does"));
            }
            Said::Incomplete(word) => {
                return Err(Failure::new(Code::BadUse, format!("/{word} needs a question behind it")));
            }
        }
        Ok(())
    }

    async fn ask(&mut self, text: &str, manner: Manner) -> Result<(), Failure> {
        self.settle().await;
        let agents = self.yard.agents();
        let (agent, model) = agent(self.yard, &self.agent, self.model.as_deref())?;
        let mut ask = agents.question(&self.agent, text);
        ask.history = told_again(&self.said);
        ask.who = "chat".to_owned();
        ask.plan_only = manner == Manner::Plan;
        ask.dry_run = manner == Manner::DryRun;
        let stop = CancelToken::default();
        let view = View::new(self.output, &model, Decider::new(self.yes, &stop));
        let run = agent.begin(ask).await?;
        view.begin(&agents.log().events(&run, 0).await?);
        self.runs.push(run.clone());
        let end = drive(&agent, &run, &view, &stop).await?;
        if manner == Manner::Ask {
            self.remember("user", text).await?;
            match &end {
                RunEnd::Answered { answer, .. } => self.remember("assistant", answer).await?,
                RunEnd::Suspended { .. } => self.remember(WAITS, run.as_str()).await?,
                _ => {}
            }
        }
        conclude(&run, &end, view, self.output)
    }

    /// A run that waited and was answered meanwhile, by whichever door, is part of the conversation.
    async fn settle(&mut self) {
        let log = self.yard.agents().log();
        for message in self.said.iter_mut().filter(|message| message.role == WAITS) {
            let events = log.events(&RunId::from(message.text.as_str()), 0).await.unwrap_or_default();
            let last = events.last().and_then(|last| last.event.read::<RunEvent>().ok());
            if let Some(RunEvent::Ended { end: RunEnd::Answered { answer, .. } }) = last {
                self.output
                    .talk(&harmless(&format!("run {} was answered meanwhile: {answer}", message.text)));
                *message = Message { role: "assistant".to_owned(), text: answer };
            }
        }
    }

    async fn remember(&mut self, role: &str, text: &str) -> Result<(), Failure> {
        let message = Message { role: role.to_owned(), text: text.to_owned() };
        self.conversation.push(&message).await?;
        self.said.push(message);
        Ok(())
    }

    fn tools(&self, words: Option<&str>) {
        let hub = self.yard.hub();
        let found = match words {
            Some(words) => hub.search(words, 10).into_iter().map(|found| found.tool).collect(),
            None => hub.specs(),
        };
        for tool in found {
            let description = tool.spec().description.lines().next().unwrap_or_default().to_owned();
            self.output.talk(&harmless(&format!("{}   {}   {description}", tool.name, tool.source_id())));
        }
    }

    async fn show(&self, run: Option<&str>) -> Result<(), Failure> {
        let Some(store) = self.yard.store() else { return Ok(()) };
        let run = match (run, self.runs.last()) {
            (Some(run), _) => runs::find(run, store).await?,
            (None, Some(run)) => run.clone(),
            (None, None) => return Err(Failure::new(Code::BadUse, "nothing was asked yet")),
        };
        runs_show::show(&run, store, self.output).await
    }

    fn choose_model(&mut self, name: Option<&str>) -> Result<(), Failure> {
        let name = name.or(self.model.as_deref());
        let meant = self.yard.agents().model_name(&self.agent, name)?;
        self.output.talk(&format!("{} thinks with {meant}", self.agent));
        self.model = name.map(str::to_owned);
        Ok(())
    }

    fn choose_agent(&mut self, name: Option<&str>) -> Result<(), Failure> {
        let agents = self.yard.agents();
        match name {
            Some(name) => {
                agents.config(name)?;
                self.agent = name.to_owned();
                self.output.talk(&format!("you talk with {name} now"));
            }
            None => {
                self.output.talk(&format!(
                    "you talk with {}; there are {}",
                    self.agent,
                    agents.names().join(", ")
                ));
            }
        }
        Ok(())
    }
}

/// What of a conversation a model is told again: the latest, within limits.
fn told_again(said: &[Message]) -> Vec<ModelMessage> {
    let message = |message: &Message| {
        let role = if message.role == "assistant" { Role::Assistant } else { Role::User };
        ModelMessage::new(role, message.text.as_str())
    };
    let latest = said.len().saturating_sub(MOST_TOLD);
    let told = said.iter().skip(latest).filter(|message| message.role != WAITS);
    recent(&told.map(message).collect::<Vec<_>>(), TOLD_TOKENS, &O200k)
}
