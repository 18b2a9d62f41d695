//! Texts of the pages of tools.

use toolyard_core::SourceKind;

texts! { ToolsText by name {
    title: "Tools", "工具";
    lead: "Every tool of every source behind this gateway.", "此网关汇集的所有来源的全部工具。";
    search: "Search", "搜索";
    search_label: "What should the tool do?", "您需要什么样的工具？";
    search_placeholder: "For example: read a spreadsheet", "例如：读取电子表格";
    source_filter: "Source", "来源";
    all_sources: "All sources", "全部来源";
    results_for: "Best matches for “{}”", "与“{}”最匹配的工具";
    clear: "Clear search", "清除搜索";
    tool: "Tool", "工具";
    effect: "Effect", "影响";
    calls: "Calls", "调用次数";
    success: "Success", "成功率";
    effect_read_only: "read-only", "只读";
    effect_writes: "writes", "会修改数据";
    effect_idempotent: "idempotent", "会修改数据，可重复";
    effect_destructive: "destructive", "可能破坏数据";
    effect_unverified: "unverified", "影响未经确认";
    open_world: "open world", "访问外部系统";
    denied: "denied", "已禁用";
    no_tools: "There are no tools yet.", "还没有工具。";
    no_tools_hint: "Add a server, or import the servers of your editors.", "请添加服务器，或从编辑器导入服务器。";
    nothing_found: "No tool matches.", "没有匹配的工具。";
    about: "About this tool", "工具说明";
    no_description: "This tool has no description.", "该工具没有描述。";
    kind: "Kind", "类型";
    call_as: "Called as", "调用名";
    not_callable: "no callable name", "无法直接按名称调用";
    capabilities: "Capabilities", "能力";
    statistics: "Statistics", "统计";
    never_called: "This tool has not been called yet.", "该工具尚未被调用过。";
    failures: "Failures", "失败次数";
    median: "Median", "中位耗时";
    p95: "95th percentile", "95 分位耗时";
    last_used: "Last used", "最近使用";
    input_schema: "Input schema", "输入模式";
    output_schema: "Output schema", "输出模式";
    try_heading: "Try it", "试用";
    try_warning: "This calls the real tool. It is not declared read-only, so it may change something.", "这会真正调用该工具。它未声明为只读，可能会修改数据。";
    no_arguments: "This tool takes no arguments.", "该工具不需要参数。";
    raw_arguments: "Arguments as a JSON object", "参数（JSON 对象）";
    json_help: "JSON", "JSON";
    call: "Call the tool", "调用工具";
    not_set: "not set", "未设置";
    result: "Result", "结果";
    result_done: "Answered in {}", "已返回，用时 {}";
    result_error: "The tool reported a failure after {}", "工具报告失败，用时 {}";
    structured: "Structured result", "结构化结果";
    truncated: "The result was truncated. The tool read_result returns the rest with this reference: {}", "结果已被截断。可用工具 read_result 以此引用读取其余部分：{}";
    attempts: "Attempts", "尝试次数";
    check_fields: "Some values are not accepted; nothing was called.", "部分取值不正确，未执行调用。";
    error_missing: "A value is required.", "此项必填。";
    error_number: "This is not a number.", "这不是数字。";
    error_integer: "This is not a whole number.", "这不是整数。";
    error_choice: "This is not one of the choices.", "该值不在可选范围内。";
    error_json: "This is not valid JSON.", "这不是有效的 JSON。";
    kind_native: "native", "内置";
    kind_skill: "skill", "技能";
    kind_mcp: "MCP server", "MCP 服务器";
} }

impl ToolsText {
    /// The effect of a tool; in English, in the word that the command line prints.
    pub(crate) fn effect_name(&self, effect: &str) -> String {
        self.named("effect_", &effect.replace('-', "_")).unwrap_or(effect).to_owned()
    }

    /// The name of the kind of a source.
    pub(crate) fn kind_name(&self, kind: &SourceKind) -> &'static str {
        match kind {
            SourceKind::Native => self.kind_native,
            SourceKind::Skill => self.kind_skill,
            SourceKind::Mcp => self.kind_mcp,
        }
    }
}
