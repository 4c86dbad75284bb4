"""A worker for a bus: JSON-RPC lines on stdin and stdout. Each method is a way to behave."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

lock = threading.Lock()
asked = {}
next_id = 0
new_sessions = 0


def say(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def raw(text):
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def ask(method, params):
    global next_id
    answered = threading.Event()
    with lock:
        next_id += 1
        mine = next_id
        asked[mine] = [answered, None]
    say({"id": mine, "method": method, "params": params})
    answered.wait()
    return asked.pop(mine)[1]


def burst(params):
    text = "x" * params.get("size", 300)
    session = params["sessionId"]
    for first in range(0, params["n"], 1000):
        lines = []
        for number in range(first, min(first + 1000, params["n"])):
            update = {"sessionId": session, "update": {"n": number, "text": text}}
            note = {"jsonrpc": "2.0", "method": "session/update", "params": update}
            lines.append(json.dumps(note) + "\n")
        raw("".join(lines))


def stream(params):
    note = {"method": "session/update", "params": {**params, "text": "x" * 8192}}
    end = time.monotonic() + params["ms"] / 1000
    while time.monotonic() < end:
        say(note)
        time.sleep(0.001)


def grandchild():
    script = "import signal,time;signal.signal(signal.SIGTERM,signal.SIG_IGN);time.sleep(120)"
    child = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    return child.pid


def answer(message):
    global new_sessions
    method, params = message["method"], message.get("params") or {}
    if method == "die":
        if "signal" in params:
            os.kill(os.getpid(), params["signal"])
        os._exit(params.get("code", 1))
    if method == "hang":
        return None
    if method == "stuck":
        signal.pause()
    result = {"pid": os.getpid(), "said": params}
    if method == "sleep":
        time.sleep(params["ms"] / 1000)
    elif method == "burst":
        burst(params)
    elif method == "stream":
        stream(params)
    elif method == "update":
        say({"method": "session/update", "params": {**params, "update": {"n": 0}}})
    elif method == "update-outside":
        say({"method": "session/update", "sessionId": params["sessionId"], "params": {}})
    elif method == "ask":
        result["answer"] = ask("session/request_permission", params)
    elif method == "junk":
        raw("Loading...\n\x1b[31mwarning\x1b[0m\n{half\n[1,2]\n\n")
    elif method == "long":
        raw('{"jsonrpc":"2.0","id":%s,"result":"%s"}\n' % (message["id"], "x" * params["bytes"]))
        return None
    elif method == "deaf":
        time.sleep(params["ms"] / 1000)
    elif method == "grandchild":
        result["grandchild"] = grandchild()
    elif method == "session/new":
        new_sessions += 1
        result["sessionId"] = "new-%d-%d" % (os.getpid(), new_sessions)
    elif method == "environment":
        result["value"] = os.environ.get(params["name"])
        result["cwd"] = os.getcwd()
    return result


def serve(message):
    result = answer(message)
    if result is not None:
        say({"id": message["id"], "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        waiting = asked.get(message["id"])
        if waiting:
            waiting[1] = message.get("result", message.get("error"))
            waiting[0].set()
    elif "id" in message:
        # What takes long must not keep the others; what makes deaf must.
        if message["method"] in ("sleep", "ask", "stream"):
            threading.Thread(target=serve, args=(message,), daemon=True).start()
        else:
            serve(message)
os._exit(0)
