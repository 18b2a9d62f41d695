"""Asks an agent of a running gateway with the Python package `openai`: chat completions and responses, streamed, at once, and with errors.

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

try:
    client.chat.completions.create(model="assistant", messages=[{"role": "user", "content": "this is too long"}])
    check("a context overflow", False, "no error")
except openai.BadRequestError as error:
    check("a context overflow", error.code == "context_length_exceeded" and error.type == "invalid_request_error", error.code)

asked = {"model": "assistant", "instructions": question[0]["content"], "input": question[1]["content"]}
events = list(client.responses.create(**asked, stream=True, metadata={"test": "yes"}))
kinds = [event.type for event in events if event.type != "response.output_text.delta"]
expected = ["created", "in_progress", "output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done", "completed"]
check("events of a response", kinds == [f"response.{name}" for name in expected], ", ".join(kinds))
deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
check("streamed response", "".join(deltas) == text and len(deltas) > 3, f"{len(deltas)} pieces: {''.join(deltas)}")
check("sequence numbers", [event.sequence_number for event in events] == list(range(len(events))), f"{len(events)} events")
last = events[-1].response
check("streamed response, whole", last.output_text == text and last.usage.total_tokens > 0 and last.metadata == {"test": "yes"}, last.id)

with client.responses.stream(model="assistant", input="greet me") as stream:
    response = stream.get_final_response()
check("stream helper", response.output_text == "Hello.", response.output_text)

response = client.responses.create(model="assistant", input="busy at first, please")
check("a model that was busy", response.output_text == "It was busy.", "the client repeated the request")

response = client.responses.create(model="assistant", instructions="Be brief.", input=[{"role": "user", "content": asked["input"]}])
check("whole response", response.output_text == text and response.status == "completed", response.output_text)

try:
    client.responses.create(**asked, tools=[{"type": "web_search"}])
    check("tools of the client", False, "no error")
except openai.BadRequestError as error:
    check("tools of the client", error.code == "unsupported_parameter" and error.param == "tools", error.code)
