#!/usr/bin/env python3
"""Counts words, characters and lines; a program skill for Toolyard.

    word_count.py --describe      prints the tool's description
    word_count.py count_words     reads {"text": "..."} on stdin, prints {"words", "characters", "lines"}
"""

import json
import re
import sys

TOOL = {
    "name": "count_words",
    "title": "Count words",
    "description": "Count the words, characters and lines of a text; "
    "Chinese, Japanese and Korean characters count as one word each",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The text to count"}},
        "required": ["text"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "words": {"type": "integer"},
            "characters": {"type": "integer"},
            "lines": {"type": "integer"},
        },
        "required": ["words", "characters", "lines"],
    },
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}

# Scripts without spaces between words: kana, Han, Hangul and their extensions.
EAST_ASIAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
WORD = re.compile(rf"[{EAST_ASIAN}]|[^\W{EAST_ASIAN}]+(?:['’.-][^\W{EAST_ASIAN}]+)*")


def count(text):
    return {"words": len(WORD.findall(text)), "characters": len(text), "lines": len(text.splitlines())}


def main():
    if sys.argv[1:] == ["--describe"]:
        return TOOL
    try:
        arguments = json.loads(sys.stdin.buffer.read())
    except ValueError as error:
        return {"error": f"the arguments are not JSON: {error}"}
    text = arguments.get("text") if isinstance(arguments, dict) else None
    if not isinstance(text, str):
        return {"error": "the argument `text` is missing or is not a text"}
    return count(text)


if __name__ == "__main__":
    json.dump(main(), sys.stdout)
    print()
