"""Prints what became of each task, and the table of docs/agents.md."""

import statistics

from trial import REFUSAL, SUCCESS, WRONG, Trial


def print_trial(trial: Trial, verbose: bool) -> None:
    tokens = f"{trial.input_tokens:6} + {trial.output_tokens:4}"
    print(f"  {trial.outcome:<13}  {trial.seconds:6.1f} s  {tokens} tokens  {trial.task.name}", flush=True)
    if trial.outcome != SUCCESS:
        print(f"      {trial.problem} (exit code {trial.code})\n      said: {' '.join(trial.answer.split())[:300]}", flush=True)
    if trial.receipt_error:
        print(f"      RECEIPT: {trial.receipt_error}", flush=True)
    if verbose:
        for step in trial.steps:
            print(f"      {step[:500]}", flush=True)


def print_table(trials: dict[str, list[Trial]]) -> None:
    print("\n| model | half | language | tasks | success | wrong | refusal | false receipts | seconds (median) | tokens in + out (median) |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for model, all_of_model in trials.items():
        for half in sorted({trial.half for trial in all_of_model}):
            for language in ("en", "zh", "all"):
                group = [trial for trial in all_of_model if trial.half == half and language in (trial.task.language, "all")]
                if group:
                    print(table_row(model, half, language, group))


def table_row(model: str, half: str, language: str, group: list[Trial]) -> str:
    count = {outcome: sum(trial.outcome == outcome for trial in group) for outcome in (SUCCESS, WRONG, REFUSAL)}
    share = round(100 * count[SUCCESS] / len(group))
    seconds = statistics.median(trial.seconds for trial in group)
    tokens_in = statistics.median(trial.input_tokens for trial in group)
    tokens_out = statistics.median(trial.output_tokens for trial in group)
    cells = [model, half, language, len(group), f"{count[SUCCESS]} ({share} %)", count[WRONG], count[REFUSAL]]
    cells.append(sum(bool(trial.receipt_error) for trial in group))
    # A scripted model does not count tokens.
    cells += [f"{seconds:.0f}", "–" if model == "scripted" else f"{tokens_in:.0f} + {tokens_out:.0f}"]
    return "| " + " | ".join(map(str, cells)) + " |"
