"""Runs `lmclient` commands in forks of one process that has loaded everything: a new one takes a second each.

    python -m tests.docs.command_server SOCKET

`COMMAND` is a program that hands its arguments, directory, environment and standard streams over.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path

from lmclient import Settings, prompts, tokens
from lmclient.cli import main
from lmclient.cli.commands import MOUNTED

from .redirecting import redirect

SOCKET = "LMCLIENT_DOCS_COMMANDS"
"""The variable with the path of the server's socket."""

COMMAND = f"""#!{sys.executable} -IS
import json, os, socket, sys
arguments = sys.argv[1:]
if arguments[:1] == ["local"]:  # keeps a server of its own, and gets signals
    os.execv("{sys.executable}", ["{sys.executable}", "-m", "lmclient", *arguments])
if arguments[:1] == ["serve"]:  # the same, and its providers are the model server
    program = "from tests.docs.redirecting import redirect; redirect(); from lmclient.cli import main; main()"
    os.execv("{sys.executable}", ["{sys.executable}", "-c", program, *arguments])
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.environ["{SOCKET}"])
    call = {{"arguments": arguments, "directory": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(server, [json.dumps(call).encode()], [0, 1, 2])
    sys.exit(server.recv(1)[0])
"""


def serve(path: str) -> None:
    """Answers until it is terminated."""
    for module, _ in MOUNTED.values():
        importlib.import_module(module)
    tokens.get("tiktoken").count("")
    prompts.names()
    Settings()
    redirect()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        print("ready", flush=True)
        while True:
            call, _ = server.accept()
            if os.fork() == 0:
                _run(call)
            call.close()


def _run(caller: socket.socket) -> None:
    """Becomes the command, and ends with this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(caller, 2**20, 3)
    call = json.loads(message)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115  # until the end
    os.chdir(call["directory"])
    os.environ.clear()
    os.environ.update(call["environment"])
    sys.argv = ["lmclient", *call["arguments"]]
    sys.path.insert(0, str(Path.cwd()))
    status = 1
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # the fork must not go on as a second server
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        caller.sendall(bytes([status]))
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
