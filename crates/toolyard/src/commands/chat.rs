//! `toolyard chat`: messages to an agent, one after the other, with what was said before.

use toolyard::Toolyard;
use toolyard_agent::{CancelToken, DEFAULT_AGENT};
use toolyard_core::{Message, RunId};

use super::{
    asking_setup, built,
    chat_input::{Input, Line},
    chat_memory::Memory,
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

/// Talks until somebody leaves.
pub(crate) async fn run(arguments: ChatArgs, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let store = kept(workplace)?;
    let name = arguments.conversation.clone().unwrap_or_else(fresh_name);
    let memory = Memory::open(store, &name).await?;
    let builder =
        prepared(workplace, asking_setup(workplace, arguments.yes)).conversation(memory.for_tools());
    let yard = built(builder).await?;
    discover(&yard, workplace, output).await?;
    let mut chat = Chat {
        yard: &yard,
        output,
        agent: arguments.who.agent.unwrap_or_else(|| DEFAULT_AGENT.to_owned()),
        model: arguments.who.model,
        yes: arguments.yes,
        memory,
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

/// One chat.
struct Chat<'a> {
    yard: &'a Toolyard,
    output: &'a Output,
    agent: String,
    model: Option<String>,
    yes: bool,
    memory: Memory,
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
        let before = self.memory.messages().filter(|message| message.role == "user");
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
                self.memory.clear();
                output.talk("what was said is not told to the model any more");
            }
            Said::History => {
                for Message { role, text } in self.memory.messages() {
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
        self.settle().await?;
        let agents = self.yard.agents();
        let (agent, model) = agent(self.yard, &self.agent, self.model.as_deref())?;
        let mut ask = agents.question(&self.agent, text);
        ask.history = self.memory.told_again();
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
            self.memory.remember(text, &run, &end).await?;
        }
        conclude(&run, &end, view, self.output)
    }

    /// A run that waited and was answered meanwhile, by whichever door, is part of the conversation.
    async fn settle(&mut self) -> Result<(), Failure> {
        for (run, answer) in self.memory.settle(self.yard.agents().log().as_ref()).await? {
            self.output.talk(&harmless(&format!("run {run} was answered meanwhile: {answer}")));
        }
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
