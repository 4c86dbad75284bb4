"""A registry of npm and PyPI packages and of archives on loopback, for tests of `jackfield agents install`.

Usage: package_registry.py FOLDER. Prints its port, and ends when stdin is closed. Files in FOLDER control it:
`latest` has the version that npm offers as the newest; while `hold` exists, archives of npm are not sent.
It writes `registry.json` there, an ACP registry of agents that are archives.
"""

import base64, gzip, hashlib, io, json, os, sys, tarfile, threading, time, zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = sys.argv[1]

# An ACP agent: prints its version, and answers every request.
AGENT = """#!/usr/bin/env node
if (process.argv.includes("--version")) {
  if ("%(version)s" === "2.0.0") { console.error("this version is broken"); process.exit(3); }
  console.log("fake-agent %(version)s");
} else if (process.argv.includes("acp")) {
  let rest = "";
  const send = (it) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...it }) + "\\n");
  process.stdin.on("data", (chunk) => {
    const lines = (rest + chunk).split("\\n");
    rest = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const { id, method, params } = JSON.parse(line);
      if (method === "session/prompt") {
        const content = { type: "text", text: "answer of %(version)s" };
        const update = { sessionUpdate: "agent_message_chunk", content };
        send({ method: "session/update", params: { sessionId: params.sessionId, update } });
      }
      if (id !== undefined) {
        send({ id, result: { protocolVersion: 1, sessionId: "one", stopReason: "end_turn", agentCapabilities: {} } });
      }
    }
  });
  process.stdin.on("end", () => process.exit(0));
}
"""

PY_AGENT = """import sys
def main():
    print("fake-py 1.0.0")
"""


def archive(files, links=()):
    """A gzipped tar archive of (name, text) and (name, target)."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return data.getvalue()


def npm_package(name, version, bins, files, links=(), **extra):
    manifest = {"name": name, "version": version, "bin": bins, **extra}
    files = [("package/package.json", json.dumps(manifest)), *files]
    return {"manifest": manifest, "archive": archive(files, links), "integrity": None}


def script_that_writes(name):
    return {"postinstall": f"node -e \"require('fs').writeFileSync(process.env.HOME + '/{name}', '')\""}


def fake_agent(name, version, **extra):
    text = AGENT % {"version": version}
    return npm_package(name, version, {name: "cli.js"}, [("package/cli.js", text)], **extra)


NPM = {}
for version in ["1.0.0", "1.1.0", "1.2.0", "2.0.0"]:
    NPM.setdefault("fake-agent", []).append(
        fake_agent("fake-agent", version, scripts=script_that_writes("script-ran")))
NPM["fake-acp"] = [fake_agent("fake-acp", "0.5.0")]
NPM["with-script"] = [fake_agent("with-script", "1.0.0", scripts=script_that_writes("needed-script-ran"))]
NPM["future-node"] = [fake_agent("future-node", "1.0.0", engines={"node": ">=99"})]
NPM["wrong-sum"] = [fake_agent("wrong-sum", "1.0.0")]
NPM["wrong-sum"][0]["integrity"] = "sha512-" + base64.b64encode(b"0" * 64).decode()
NPM["bad-version"] = [fake_agent("bad-version", "../../../escaped")]
NPM["escaping"] = [npm_package(
    "escaping", "1.0.0", {"escaping": "../../../../escaped-bin"},
    [("package/../../../../../escaped", "x"), ("package/cli.js", AGENT % {"version": "1.0.0"})],
    [("package/link", "/")])]

PYPI = {}


def wheel(name, version, files):
    module, info = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    files = [
        (f"{module}.py", PY_AGENT),
        (f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
        (f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
        (f"{info}/entry_points.txt", f"[console_scripts]\n{name} = {module}:main\n"),
        *files,
    ]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        for path, text in files:
            out.writestr(path, text)
        out.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path, _ in files))
    PYPI.setdefault(name, {})[f"{module}-{version}-py3-none-any.whl"] = data.getvalue()


wheel("fake-py", "1.0.0", [])
wheel("escaping-py", "1.0.0", [("../../../../../escaped-py", "x")])


PROGRAM = ("top/bin/demo", AGENT % {"version": "1.2.0"})


def claimed(name, size):
    """A compressed archive with one file, whose header claims a size that it does not have."""
    entry = tarfile.TarInfo(name)
    entry.size = size
    return gzip.compress(entry.tobuf(tarfile.USTAR_FORMAT))


# Archives by the name of their agent. All have the program `top/bin/demo`.
ARCHIVES = {
    "demo": archive([PROGRAM, ("top/data", "x")], [("top/bin/link", "../data")]),
    "wrong-sum": archive([PROGRAM]),
    "no-sum": archive([PROGRAM]),
    "escaping": archive([PROGRAM, ("top/../../../../../escaped-archive", "x")]),
    "absolute": archive([PROGRAM, (os.path.join(FOLDER, "escaped-absolute"), "x")]),
    "linked": archive([], [("top", FOLDER)]),
    "through": archive([PROGRAM], [("other", "top"), ("other/escaped-through", "x")]),
    "huge": claimed("top/bin/demo", 7 * 1024**3),
    "no-program": archive([("top/readme", "x")]),
}


def acp_registry(address):
    agents = []
    for name, data in ARCHIVES.items():
        digest = "0" * 64 if name == "wrong-sum" else hashlib.sha256(data).hexdigest()
        target = {"archive": f"{address}/archives/{name}.tar.gz", "cmd": "./top/bin/demo", "args": ["acp"]}
        if name != "no-sum":
            target["sha256"] = digest
        platforms = ["linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-aarch64"]
        agents.append({"id": name, "name": name, "version": "1.2.0", "description": "A demo",
                       "website": "https://example.org/demo",
                       "distribution": {"binary": {it: target for it in platforms}}})
    return {"version": "1.0.0", "agents": agents}


def packument(name, address):
    versions = {}
    for package in NPM[name]:
        version = package["manifest"]["version"]
        digest = base64.b64encode(hashlib.sha512(package["archive"]).digest()).decode()
        versions[version] = {**package["manifest"], "dist": {
            "tarball": f"{address}/{name}/-/{len(versions)}.tgz",
            "integrity": package["integrity"] or f"sha512-{digest}",
        }}
    latest = list(versions)[-1]
    if name == "fake-agent":
        latest = open(os.path.join(FOLDER, "latest")).read().strip()
    return {"name": name, "dist-tags": {"latest": latest}, "versions": versions}


class Registry(BaseHTTPRequestHandler):
    def do_GET(self):
        address = f"http://127.0.0.1:{self.server.server_port}"
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple" and parts[1] in PYPI:
            links = [f'<a href="{address}/wheels/{it}#sha256={hashlib.sha256(data).hexdigest()}">{it}</a>'
                     for it, data in PYPI[parts[1]].items()]
            return self.answer("text/html", "\n".join(links).encode())
        if parts[0] == "wheels":
            found = [data for files in PYPI.values() for it, data in files.items() if it == parts[1]]
            return self.answer("application/octet-stream", found[0])
        if parts[0] == "archives":
            return self.answer("application/gzip", ARCHIVES[parts[1].removesuffix(".tar.gz")])
        if len(parts) == 3 and parts[1] == "-":
            open(os.path.join(FOLDER, "requested"), "w").close()
            while os.path.exists(os.path.join(FOLDER, "hold")):
                time.sleep(0.01)
            return self.answer("application/octet-stream", NPM[parts[0]][int(parts[2].split(".")[0])]["archive"])
        if parts[0] in NPM:
            return self.answer("application/json", json.dumps(packument(parts[0], address)).encode())
        self.send_error(404)

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, daemon=True).start()
with open(os.path.join(FOLDER, "registry.json"), "w") as file:
    json.dump(acp_registry(f"http://127.0.0.1:{server.server_port}"), file)
print(server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
