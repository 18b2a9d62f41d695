//! Texts of the pages of servers.

texts! { ServersText {
    title: "Servers", "服务器";
    lead: "MCP servers behind this gateway. They start on the first call of one of their tools.", "此网关连接的 MCP 服务器。首次调用其工具时才会启动。";
    none: "No MCP server is configured.", "尚未配置 MCP 服务器。";
    none_hint: "Import the servers of your editors, or add one with toolyard servers add.", "可从编辑器导入服务器，或使用 toolyard servers add 添加。";
    get_started: "Get started", "开始使用";
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
    log: "Log", "日志";
    log_empty: "The server has written nothing yet.", "该服务器尚无日志输出。";
    restart: "Restart", "重启";
    restarted: "The server is restarting.", "服务器正在重启。";
    sign_in: "Sign in", "登录";
    sign_in_needed: "The server requires a sign-in. Its tokens are used for all callers without tokens of their own.", "该服务器需要登录。没有自己令牌的调用方将共用此登录。";
    sign_in_ready: "The page to sign in is ready. Its link is valid for ten minutes.", "登录页面已就绪，链接十分钟内有效。";
    open_sign_in: "Open the page", "打开登录页面";
    state_disabled: "Disabled", "已禁用";
    state_configured: "Not started yet", "尚未启动";
    state_stopped: "Stopped", "已停止";
    state_starting: "Starting", "启动中";
    state_ready: "Ready", "就绪";
    state_degraded: "Degraded", "降级";
    state_stopping: "Stopping", "停止中";
    state_down: "Down", "不可用";
    commands: "Manage servers in a terminal", "在终端中管理服务器";
    approve_hint: "Changed tool definitions are approved with toolyard servers approve.", "工具定义变更后需用 toolyard servers approve 批准。";
} }

impl ServersText {
    /// The name of a server's state.
    pub(crate) fn state(&self, state: &str) -> String {
        let known = match state {
            "disabled" => self.state_disabled,
            "configured" => self.state_configured,
            "stopped" => self.state_stopped,
            "starting" => self.state_starting,
            "ready" => self.state_ready,
            "degraded" => self.state_degraded,
            "stopping" => self.state_stopping,
            "down" => self.state_down,
            other => other,
        };
        known.to_owned()
    }
}
