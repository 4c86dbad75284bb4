"""An agent that sends as much as it can before anybody has answered it. Its first argument says when."""

import json
import sys

COUNT = 40
TEXT = "x" * (8 << 20)
when = sys.argv[1]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update():
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": TEXT}}
    send({"method": "session/update", "params": {"sessionId": "hostile", "update": chunk}})


def permission(number):
    call = {"toolCallId": f"call-{number}", "title": f"call {number}", "rawInput": {"text": TEXT}}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": "hostile", "toolCall": call, "options": options}
    send({"id": number, "method": "session/request_permission", "params": params})


prompt = None
refused = 0
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
    elif method == "session/new":
        if when == "early":
            for _ in range(COUNT):
                update()
        send({"id": message["id"], "result": {"sessionId": "hostile"}})
    elif method == "session/prompt":
        prompt = message["id"]
        for number in range(COUNT):
            permission(number)
    elif method is None and "error" in message:
        # Whoever prompts hears how often it was refused, and why at last.
        refused += 1
        told = {"sessionUpdate": "agent_thought_chunk"}
        told["content"] = {"type": "text", "text": f"{refused}: {message['error']['message']}"}
        send({"method": "session/update", "params": {"sessionId": "hostile", "update": told}})
    elif method == "session/cancel":
        send({"id": prompt, "result": {"stopReason": "cancelled"}})
