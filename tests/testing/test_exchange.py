"""Reading exchanges from files and from code."""

from __future__ import annotations

import json

import pytest

from lmclient.errors import ConfigurationError
from lmclient.testing.exchange import Exchange, RecordedResponse, load_exchanges

PLAIN = {"path": "/v1/chat/completions", "response": {"body": "{}"}}


def test_a_directory_is_read_by_file_name(tmp_path):
    (tmp_path / "rivers.json").write_text(json.dumps(PLAIN))
    (tmp_path / "notes.txt").write_text("not an exchange")
    assert list(load_exchanges(tmp_path)) == ["rivers"]


def test_a_name_in_the_file_wins(tmp_path):
    (tmp_path / "rivers.json").write_text(json.dumps({**PLAIN, "name": "lakes"}))
    assert list(load_exchanges(str(tmp_path))) == ["lakes"]


def test_a_dict_names_its_exchanges():
    assert load_exchanges({"rivers": PLAIN})["rivers"].response.status == 200


def test_a_list_holds_exchanges_and_dicts():
    exchange = Exchange(name="lakes", path="/v1/messages", response=RecordedResponse("{}"))
    assert list(load_exchanges([exchange, {**PLAIN, "name": "rivers"}])) == ["lakes", "rivers"]


def test_other_keys_are_free():
    assert load_exchanges({"rivers": {**PLAIN, "expected": {"text": ""}, "note": "short"}})


def test_a_list_without_names_is_refused():
    with pytest.raises(ConfigurationError, match="has no name"):
        load_exchanges([PLAIN])


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="nowhere"):
        load_exchanges(tmp_path / "nowhere")


def test_a_wrong_type_is_named_with_file_and_place(tmp_path):
    (tmp_path / "rivers.json").write_text('{"path": "/v1/messages", "response": {"body": 1}}')
    with pytest.raises(ConfigurationError, match=r"rivers\.json.*response\.body"):
        load_exchanges(tmp_path)


def test_a_file_that_is_not_json_is_named(tmp_path):
    (tmp_path / "rivers.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"rivers\.json"):
        load_exchanges(tmp_path)


def test_a_missing_key_in_code_is_named():
    with pytest.raises(ConfigurationError, match=r"'rivers'.*`body`"):
        load_exchanges({"rivers": {"path": "/v1/messages", "response": {}}})


def test_parts_follow_the_timing_and_the_rest_comes_last():
    response = RecordedResponse("abcdef", timing=[(0.5, 2), (1.0, 3)])
    parts = list(Exchange(path="/x", response=response).parts())
    assert parts == [(0.5, b"ab"), (1.0, b"cde"), (1.0, b"f")]


def test_without_timing_the_body_is_one_part():
    assert list(Exchange(path="/x", response=RecordedResponse("abc")).parts()) == [(0.0, b"abc")]
