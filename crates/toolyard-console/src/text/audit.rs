//! Texts of the audit log.

texts! { AuditText by name {
    title: "Audit log", "审计日志";
    lead: "Every tool call and every decision, in a chain of hashes. Arguments and results are recorded as hashes only.", "以哈希链记录每次工具调用和每项决定。参数与结果仅以哈希形式保存。";
    verify: "Verify the chain", "校验哈希链";
    intact: "The audit log is intact: {} records.", "审计日志完整，共 {} 条记录。";
    head: "Hash of the last record", "最后一条记录的哈希";
    head_help: "Kept elsewhere, it later proves that no record before it was changed.", "将其另行保存，日后可证明之前的记录未被改动。";
    broken: "The audit log is broken at record {}.", "审计日志在第 {} 条记录处损坏。";
    lost: "Calls without a record: {}", "缺失记录的调用数：{}";
    not_offered: "This gateway keeps no audit log.", "此网关没有审计日志。";
    not_offered_hint: "It needs a store.", "需要配置存储。";
    none: "No call was recorded yet.", "尚无记录。";
    number: "No.", "序号";
    caller: "Caller", "调用方";
    tool: "Tool or decision", "工具或决定";
    outcome: "Outcome", "结果";
    hashes: "Hashes", "哈希";
    arguments_hash: "Arguments", "参数";
    result_hash: "Result", "结果";
    record_hash: "Record", "记录";
    call_id: "Call", "调用";
    outcome_ok: "ok", "成功";
    outcome_failed: "failed", "失败";
    outcome_timeout: "timeout", "超时";
    outcome_refused: "refused", "被拒绝";
    outcome_quarantined: "quarantined", "已隔离";
    outcome_invalid_arguments: "invalid arguments", "参数无效";
    outcome_unknown_tool: "unknown tool", "未知工具";
    outcome_unknown_source: "unknown source", "未知来源";
    outcome_unknown_capability: "unknown capability", "未知能力";
    outcome_unavailable: "unavailable", "不可用";
    outcome_audit_unavailable: "audit log unavailable", "审计日志不可用";
    outcome_circuit_open: "circuit open", "已熔断";
    outcome_response_lost: "response lost", "响应丢失";
    outcome_outcome_unknown: "outcome unknown", "结果未知";
    outcome_internal: "internal error", "内部错误";
} }

impl AuditText {
    /// The name of an outcome; `None` for records with a text of their own.
    pub(crate) fn known_outcome(&self, outcome: &str) -> Option<&'static str> {
        self.named("outcome_", outcome)
    }

    /// The name of an outcome; the word of the API if it is not known.
    pub(crate) fn outcome_name(&self, outcome: &str) -> String {
        self.known_outcome(outcome).unwrap_or(outcome).to_owned()
    }
}
