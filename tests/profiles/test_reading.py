from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

import lmclient
from lmclient.errors import ConfigurationError, ProfileError
from lmclient.profiles import ModelProfile
from lmclient.profiles.reading import ProfileFile
from lmclient.profiles.variables import Variables, expand

KEY = "sk-planted-0123456789"
# The sample of the design page, which shows every key.
SAMPLE = """
provider = "openai-chat"
model = "gpt-5-mini"
url = "https://api.openai.com/v1"
api_key = "${OPENAI_API_KEY}"
max_tokens = 1500
max_context_length = 400000
temperature = 0.2
top_p = 1.0
prompt_format = ""
tokenizer = ""
token_encoding = "o200k_base"
reasoning_effort = "medium"
reasoning_summary = "auto"
reasoning_tags = ""
on_overflow = "error"
extra_body = {}
extra_query = {}
headers = {}
[cost]
input = "0.25"
cached_input = "0.025"
cache_write = "0.25"
cache_write_1h = "0.40"
output = "2.00"
reasoning = "2.00"
currency = "USD"
[[cost.tiers]]
above_input_tokens = 200000
input = "0.50"
output = "3.00"
[limits]
requests_per_minute = 500
tokens_per_minute = 200000
concurrency = 32
[timeouts]
connect = 10
first_byte = 120
idle = 60
total = 600
"""


def load(path: Path, content: str | bytes) -> ModelProfile:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return ProfileFile(path.stem, path).load(Variables())


def test_every_key_of_the_sample_is_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = load(project / "mini.toml", SAMPLE)
    assert made.name == "mini"
    assert made.api_key is not None
    assert made.api_key.get_secret_value() == KEY
    assert made.cost.tiers[0].output == Decimal("3.00")
    assert made.limits.concurrency == 32


def test_lm_lib_files_are_read_unchanged(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("apikey", KEY)
    text = (
        "category=OLLAMA\nprompts=\ntokenizer=fallback\ntokenEncoding=cl100k_base\nmaxTokens=2500\n"
        "maxContextLength=32768\ntemperature=0.3\ntopP=0.95\nmodelProvider=OLLAMA\nmodelName=\n"
        "url=http://localhost:11434\napiKey=${apikey}\ncost1MInTokens=0\ncost1MCachedInTokens=\n"
        "cost1MOutTokens=0\n"
    )
    made = load(project / "box.properties", text)
    assert (made.provider, made.model, made.max_tokens) == ("ollama", "", 2500)
    assert (made.cost.input, made.cost.cached_input) == (Decimal(0), None)


def test_properties_in_latin_1_are_read(project: Path) -> None:
    made = load(project / "a.properties", "modelProvider=OLLAMA\nmodelName=modèle".encode("iso-8859-1"))
    assert made.model == "modèle"


def test_a_wrong_property_is_named_as_in_the_file(project: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        load(project / "a.properties", "modelProvider=OLLAMA\nmaxTokens=many")
    assert caught.value.key == "maxTokens"
    assert "maxTokens: expected a whole number" in str(caught.value)


def test_an_unknown_property_names_the_similar_one(project: Path) -> None:
    with pytest.raises(ProfileError, match="'maxToken' is not known; expected one of maxTokens"):
        load(project / "a.properties", "modelProvider=OLLAMA\nmaxToken=5")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.toml", "provider = ", "TOML"),
        ("a.toml", b"provider = '\xff'", "UTF-8 text"),
        ("a.properties", "url=\\u12", "Java properties"),
    ],
)
def test_an_unreadable_file_is_named(project: Path, name: str, content: str | bytes, expected: str) -> None:
    with pytest.raises(ProfileError, match="cannot be read") as caught:
        load(project / name, content)
    assert caught.value.file == str(project / name)
    assert caught.value.expected == expected


def test_the_name_of_a_profile_is_that_of_its_file(project: Path) -> None:
    with pytest.raises(ProfileError, match="the file's name"):
        load(project / "a.toml", "provider = 'ollama'\nname = 'b'")


def test_a_missing_variable_names_profile_file_key_and_variable(project: Path) -> None:
    with pytest.raises(ProfileError, match=r"Profile 'a' \(.*a\.toml\): api_key: NOPE is not set") as caught:
        load(project / "a.toml", "provider = 'ollama'\napi_key = '${NOPE}'")
    assert caught.value.key == "api_key"


def test_an_empty_variable_is_a_missing_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOPE", "")
    with pytest.raises(ProfileError, match="NOPE is not set"):
        load(project / "a.toml", "provider = 'ollama'\napi_key = '${NOPE}'")


@pytest.mark.parametrize(
    ("written", "expanded"),
    [
        ("${HOST}", "box"),
        ("http://${HOST}:${PORT:80}/", "http://box:80/"),
        ("${NOPE:http://localhost:1}", "http://localhost:1"),
        ("${NOPE:}", ""),
        ("$${HOST}", "${HOST}"),
        ("$HOST 5$", "$HOST 5$"),
    ],
)
def test_variables_are_replaced(written: str, expanded: str) -> None:
    assert expand({"a": [{"b": written}]}, {"HOST": "box"}.get) == ({"a": [{"b": expanded}]}, [])


@pytest.mark.parametrize("written", ["${NOPE}", "${HOST", "${}"])
def test_what_cannot_be_replaced_is_reported_with_its_key(written: str) -> None:
    expanded, unresolved = expand({"t": {"k": written}, "u": 1}, {"HOST": "box"}.get)
    assert expanded == {"t": {}, "u": 1}
    assert [one.key for one in unresolved] == ["t.k"]


def test_the_environment_wins_over_dotenv(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".env").write_text("A=file\nexport B='file b'  # comment\n")
    monkeypatch.setenv("A", "environment")
    monkeypatch.delenv("B", raising=False)
    variables = Variables()
    assert (variables.get("A"), variables.get("B")) == ("environment", "file b")
    assert "B" not in os.environ


def test_an_unreadable_dotenv_is_a_clear_error(project: Path) -> None:
    (project / ".env").write_bytes(b"A=\xff")
    with pytest.raises(ConfigurationError, match=r"\.env of the working directory"):
        Variables().get("NOPE")


def test_importing_reads_no_file_and_changes_no_environment(project: Path) -> None:
    (project / ".env").write_text("UNRELATED=1\n")
    (project / "lmclient.toml").write_text("broken")
    (project.parent / ".env").write_text("UNRELATED=1\n")
    script = """
import os, sys
before, opened = dict(os.environ), []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import lmclient.settings, lmclient.profiles
assert dict(os.environ) == before
assert not [path for path in opened if path.endswith((".env", ".toml", ".properties"))], opened
"""
    root = str(Path(lmclient.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
