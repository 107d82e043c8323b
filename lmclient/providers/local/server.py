"""The in-process llama.cpp HTTP server: one per model file and context length, shared by all callers.

It answers on a free loopback port until the process ends. The routes are those of llama.cpp's own
server (https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md).

Closing the connection of a streamed call stops the model; while the prompt is still being read this
needs `"return_progress": true` in the body. A call without `stream` is computed to its end whatever
its caller does, so whoever may want to cancel asks for a stream.

After `os.fork()` the child goes on using its parent's server as long as that answers, because GPU
drivers and the threads of llama.cpp do not survive a fork; when it is gone, the child starts its own.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import functools
import http.client
import importlib
import json
import os
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lmclient.errors import ConfigurationError

_LOOPBACK = "127.0.0.1"
_CALLERS_AT_ONCE = 2
_HTTP_THREADS = 32
# llama.cpp heeds a cancelled call, another caller and its own end only between two batches. Its default
# of 2048 prompt tokens makes them wait for many seconds on a small machine.
_BATCH_TOKENS = 256
# At its end a server may wait for a stream's next comment line, which by default comes after 30 seconds.
_HEARTBEAT_SECONDS = 1
_PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class _Running:
    url: str
    server: Any
    """Keeps the `xllamacpp.Server` alive: it stops when its last reference goes."""
    pid: int


_Key = tuple[str, int | None]
_running: dict[_Key, _Running] = {}
_lock = threading.Lock()


def start(model_file: Path, *, n_ctx: int | None = None) -> str:
    """The base URL, `http://127.0.0.1:PORT`, of the server for this model, started on first use.

    `n_ctx` is the context in tokens that each call can use, by default as much as the model was
    trained for; a server with another `n_ctx` is another server. Two calls are computed at once,
    more wait in line. Any number of threads may call this. The first call takes a second or more,
    during which llama.cpp lets no other thread of this process run Python code.

    Raises `ConfigurationError` when the extra `local` is not installed or the model cannot be loaded.
    """
    key = _key(model_file, n_ctx)
    with _lock:
        running = _running.get(key)
        if running is None or not _is_usable(running, key):
            server = _launch(model_file, n_ctx=n_ctx, host=_LOOPBACK, port=0)
            running = _Running(url=server.listening_address, server=server, pid=os.getpid())
            _running[key] = running
            if _install_process_hooks() != os.getpid():
                _keep_forever(server)
        return running.url


async def base_url(model_file: Path, *, n_ctx: int | None = None) -> str:
    """`start` for event loops: at once where the server runs, else waiting in a thread."""
    running = _running.get(_key(model_file, n_ctx))
    if running is not None and running.pid == os.getpid():
        return running.url
    return await asyncio.to_thread(start, model_file, n_ctx=n_ctx)


def serve(model_file: Path, *, host: str, port: int) -> str:
    """The base URL of a server of its own on `host` and `port` (0: a free one), until the process ends.

    Raises `ConfigurationError` when the port is taken, and what `start` raises.
    """
    _require_free(host, port)
    server = _launch(model_file, n_ctx=None, host=host, port=port)
    with _lock:
        _running[_key(model_file, None)] = _Running(server.listening_address, server, os.getpid())
        _install_process_hooks()
    return str(server.listening_address)


def _key(model_file: Path, n_ctx: int | None) -> _Key:
    return os.path.realpath(model_file), n_ctx


def _launch(model_file: Path, *, n_ctx: int | None, host: str, port: int) -> Any:
    try:
        # By name, for it has neither types nor, without the extra, a module to check against.
        xllamacpp = importlib.import_module("xllamacpp")
    except ImportError as error:
        raise ConfigurationError(
            f"the local model {model_file.name} needs llama.cpp: pip install 'lmclient[local]'"
        ) from error
    _require_gguf(model_file)
    params = xllamacpp.CommonParams()
    params.model.path = os.path.realpath(model_file)
    params.model_alias = {model_file.stem}
    params.hostnames = [host]
    params.port = port
    params.n_parallel = _CALLERS_AT_ONCE
    # llama.cpp divides a stated context among its parallel calls, but gives each the model's own.
    params.n_ctx = n_ctx * _CALLERS_AT_ONCE if n_ctx else 0
    params.n_batch = _BATCH_TOKENS
    params.n_threads_http = _HTTP_THREADS
    threads = _threads()
    if threads is not None:
        params.cpuparams.n_threads = threads
    params.sse_ping_interval = _HEARTBEAT_SECONDS
    params.verbosity = -1
    params.ui = False
    params.cors_origins = ""  # else every web page in the user's browser could read answers
    # By default up to 8 GB of earlier prompts are kept in memory; each slot's last prompt still is.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:  # which says nothing but that it failed
        raise ConfigurationError(
            f"llama.cpp cannot load {model_file}: damaged, too large for the memory, or of a kind that this "
            "version of xllamacpp does not know; try another file, a smaller context or a newer xllamacpp"
        ) from error


def _threads() -> int | None:
    """The cores this process may use where that is fewer than there are; None leaves it to llama.cpp.

    Its own choice is one thread per physical core of the machine; more threads than cores make it crawl.
    """
    if sys.platform == "linux":
        usable = len(os.sched_getaffinity(0))
        if usable < (os.cpu_count() or usable):
            return usable
    return None


def _require_gguf(model_file: Path) -> None:
    try:
        with model_file.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ConfigurationError(f"cannot read the model file {model_file}: {error.strerror}") from error
    if magic != b"GGUF":
        raise ConfigurationError(f"{model_file} is not a GGUF file: llama.cpp loads no other kind")


def _require_free(host: str, port: int) -> None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another --port or --host"
        ) from error


def _is_usable(running: _Running, key: _Key) -> bool:
    """Whether it belongs to this process or, inherited through a fork, still answers for this model."""
    if running.pid == os.getpid():
        return True
    connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", "/props")
        properties = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return False  # nobody there, or another program that got the port since
    finally:
        connection.close()
    return isinstance(properties, dict) and properties.get("model_path") == key[0]


@functools.cache
def _install_process_hooks() -> int:
    """Done once, forked children inherit them; returns the id of the process that did it."""
    atexit.register(_let_go)
    if sys.platform != "win32":
        # Held during a fork, the lock is free again in the child, and the dictionary whole.
        os.register_at_fork(
            before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_disown_after_fork
        )
    return os.getpid()


def _let_go() -> None:
    """Has the servers of a process that ends stopped, or, better, the process end without that.

    The destructor of a server waits for threads of llama.cpp, now and then for ever.
    """
    with _lock:
        if not _skip_clean_up():
            _running.clear()
        for running in _running.values():
            _keep_forever(running.server)


def _disown_after_fork() -> None:
    """Lets a forked child end without waiting for threads that only its parent has."""
    _lock.release()
    for running in _running.values():
        _keep_forever(running.server)
    _skip_clean_up()


def _skip_clean_up() -> bool:
    """Has this process end without the clean-up of the C++ library, which waits as destructors do.

    Whether that is possible.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "on_exit"):
        return False  # only glibc has it
    libc.fflush(None)
    # Run in reverse order of registration: ends the process, with its status, before the clean-up
    # registered earlier. Python has flushed its own files by then.
    libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)
    return True


def _keep_forever(server: Any) -> None:
    """Takes a reference that is never given back, so that the destructor does not run."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
