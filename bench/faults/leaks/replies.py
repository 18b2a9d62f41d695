"""Replies of a scripted model that tells everything it was shown: all canaries of its prompt are in its reply, so that a leak into a prompt
(examples, shapes, history) reaches the client as bytes.

A question says what to do: `trial echo WORD` calls a tool with the word, `trial recall WORD` answers at once.
"""

import json
import re

from scripted_model import text_of

TASK = re.compile(r"trial (echo|fields|write|long|recall) (quazo[a-z]+)")
CANARY = re.compile(r"quazo[a-z]+")
TOOLS = {"echo": "h_echo", "fields": "h_fields", "write": "h_write_note", "long": "h_long_text"}


def reply(request):
    texts = [text_of(message) for message in request["messages"]]
    found = TASK.findall(texts[-1])
    shown = " ".join(sorted(set(CANARY.findall(json.dumps(request)))))
    if not found:
        return f"I was shown: {shown}."
    task, word = found[-1]
    if "response_format" not in request:
        return f"The result is {word}. I was shown: {shown}."
    if task == "recall":
        return json.dumps({"steps": [], "answer": f"I was shown: {shown}."})
    step = {"id": "s1", "tool_type": TOOLS[task], "arguments": {"text": word}, "description": f"{task} for: {shown}"}
    return json.dumps({"steps": [step]})
