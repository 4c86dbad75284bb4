"""A worker of a bus that says much about a session that it has not named yet."""

import json
import sys

COUNT = 160
TEXT = "x" * 1_000_000


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "session/new":
        for number in range(COUNT):
            params = {"sessionId": "early", "update": {"n": number, "text": TEXT}}
            send({"method": "session/update", "params": params})
        send({"id": message["id"], "error": {"code": -1, "message": "no session"}})
    elif "id" in message and "method" in message:
        send({"id": message["id"], "result": {}})
