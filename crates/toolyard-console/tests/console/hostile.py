"""Servers, agents and a model that put payloads into everything that they control, for the part `security`."""

from __future__ import annotations

import json
from itertools import cycle, islice
from pathlib import Path

from console.gateway import ConsoleGateway, fixture_server
from console.payloads import data_texts, payloads

#: Strings of the data folder in one tool, and tools in one server.
TEXTS_PER_TOOL = 48
TOOLS_PER_SERVER = 100
STEPS_PER_RUN = 13


def tool(name: str, texts: list[str], *, is_read_only: bool) -> dict:
    """A tool with payloads in every field that a page may show."""
    next_text = cycle(texts)
    properties = {}
    for number, text in enumerate(texts[:8]):
        schema = {"type": "string", "title": next(next_text), "description": next(next_text), "examples": [next(next_text)]}
        # The first one accepts any text, for the plans of the model.
        choices = {"enum": list(islice(next_text, 3))} if number else {}
        properties[text] = {**schema, **choices, "default": choices.get("enum", [text])[0]}
    properties["list"] = {"type": "array", "items": {"type": "string", "description": next(next_text)}, "description": next(next_text)}
    properties["nested"] = {"type": "object", "title": next(next_text), "properties": {next(next_text): {"type": "string", "description": next(next_text)}}}
    properties["flag"] = {"type": "boolean", "description": next(next_text)}
    properties["number"] = {"type": "integer", "title": next(next_text), "description": next(next_text)}
    return {
        "name": name,
        "title": next(next_text),
        "description": next(next_text),
        "inputSchema": {"type": "object", "title": next(next_text), "description": next(next_text), "properties": properties},
        "outputSchema": {"type": "object", "properties": {next(next_text): {"type": "string", "description": next(next_text)}}},
        "annotations": {"title": next(next_text), "readOnlyHint": is_read_only},
    }


def payload_server(texts: list[str], prefix: str, *, is_read_only: bool) -> dict:
    """A tool for each payload, which is its title, a property, its result or its error."""
    # Definitions with hidden characters are rejected; one of them shows what is said about it.
    visible = [text for text in texts if text.isprintable()]
    tools = [tool(f"{prefix}_{number}", [text, *visible[number + 1 :], *visible[:number]][:12], is_read_only=is_read_only) for number, text in enumerate(texts)]
    # Names that pages may show, if Toolyard accepts them.
    tools += [tool(text, texts[:12], is_read_only=is_read_only) for text in texts[:8]]
    for each in tools:
        del each["outputSchema"]
    results, errors = {}, {}
    for number, text in enumerate(texts):
        name = f"{prefix}_{number}"
        if number % 3 == 2:
            errors[name] = text
        else:
            content = [{"type": "text", "text": text}, {"type": "resource_link", "uri": text, "name": text}]
            results[name] = {"content": content, "structuredContent": {text: text}, "isError": number % 3 == 1}
    return {
        "server_info": {"name": texts[0], "title": texts[11], "version": texts[18]},
        "instructions": "\n".join(texts),
        "tools": tools,
        "prompts": [{"name": f"prompt_{number}", "title": text, "description": text, "arguments": [{"name": "word", "description": text}]} for number, text in enumerate(texts)],
        "prompt_text": texts[0],
        "results": results,
        "errors": errors,
        "stderr": texts,
    }


def data_servers(texts: list[str]) -> list[dict]:
    """Servers whose tools contain all texts of the data folder."""
    chunks = [texts[start : start + TEXTS_PER_TOOL] for start in range(0, len(texts), TEXTS_PER_TOOL)]
    tools = [data_tool(f"data_{number}", chunk) for number, chunk in enumerate(chunks)]
    return [{"tools": tools[start : start + TOOLS_PER_SERVER]} for start in range(0, len(tools), TOOLS_PER_SERVER)]


def data_tool(name: str, texts: list[str]) -> dict:
    """Each text once: title, description, and four in each property."""
    title, description, *others = [*texts, "", ""][: max(len(texts), 2)]
    properties: dict[str, dict] = {}
    for start in range(0, len(others), 4):
        key, explanation, default, choice = [*others[start : start + 4], "", "", ""][:4]
        properties[key or f"p{start}"] = {"type": "string", "description": explanation, "default": default, "enum": [default, choice]}
    return {"name": name, "title": title, "description": description, "inputSchema": {"type": "object", "properties": properties}}


def plans(texts: list[str]) -> tuple[list[str], list[dict]]:
    """Questions with payloads, and the rules of the model: payloads as ids, descriptions, arguments and answers."""
    questions, rules = [], []
    for start in range(0, len(texts), STEPS_PER_RUN):
        chunk = texts[start : start + STEPS_PER_RUN]
        # The first half runs, the second half of the runs waits for approvals.
        prefix = "run" if (start // STEPS_PER_RUN) % 2 == 0 else "wait"
        question = f"Hostile question {start:03}: {' '.join(chunk[:3])}"
        steps = [
            {"id": text if number % 2 else f"step{number}", "tool_type": f"{prefix}_{start + number}", "description": text, "arguments": {text: text}}
            for number, text in enumerate(chunk)
        ]
        marker = f"Hostile question {start:03}"
        rules.append({"anywhere": marker, "nth": 1, "text": json.dumps({"steps": steps}), "reasoning": " ".join(chunk)})
        rules.append({"anywhere": marker, "text": "\n\n".join(chunk), "reasoning": " ".join(chunk)})
        questions.append(question)
    return questions, rules


class HostileGateway(ConsoleGateway):
    """A gateway all of whose servers and whose model are hostile."""

    def __init__(self, *, is_quick: bool) -> None:
        self.texts = payloads()
        data = [text for text in data_texts() if text.strip()]
        self.data_count = len(data)
        self._data_servers = data_servers(data[:: 40 if is_quick else 1])
        self.questions, rules = plans(self.texts)
        # The chat page asks these.
        self.chat_questions = [f"Hostile chat {number}: {text}" for number, text in enumerate(self.texts[:: 20 if is_quick else 8])]
        for number, question in enumerate(self.chat_questions):
            steps = [{"id": question[-20:], "tool_type": "run_0", "description": question, "arguments": {}}]
            rules.append({"anywhere": f"Hostile chat {number}:", "nth": 1, "text": json.dumps({"steps": steps})})
            rules.append({"anywhere": f"Hostile chat {number}:", "text": question.partition(": ")[2]})
        super().__init__(rules, self._settings)

    def _settings(self, home: Path) -> str:
        texts = self.texts
        parts = [
            fixture_server(home, "running", payload_server(texts, "run", is_read_only=True), extra="trusted = true"),
            fixture_server(home, "waiting", payload_server(texts, "wait", is_read_only=False)),
        ]
        parts += [fixture_server(home, f"data{number}", server) for number, server in enumerate(self._data_servers)]
        agents = [
            f"[agents.hostile{number}]\ndescription = {json.dumps(text)}\ninstructions = {json.dumps(text)}\n"
            for number, text in enumerate(texts)
            if text.isprintable()
        ]
        return "\n".join(parts + agents)
