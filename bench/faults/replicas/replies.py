"""Replies of the scripted model: a question `record NAME STEPS DELAY` becomes a chain of that many calls of `record`."""

import json
import re

from scripted_model import text_of

QUESTION = re.compile(r"record ([\w-]+) (\d+) (\d+)")


def reply(request):
    found = QUESTION.search(text_of(request["messages"][-1]))
    if not found:
        return None
    name, steps, delay = found[1], int(found[2]), int(found[3])
    if "response_format" not in request:
        return f"{name} is recorded."
    plan = [
        {
            "id": f"s{number}",
            "tool_type": "record",
            "arguments": {"entry": f"{name}.s{number}", "delay_ms": delay},
            "dependencies": [f"s{number - 1}"] if number else [],
        }
        for number in range(steps)
    ]
    return json.dumps({"steps": plan})
