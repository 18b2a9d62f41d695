//! Tools and tasks: real ones from a folder, or made up.

use std::{collections::BTreeSet, error::Error, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

/// Tools in the order in which they are added to catalogues of growing size, and tasks that need only the first ones.
pub(crate) struct TaskSet {
    pub(crate) name: String,
    pub(crate) tools: Vec<CatalogueTool>,
    pub(crate) tasks: Vec<Task>,
}

#[derive(Debug, Clone)]
pub(crate) struct CatalogueTool {
    pub(crate) server: String,
    pub(crate) definition: Value,
}

/// A request, its steps in words, and the tools it needs, by server and name.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) text: String,
    pub(crate) steps: Vec<String>,
    pub(crate) needed_tools: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct ToolLine {
    id: String,
    name: String,
    description: String,
    server: String,
    params: Vec<ParamLine>,
}

#[derive(Deserialize)]
struct ParamLine {
    name: String,
    description: String,
}

#[derive(Deserialize)]
struct QueryLine {
    text: String,
    relevant: Vec<String>,
    #[serde(default)]
    steps: String,
}

/// Tools of the smallest catalogue. Only tasks whose servers fit into it are measured, so that every size has the same tasks.
const MIN_CATALOGUE_TOOLS: usize = 25;

/// The set of a folder: first the servers of the tasks that fit into the smallest catalogue, then all others.
pub(crate) fn read_folder(folder: &Path) -> Result<TaskSet, Box<dyn Error>> {
    let read = |file: &str| -> Result<String, Box<dyn Error>> {
        let path = folder.join(file);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()).into())
    };
    let tools: Vec<ToolLine> = parse_lines(&read("tools.jsonl")?)?;
    let queries: Vec<QueryLine> = parse_lines(&read("queries.jsonl")?)?;
    let server_of = |id: &String| tools.iter().find(|tool| tool.id == *id).map(|tool| tool.server.clone());
    let tool_count = |server: &str| tools.iter().filter(|tool| tool.server == server).count();
    let mut by_size: Vec<(usize, BTreeSet<String>, &QueryLine)> = queries
        .iter()
        .map(|query| {
            let servers: BTreeSet<String> = query.relevant.iter().filter_map(server_of).collect();
            (servers.iter().map(|server| tool_count(server)).sum(), servers, query)
        })
        .collect();
    by_size.sort_by_key(|(size, servers, query)| (*size, servers.clone(), query.text.clone()));
    let (mut first_servers, mut used, mut tasks) = (Vec::new(), 0, Vec::new());
    for (_, servers, query) in by_size {
        let new: Vec<String> = servers.into_iter().filter(|server| !first_servers.contains(server)).collect();
        let more: usize = new.iter().map(|server| tool_count(server)).sum();
        if used + more > MIN_CATALOGUE_TOOLS {
            continue;
        }
        used += more;
        first_servers.extend(new);
        tasks.push(task(query, &tools));
    }
    let server_position = |tool: &ToolLine| {
        first_servers.iter().position(|server| *server == tool.server).unwrap_or(usize::MAX)
    };
    let mut ordered: Vec<&ToolLine> = tools.iter().collect();
    ordered.sort_by_key(|tool| server_position(tool));
    Ok(TaskSet { name: "LiveMCPBench".to_owned(), tools: ordered.into_iter().map(set_tool).collect(), tasks })
}

fn parse_lines<T: for<'a> Deserialize<'a>>(text: &str) -> Result<Vec<T>, serde_json::Error> {
    text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str).collect()
}

fn task(query: &QueryLine, tools: &[ToolLine]) -> Task {
    let steps = query.steps.lines().map(|line| line.trim_start_matches(|c: char| !c.is_alphabetic()).trim());
    let needed_tools = query.relevant.iter().filter_map(|id| tools.iter().find(|tool| tool.id == *id));
    Task {
        text: query.text.clone(),
        steps: steps.filter(|step| !step.is_empty()).map(str::to_owned).collect(),
        needed_tools: needed_tools.map(|tool| (tool.server.clone(), tool.name.clone())).collect(),
    }
}

fn set_tool(line: &ToolLine) -> CatalogueTool {
    let properties: serde_json::Map<String, Value> = line
        .params
        .iter()
        .map(|param| (param.name.clone(), json!({"type": "string", "description": param.description})))
        .collect();
    let required: Vec<&str> = line.params.iter().take(1).map(|param| param.name.as_str()).collect();
    let definition = json!({
        "name": line.name,
        "description": line.description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
    });
    CatalogueTool { server: line.server.clone(), definition }
}

/// Made-up servers whose tools do one thing each to one kind of thing.
pub(crate) fn generate() -> TaskSet {
    const VERBS: [(&str, &str); 5] = [
        ("list", "List all {}s, newest first, page by page."),
        ("get", "Get one {} by its identifier with all its fields."),
        ("create", "Create a new {} from a title, a text and labels."),
        ("update", "Change fields of an existing {}; fields that are left out stay."),
        ("delete", "Delete a {} for good; this cannot be undone."),
    ];
    const NOUNS: [&str; 20] = [
        "invoice",
        "ticket",
        "contact",
        "meeting",
        "photo",
        "playlist",
        "recipe",
        "flight",
        "parcel",
        "contract",
        "branch",
        "server",
        "backup",
        "survey",
        "campaign",
        "course",
        "patient",
        "vehicle",
        "warehouse",
        "ledger",
    ];
    const SYSTEMS: [&str; 5] = ["sales", "support", "home", "office", "lab"];
    let tool = |system: &str, noun: &str, (verb, text): (&str, &str)| {
        let name = format!("{verb}_{system}_{noun}");
        let description = format!("{} Works on the {system} system.", text.replace("{}", noun));
        let field =
            |prefix: &str| json!({"type": "string", "description": format!("{prefix} of the {noun}")});
        let definition = json!({"name": name, "description": description, "inputSchema": {"type": "object",
            "properties": {"id": field("The identifier"), "title": field("The title"), "text": field("The text"),
                "labels": {"type": "array", "items": {"type": "string"}, "description": "Words to find it by"},
                "limit": {"type": "integer", "description": "How many at most"}},
            "required": ["id"]}});
        CatalogueTool { server: format!("{system}-{noun}"), definition }
    };
    let system_nouns = SYSTEMS.iter().flat_map(|system| NOUNS.iter().map(move |noun| (*system, *noun)));
    let tools: Vec<CatalogueTool> =
        system_nouns.flat_map(|(system, noun)| VERBS.map(|verb| tool(system, noun, verb))).collect();
    let tasks = NOUNS.iter().take(MIN_CATALOGUE_TOOLS / VERBS.len()).map(|noun| Task {
        text: format!("Find the {noun} about the new office in the sales system and change its title."),
        steps: vec![format!("list the {noun}s of sales"), format!("update the {noun} of sales")],
        needed_tools: ["list", "update"]
            .map(|verb| (format!("sales-{noun}"), format!("{verb}_sales_{noun}")))
            .to_vec(),
    });
    TaskSet { name: "a made-up set".to_owned(), tasks: tasks.collect(), tools }
}
