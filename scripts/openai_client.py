"""Asks an agent of a running gateway with the Python package `openai`: streamed, at once, and with errors.

usage: openai_client.py BASE_URL TOKEN
"""

import sys
import openai

base_url, token = sys.argv[1:]
client = openai.OpenAI(base_url=base_url, api_key=token)
question = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2^10, and what time is it in Tokyo?"}]


def check(name, is_ok, detail):
    print(f"{name:<28} {'ok' if is_ok else 'FAILED'}   {detail}")
    if not is_ok:
        sys.exit(1)


names = [model.id for model in client.models.list()]
check("models", names == ["assistant"], ", ".join(names))

stream = client.chat.completions.create(
    model="assistant", messages=question, stream=True, stream_options={"include_usage": True}
)
pieces, thoughts, usage, reasons = [], [], None, []
for chunk in stream:
    usage = chunk.usage or usage
    for choice in chunk.choices:
        if choice.delta.content:
            pieces.append(choice.delta.content)
        thoughts.append(getattr(choice.delta, "reasoning_content", None) or "")
        reasons += [choice.finish_reason] if choice.finish_reason else []
text, reasoning = "".join(pieces), "".join(thoughts)
check("streamed answer", text == "It is 1024, and the time in Tokyo was looked up." and len(pieces) > 3, f"{len(pieces)} pieces: {text}")
check("tools were used", "power: done" in reasoning and "clock: done" in reasoning, reasoning.replace("\n", "; "))
check("finish reason and usage", reasons == ["stop"] and usage.total_tokens > 0, f"{reasons}, {usage.total_tokens} tokens")

whole = client.chat.completions.create(model="assistant", messages=question)
check("whole answer", whole.choices[0].message.content == text, whole.choices[0].message.content)

try:
    client.chat.completions.create(model="nobody", messages=question)
    check("unknown agent", False, "no error")
except openai.NotFoundError as error:
    check("unknown agent", error.code == "model_not_found", error.code)

try:
    client.chat.completions.create(model="assistant", messages=[{"role": "user", "content": "fail, please"}])
    check("a run that fails", False, "no error")
except openai.UnprocessableEntityError as error:
    check("a run that fails", error.code == "run_failed", "reported once, not retried by the client")
