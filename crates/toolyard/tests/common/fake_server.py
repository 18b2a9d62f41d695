"""A small legacy MCP server. It reads its tools from a file, so that they can change between two starts."""
import hashlib, json, os, sys, time

settings = sys.argv[1]
with open(settings + ".pids", "a") as pids:
    pids.write(f"{os.getpid()}\n")
print("the fake server is here", file=sys.stderr, flush=True)
with open(settings) as file:
    state = json.load(file)


def respond(request, **fields):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **fields}), flush=True)


def call(name, arguments):
    global state
    with open(settings + ".calls", "a") as calls:
        calls.write(f"{name}\n")
    if name == "reload":
        with open(settings) as file:
            state = json.load(file)
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
    if name == "sleep_long":
        with open(settings + ".called", "w") as called:
            called.write("yes\n")
        time.sleep(300)
    if name == "wait":
        with open(settings + ".called", "w") as called:
            called.write("yes\n")
        time.sleep(arguments["seconds"])
    if name == "tell":
        # Everything it knows, also where an operator looks for errors.
        known = " ".join([*sys.argv[2:], *(os.environ.get(variable, "") for variable in arguments["variables"])])
        print(known, file=sys.stderr, flush=True)
        if arguments.get("crash"):
            raise ValueError(known)
        content = [{"type": "text", "text": f"I know {known}."}]
        return {"content": content, "structuredContent": {known: [known]}, "isError": arguments.get("fail", False)}
    if name == "read_file":
        with open(arguments["path"]) as file:
            text = file.read()
        print(text, file=sys.stderr, flush=True)
        return {"content": [{"type": "text", "text": text}]}
    if name == "fingerprint":
        # Proves that it has a value without repeating it.
        value = os.environ.get(arguments["variable"], "")
        return {"content": [{"type": "text", "text": "sha256 " + hashlib.sha256(value.encode()).hexdigest()}]}
    if name == "copy":
        text = "x" * arguments["characters"]
        return {"content": [{"type": "text", "text": text}], "structuredContent": {"result": text}}
    if name == "picture":
        return {"content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]}
    if name == "write_much":
        return {"content": [{"type": "text", "text": "word " * arguments["words"]}]}
    if arguments.get("name") == "nobody":
        return {"content": [{"type": "text", "text": "there is nobody"}], "isError": True}
    return {"content": [{"type": "text", "text": f"Hello, {arguments.get('name')}!"}], "x-extra": 1.50}


for line in sys.stdin:
    request = json.loads(line)
    method, parameters = request.get("method"), request.get("params") or {}
    if "id" not in request:
        continue
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        server_info = {"name": "fake", "version": "1"}
        version = "2025-06-18"
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server_info}
        if "instructions" in state:
            result["instructions"] = state["instructions"]
        respond(request, result=result)
    elif method == "tools/list":
        respond(request, result={"tools": state["tools"]})
    elif method == "tools/call":
        try:
            respond(request, result=call(parameters["name"], parameters.get("arguments") or {}))
        except ValueError as error:
            respond(request, error={"code": -32000, "message": str(error), "data": {"error": str(error)}})
    else:
        respond(request, error={"code": -32601, "message": "Method not found"})
