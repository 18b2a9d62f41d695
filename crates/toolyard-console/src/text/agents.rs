//! Texts of the pages of agents.

use toolyard_core::AgentOrigin;

texts! { AgentsText by name {
    title: "Agents", "智能体";
    lead: "An agent plans, calls tools, verifies the results and answers. Its name is also its model name in the OpenAI API.", "智能体会制定计划、调用工具、校验结果并作答。其名称也是 OpenAI 兼容接口中的模型名。";
    add: "Add an agent", "添加智能体";
    agent: "Agent", "智能体";
    model: "Model", "模型";
    default_model: "default model", "默认模型";
    tools: "Tools", "工具";
    all_tools: "all tools", "全部工具";
    origin: "Defined in", "定义于";
    origin_settings: "settings file", "设置文件";
    origin_store: "store", "存储";
    origin_built_in: "built in", "内置";
    read_only: "This agent is defined in the settings file or built in, so it is changed there and not here.", "该智能体定义于设置文件或为内置，无法在此修改。";
    not_permitted: "You are signed in with the access token. To change agents, sign in with toolyard open.", "您以访问令牌登录。如需修改智能体，请用 toolyard open 登录。";
    saved: "The agent {} is saved. New runs use it at once.", "智能体 {} 已保存，新的运行将立即采用。";
    removed: "The agent {} is removed.", "智能体 {} 已删除。";
    name_help: "ASCII letters, digits, - and _", "ASCII 字母、数字、- 和 _";
    description_help: "Its purpose, in a sentence or two.", "用一两句话说明其用途。";
    instructions: "Instructions", "指令";
    instructions_help: "Added to the system prompt.", "将追加到系统提示词。";
    tools_help: "One name or pattern per line, such as read_* or *@excel. Empty: all tools.", "每行一个名称或模式，如 read_* 或 *@excel。留空表示全部工具。";
    model_help: "A name in [models] of the settings. Empty: the default model.", "设置中 [models] 下的名称。留空表示默认模型。";
    language: "Language of the system prompt", "系统提示词语言";
    english: "English", "英文";
    chinese: "Chinese", "中文";
    judge: "The model also judges each result", "由模型再评审每个结果";
    tool_calling: "May call tools", "可以调用工具";
    limits: "Limits of one run", "单次运行上限";
    limit_steps: "Steps", "步骤数";
    limit_tool_calls: "Tool calls", "工具调用次数";
    limit_tokens: "Tokens", "Token 数";
    limit_cost: "Cost", "费用";
    limit_time: "Time, such as 10m", "时间，如 10m";
    limit_help: "Empty: the default.", "留空表示默认值。";
    invalid_number: "{} must be a number.", "{} 必须是数字。";
    remove_heading: "Remove this agent", "删除该智能体";
    remove_help: "Runs under way go on.", "进行中的运行不受影响。";
    config: "Configuration", "配置";
} }

impl AgentsText {
    /// The name of where an agent is defined.
    pub(crate) fn origin_name(&self, origin: AgentOrigin) -> &'static str {
        match origin {
            AgentOrigin::Settings => self.origin_settings,
            AgentOrigin::Store => self.origin_store,
            AgentOrigin::BuiltIn => self.origin_built_in,
        }
    }
}
