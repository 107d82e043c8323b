"""`lmclient flow`."""

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

FLOW = """
from lmclient.flows import Agent, AgentContext, AgentType, merge_contexts

agents = [
    Agent("First", AgentType.COMPLETION, template="{{topic}}", next="Second"),
    Agent(
        "Second",
        AgentType.COMPLETION,
        template="[[item]]",
        merge=lambda contexts: merge_contexts(["response"], contexts),
    ),
]
nothing = []

def made():
    context = AgentContext(agents)
    context.set_all("item", ["x"])
    return context
"""


@pytest.fixture
def flow_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with flows in the working directory, imported anew by each test."""
    import sys

    monkeypatch.delitem(sys.modules, "myflow", raising=False)
    file = home / "myflow.py"
    file.write_text(FLOW)
    return file


@pytest.fixture
def answering(mock, write_profile: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile("mocked", mock.url())
    monkeypatch.setenv("LMCLIENT_CATEGORIES__M", "mocked")


pytestmark = pytest.mark.usefixtures("flow_file", "answering")

RUN = ("flow", "run", "myflow:agents", "--set", "topic=rivers", "--set", "item=a", "--set", "item=b")


def test_the_last_answer_is_printed(run):
    result = run(*RUN)
    assert result.exit_code == 0
    assert result.stdout.strip()
    assert "First" in result.stderr
    assert "Second 2/2" in result.stderr
    assert "3 requests" in result.stderr
    assert "USD" in result.stderr
    assert "M, First, →, ⇉ 1/2, M, Second, 2↣1" in result.stderr


def test_results_are_kept_and_drawn(run, home):
    run(*RUN, "--save", "walk.json")
    assert len(json.loads((home / "walk.json").read_text())) == 1
    drawn = run("flow", "render", "walk.json")
    assert drawn.stdout.startswith("flowchart TD\n")
    assert drawn.stdout.count("-->") == 2
    run("flow", "render", "walk.json", "-o", "walk.svg")
    ElementTree.fromstring((home / "walk.svg").read_text())
    as_svg = run("flow", "render", "walk.json", "--format", "svg")
    assert as_svg.stdout == (home / "walk.svg").read_text()


def test_a_value_is_read_from_a_file(run, home):
    (home / "topic.txt").write_text("rivers")
    result = run("flow", "run", "myflow:made", "--set", "topic=@topic.txt", "--save", "walk.json")
    assert result.exit_code == 0
    assert json.loads((home / "walk.json").read_text())[0]["values"]["topic"] == ["rivers"]


def test_an_error_of_a_context_is_told_and_is_the_status(run):
    result = run("flow", "run", "myflow:agents")
    assert result.exit_code == 1
    assert "'First': its template needs 'topic'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["myflow"], "does not name a flow"),
        (["nomodule:agents"], "There is no module 'nomodule'"),
        (["myflow:gone"], "'myflow' has no 'gone'"),
        (["myflow:nothing"], "expected a list of agents"),
        (["myflow:agents", "--set", "topic"], "expected KEY=VALUE"),
        (["myflow:agents", "--set", "topic=@gone.txt"], "'gone.txt' cannot be read"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(run, arguments, told):
    result = run("flow", "run", *arguments)
    assert result.exit_code == 1
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_file_that_is_no_result_is_told(run, home):
    (home / "walk.json").write_text("[{}]")
    result = run("flow", "render", "walk.json")
    assert result.exit_code == 1
    assert "not the JSON of a context" in result.stderr


def test_progress_is_live_on_a_terminal(terminal):
    session = terminal(*RUN)
    session.expect("Second 1/2")
    session.expect("3 requests")


def test_a_module_beside_the_user_comes_before_an_installed_one(run, home, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (home / "colorsys.py").write_text("mine = 'no flow'\n")
    assert "colorsys:mine' is 'no flow'" in run("flow", "run", "colorsys:mine").stderr
    monkeypatch.delitem(sys.modules, "colorsys")
