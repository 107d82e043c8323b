"""The tokenizer of a llama.cpp server, against a small server that answers like one."""

import asyncio
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lmclient.errors import ConfigurationError, ProtocolError
from lmclient.tokens import count_tokens, get, is_server_tokenizer, server_root


class LikeLlama(BaseHTTPRequestHandler):
    """One token per character; with add_special a 1 in front, with parse_special 2 for `<s>`."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, body))
        if self.path == "/tokenize":
            content = body["content"].replace("<s>", "\2") if body["parse_special"] else body["content"]
            answer = {"tokens": [1] * body["add_special"] + list(map(ord, content))}
        else:
            answer = {"content": "".join(map(chr, body["tokens"]))}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), LikeLlama) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def send(method, url, body):
    def post():
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    return await asyncio.to_thread(post)


@pytest.fixture
def tokenizer(server):
    return get("llama-server", url=f"http://127.0.0.1:{server.server_port}/v1", send=send)


async def test_text_is_tokenized_at_the_root_of_the_server(server, tokenizer):
    assert await tokenizer.tokenize("hé") == [104, 233]
    assert server.seen[0][0] == "/tokenize"


async def test_tokens_become_text_again(tokenizer):
    assert await tokenizer.detokenize([104, 233]) == "hé"


async def test_special_tokens_in_a_text_are_ordinary_text(tokenizer):
    assert await tokenizer.count("<s>") == 3


async def test_special_tokens_of_a_rendered_prompt_are_one_token_each(tokenizer):
    assert await tokenizer.count("<s>", parse_special=True) == 1


async def test_what_the_model_wants_at_the_start_is_added_on_request(tokenizer):
    assert await tokenizer.tokenize("h", add_special=True) == [1, 104]


async def test_lone_surrogates_count_as_the_replacement_character(tokenizer):
    assert await tokenizer.tokenize("\ud800") == [0xFFFD]


async def test_one_call_counts_with_either_kind_of_tokenizer(tokenizer):
    assert await count_tokens(tokenizer, "abc") == 3
    assert await count_tokens(get("tiktoken"), "abc") == 1


def test_a_server_tokenizer_can_be_told_apart(tokenizer):
    assert is_server_tokenizer(tokenizer)
    assert not is_server_tokenizer(get("fallback"))


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"tokens": ["a"]}', b"\xff", b""])
async def test_an_answer_of_another_form_is_a_protocol_error(answer):
    async def send(method, url, body):
        return answer

    with pytest.raises(ProtocolError, match="Is it a llama"):
        await get("llama-server", url="http://h/v1", send=send).count("x")


async def test_errors_of_the_sender_pass_through():
    async def send(method, url, body):
        raise ConnectionRefusedError

    with pytest.raises(ConnectionRefusedError):
        await get("llama-server", url="http://h/v1", send=send).count("x")


async def test_the_query_of_the_url_is_kept():
    urls = []

    async def send(method, url, body):
        urls.append(url)
        return b'{"tokens": []}'

    await get("llama-server", url="http://h/a/v1/?tenant=7", send=send).count("x")

    assert urls == ["http://h/a/tokenize?tenant=7"]


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://h:8080", "http://h:8080"),
        ("http://h:8080/", "http://h:8080"),
        ("http://h:8080/v1", "http://h:8080"),
        ("http://h:8080/v1/", "http://h:8080"),
        ("http://h:8080/v1//", "http://h:8080"),
        ("http://h:8080/v1/chat/completions", "http://h:8080"),
        ("http://h:8080/v1/completions", "http://h:8080"),
        ("http://h/llama/v1", "http://h/llama"),
        ("http://h/llama", "http://h/llama"),
        ("http://h/v10", "http://h/v10"),
        ("http://h/v1/models/v1", "http://h/v1/models"),
        ("https://[::1]:8080/v1", "https://[::1]:8080"),
    ],
)
def test_the_root_is_the_url_without_its_api_part(url, root):
    assert server_root(url) == root


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://h/v1", "/v1"])
def test_what_is_no_http_url_is_refused(url):
    with pytest.raises(ConfigurationError, match="http:// or https:// URL"):
        server_root(url)


def test_without_a_url_or_a_sender_it_is_refused():
    with pytest.raises(ConfigurationError, match="needs a url"):
        get("llama-server", url="http://h")
