//! Texts of failures, by the stable codes of the API and of the console.

texts! { FailureText by name {
    agent_exists: "An agent with this name exists.", "同名智能体已存在。";
    agent_not_found: "There is no agent with this name.", "没有该名称的智能体。";
    agent_read_only: "This agent is defined in the settings file and cannot be changed here.", "该智能体定义于设置文件，无法在此修改。";
    agent_unavailable: "The model of this agent is not available.", "该智能体的模型不可用。";
    approval_not_found: "This call does not wait for approval any more.", "该调用已不在等待审批。";
    approval_not_permitted: "Only the operator may allow tool calls.", "只有管理员可以批准工具调用。";
    call_denied: "The policy of the gateway denies this call.", "网关策略拒绝了此次调用。";
    change_not_permitted: "Only the operator may make this change.", "只有管理员可以进行此项更改。";
    circuit_open: "Calls to this server are paused after repeated failures.", "该服务器多次失败，已暂停调用。";
    context_length_exceeded: "The conversation is too long for the model.", "对话过长，超出模型的限制。";
    definition_changed: "The definition has changed since it was shown. Read it again.", "定义在显示之后发生了变化，请重新查看。";
    forbidden: "The gateway refused the request.", "网关拒绝了该请求。";
    input_required: "The tool needs further input, which the console cannot give.", "该工具需要更多输入，控制台无法提供。";
    internal_error: "The gateway failed to answer.", "网关处理请求时出错。";
    invalid_answer: "The console cannot read the answer of the gateway.", "控制台无法解析网关的响应。";
    invalid_arguments: "The tool does not accept these arguments.", "该工具不接受这些参数。";
    invalid_path: "The address contains characters that are not allowed.", "地址中包含不允许的字符。";
    invalid_request: "The gateway does not accept the request.", "网关不接受该请求。";
    model_not_found: "There is no agent with this name.", "没有该名称的智能体。";
    model_unavailable: "The language model cannot be reached.", "无法连接语言模型。";
    no_random_numbers: "The operating system provides no random numbers.", "系统无法生成随机数。";
    no_store: "This gateway has no store.", "此网关没有配置存储。";
    not_offered: "This gateway does not offer this.", "此网关不提供该功能。";
    operator_only: "Only the operator may do this.", "只有管理员可以执行此操作。";
    outcome_unknown: "The call was interrupted; it may or may not have taken effect.", "调用被中断，无法确定是否已生效。";
    quota_exceeded: "A quota is used up; nothing was called.", "配额已用尽，未执行任何调用。";
    request_too_large: "The form is too large.", "提交的内容过大。";
    response_lost: "The response of the server was lost.", "服务器的响应已丢失。";
    result_not_found: "This result is not stored any more.", "该结果已不再保存。";
    run_active: "The run is active.", "该运行正在进行。";
    run_finished: "The run is over.", "该运行已结束。";
    run_interrupted: "The run was interrupted.", "该运行已中断。";
    run_not_found: "There is no such run.", "该运行不存在。";
    run_not_resumable: "The run cannot be resumed.", "该运行无法继续。";
    run_waits: "The run waits for a decision.", "该运行正在等待处理。";
    server_conflicts: "Another server has this name.", "该名称已被其他服务器占用。";
    server_exists: "The server is already configured.", "该服务器已配置。";
    server_not_found: "There is no server with this name.", "没有该名称的服务器。";
    server_unreachable: "The server cannot be reached or started.", "无法连接或启动该服务器。";
    settings_not_changed: "The settings could not be changed.", "无法更改设置。";
    settings_unreadable: "Settings, or files of other clients, cannot be read.", "无法读取设置或其他客户端的文件。";
    session_lost: "The server no longer has its session with you; the next call begins a new one.", "服务器与您的会话已丢失；下一次调用将开始新的会话。";
    shutting_down: "The gateway is shutting down.", "网关正在关闭。";
    sign_in_not_offered: "The gateway has no page to sign in to this server.", "网关没有登录此服务器的页面。";
    sign_in_required: "You must sign in to the server of this tool first.", "需要先登录该工具所属的服务器。";
    source_not_found: "There is no source with this name.", "没有该名称的来源。";
    source_unavailable: "The server of this tool is not available.", "该工具所属的服务器不可用。";
    store_unavailable: "The store does not answer.", "存储没有响应。";
    tool_ambiguous: "Several sources have a tool with this name.", "多个来源提供同名工具。";
    tool_failed: "The tool failed.", "工具执行失败。";
    tool_not_approved: "The definition of this tool is not approved.", "该工具的定义尚未获得批准。";
    tool_not_found: "There is no tool with this name.", "没有该名称的工具。";
    tool_timeout: "The tool did not answer in time.", "工具未在规定时间内响应。";
    unexpected_status: "The gateway answered with an unexpected status.", "网关返回了意外的状态。";
    unknown_step_not_found: "This step does not wait for a decision any more.", "该步骤已不在等待处理。";
} }

impl FailureText {
    /// The text for a stable code; `None` if the code is not known.
    pub(crate) fn by_code(&self, code: &str) -> Option<&'static str> {
        let name = match code {
            "approvals_unavailable" => "store_unavailable",
            "route_not_found" => "not_offered",
            "server_error" => "internal_error",
            "tool_error" => "tool_failed",
            code => code,
        };
        self.named("", name).or_else(|| code.ends_with("not_offered").then_some(self.not_offered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Language;

    #[test]
    fn known_codes_are_translated() {
        let text = FailureText::of(Language::Chinese);
        for code in ["context_length_exceeded", "quota_exceeded", "result_not_found", "settings_unreadable"] {
            assert!(text.by_code(code).is_some(), "{code}");
        }
        assert_eq!(text.by_code("no_such_code"), None);
    }
}
