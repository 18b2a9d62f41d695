//! Texts of the page of approvals.

texts! { ApprovalsText by name {
    title: "Approvals", "审批";
    lead: "Tool calls of agents that wait for a decision. Read the arguments before you allow a call. New and changed tool definitions are listed by server.", "等待决定的智能体工具调用。批准前请先阅读参数。新的和有变化的工具定义按服务器列出。";
    servers: "Tool definitions that await approval", "等待批准的工具定义";
    tools_waiting: "to approve: {}", "{} 个待批准";
    none: "No call waits for approval.", "没有等待审批的调用。";
    none_hint: "Calls of tools that change something appear here while an agent works.", "智能体工作时，会修改数据的工具调用将出现在这里。";
    not_offered: "This gateway offers no agents.", "此网关未提供智能体。";
    not_offered_hint: "Configure a model: toolyard models add.", "请先配置模型：toolyard models add。";
    needed: "Approval needed", "需要审批";
    read_first: "The agent wants to make this call. Read all of it before you allow it.", "智能体希望执行以下调用。批准前请阅读全部内容。";
    allow: "Allow once", "允许一次";
    allow_run: "Allow for this run", "本次运行均允许";
    deny: "Deny", "拒绝";
    allowed: "The call is allowed; the run continues.", "已允许该调用，运行继续。";
    allowed_run: "All calls of this tool in this run are allowed.", "已允许本次运行中对该工具的所有调用。";
    denied: "The call is denied.", "已拒绝该调用。";
    caller_note: "You are signed in with the access token, so you may deny calls. To allow them, sign in with toolyard open.", "您以访问令牌登录，只能拒绝调用。如需批准，请用 toolyard open 登录。";
    run: "Run", "运行";
    step: "Step", "步骤";
    too_long: "The arguments are too long to be shown here, so the call can only be denied. Read and approve it with toolyard runs approve.", "参数过长，无法在此完整显示，因此只能拒绝。请用 toolyard runs approve 查看并批准。";
    more: "{} more calls wait. They appear once these are decided.", "另有 {} 个调用等待审批，处理完以上调用后显示。";
    unknown_tool: "Tool call", "工具调用";
    effect: "Effect", "影响";
    arguments: "Arguments", "参数";
    notes: "Notes", "备注";
    effect_read_only: "read-only", "只读";
    effect_writes: "writes", "会修改数据";
    effect_idempotent: "writes, repeatable", "会修改数据，可重复";
    effect_destructive: "destructive", "可能破坏数据";
    effect_unverified_effects: "unverified effects", "影响未经确认";
    open_world: "reaches external systems", "会访问外部系统";
} }

/// Follows the effect of a tool that passes its arguments outside, in the words of the API.
const OPEN_WORLD: &str = ", open world";

impl ApprovalsText {
    /// The effects of a tool, such as `writes, open world`. Words that are not known stay as they are.
    pub(crate) fn effects(&self, effects: &str) -> String {
        let (effect, is_open_world) = match effects.strip_suffix(OPEN_WORLD) {
            Some(effect) => (effect, true),
            None => (effects, false),
        };
        let effect = self.named("effect_", &effect.replace(['-', ' '], "_")).unwrap_or(effect);
        if is_open_world { format!("{effect} · {}", self.open_world) } else { effect.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Language;

    #[test]
    fn effects_have_words_in_both_languages() {
        let (english, chinese) = (ApprovalsText::of(Language::English), ApprovalsText::of(Language::Chinese));
        assert_eq!(english.effects("writes, open world"), "writes · reaches external systems");
        assert_eq!(chinese.effects("destructive, open world"), "可能破坏数据 · 会访问外部系统");
        assert_eq!(chinese.effects("unverified effects"), "影响未经确认");
        assert_eq!(chinese.effects("something new"), "something new");
    }
}
