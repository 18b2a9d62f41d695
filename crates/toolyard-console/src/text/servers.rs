//! Texts of the pages of servers.

texts! { ServersText by name {
    title: "Servers", "服务器";
    lead: "MCP servers behind this gateway. They start on the first call of one of their tools.", "此网关连接的 MCP 服务器。首次调用其工具时才会启动。";
    none: "No MCP server is configured.", "尚未配置 MCP 服务器。";
    server: "Server", "服务器";
    transport: "Transport", "传输方式";
    trust: "Trust", "信任";
    trusted: "trusted", "已信任";
    untrusted: "not trusted", "未信任";
    trust_help: "Declarations of a trusted server about the effects of its tools are believed.", "受信任服务器对其工具影响的声明会被采信。";
    tools: "Tools", "工具";
    show_tools: "Show its tools", "查看其工具";
    revision: "MCP revision", "MCP 版本";
    problem: "Problem", "问题";
    not_connected: "not connected", "未连接";
    endpoint: "Command or address", "命令或地址";
    log: "Standard error", "标准错误";
    log_empty: "The server has written nothing to standard error since this gateway started.", "自此网关启动以来，该服务器没有向标准错误写入内容。";
    connect: "Connect", "连接";
    connected: "The server is connected; its tools are read.", "服务器已连接，其工具已读取。";
    stop: "Stop", "停止";
    stopped: "The server is stopped in this gateway. The next call of one of its tools starts it again.", "服务器已在此网关中停止。下次调用其工具时会再次启动。";
    enable: "Enable", "启用";
    disable: "Disable", "禁用";
    trust_action: "Trust", "信任";
    untrust: "Stop trusting", "取消信任";
    saved: "The settings are changed. The gateway applies them within seconds.", "设置已更改，数秒内生效。";
    approved: "The definitions are approved.", "定义已批准。";
    held: "Tools that await your approval", "等待您批准的工具";
    held_count: "Tools that await approval: {}", "等待批准的工具：{}";
    held_text: "These definitions are new, or have changed since you approved them. Models read these texts. Read each definition whole before you approve it; long texts are shortened in what is new.", "这些定义是新的，或在您批准后有变化；模型会读到这些文字。批准前请阅读完整的定义；变化部分中较长的文字有省略。";
    held_changed: "changed", "定义有变化";
    held_new: "new", "新的定义";
    held_more: "{} more tools await approval whose definitions are too long for this page: toolyard servers approve.", "另有 {} 个工具等待批准，其定义太长，无法在此页显示：toolyard servers approve。";
    whole: "The whole definition", "完整的定义";
    approve: "Approve", "批准";
    approve_all: "Approve all that are shown", "批准以上全部";
    rejected: "Invalid definitions", "无效的定义";
    add: "Add a server", "添加服务器";
    add_name: "Name", "名称";
    add_command: "Program", "程序";
    add_args: "Arguments, one on each line", "参数，每行一个";
    add_url: "Or the address of an HTTP server", "或 HTTP 服务器的地址";
    add_help: "Do not enter secrets here. In a terminal: toolyard secrets set TOKEN, then toolyard servers add NAME --env 'TOKEN=${secret:TOKEN}' -- PROGRAM.", "请勿在此填写密钥。请在终端运行 toolyard secrets set TOKEN，再运行 toolyard servers add NAME --env 'TOKEN=${secret:TOKEN}' -- PROGRAM。";
    import_heading: "Import servers from your editors", "从编辑器导入服务器";
    import_text: "Toolyard found these servers in the files of your editors. Nothing is started until one of their tools is called.", "Toolyard 在您的编辑器配置中发现以下服务器。首次调用其工具前不会启动任何程序。";
    import_none: "No server was found in the files of Claude, Cursor, VS Code, Codex or Gemini.", "在 Claude、Cursor、VS Code、Codex 和 Gemini 的配置中未发现服务器。";
    import_terminal: "In a terminal, import the servers of your editors, or add one:", "可在终端中从编辑器导入服务器，或手动添加：";
    import_submit: "Import the selected servers", "导入所选服务器";
    import_select: "Select a server.", "请选择服务器。";
    import_existing: "already there", "已存在";
    import_conflicting: "another server has this name", "名称已被占用";
    import_skipped: "cannot be imported", "无法导入";
    imported: "Imported servers: {}", "已导入服务器：{}";
    sign_in: "Sign in", "登录";
    sign_in_needed: "The server requires a sign-in. Its tokens are used for all callers without tokens of their own.", "该服务器需要登录。没有自己令牌的调用方将共用此登录。";
    sign_in_ready: "The page to sign in is ready. Its link is valid for ten minutes.", "登录页面已就绪，链接十分钟内有效。";
    open_sign_in: "Open the page", "打开登录页面";
    state_disabled: "Disabled", "已禁用";
    state_configured: "Not started yet", "尚未启动";
    state_stopped: "Ready, not running", "就绪，未运行";
    state_starting: "Starting", "启动中";
    state_ready: "Running", "运行中";
    state_degraded: "Degraded", "降级";
    state_stopping: "Stopping", "停止中";
    state_down: "Down", "不可用";
} }

impl ServersText {
    /// What was done, after a form.
    pub(crate) fn done(&self, action: &str) -> Option<&'static str> {
        match action {
            "connect" => Some(self.connected),
            "stop" => Some(self.stopped),
            "approve" => Some(self.approved),
            "enable" | "disable" | "trust" | "untrust" => Some(self.saved),
            _ => None,
        }
    }

    /// The name of a server's state.
    pub(crate) fn state(&self, state: &str) -> String {
        self.named("state_", state).unwrap_or(state).to_owned()
    }
}
