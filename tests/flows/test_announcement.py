"""The example of the documentation: a program is announced."""

import importlib.util
from pathlib import Path

import pytest

from lmclient.flows import AgentContext

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "announcement.py"
GRAPH = "M, CodeSummarizer, ↴, M, FeatureIdentifier, →, ⇉ 1/5, M, FeatureAnalyzer, 5↣1, →, M, AnswerGenerator"
CODE = "print('Hello')"
FEATURES = ["one", "two", "three", "four", "five"]

SUMMARIZE = "Summarize this source code."
SOURCE = f"The source code is:\n{CODE}"
IDENTIFY = 'Name its five features as JSON, and nothing else: {"features": ["first", "second", ...]}'
ANALYZE = "Describe what one feature of this source code does. Suggest no changes."
ANNOUNCE = "Write a short blog post that announces this program."


@pytest.fixture(scope="module")
def agents():
    spec = importlib.util.spec_from_file_location("announcement", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.agents


async def test_every_prompt_of_the_flow(executor, model, agents, prompts):
    model.reply("It greets.", when=SUMMARIZE)
    model.reply('```json\n{"features": ["one", "two", "three", "four", "five"]}\n```', when=IDENTIFY)
    model.reply(lambda request: f"About {request.prompt.split()[-1]}.", when=ANALYZE, times=5)
    model.reply("Hello is here!", when=ANNOUNCE)
    model.rendezvous(5, when=ANALYZE)
    context = AgentContext(agents)
    context.set("code", CODE)
    (result,) = await executor.walk("CodeSummarizer", context)
    assert prompts() == [
        [("system", SUMMARIZE), ("user", SOURCE)],
        [("user", f"{SUMMARIZE}\n{SOURCE}"), ("assistant", "It greets."), ("user", IDENTIFY)],
        *([("system", ANALYZE), ("user", f"{SOURCE}\n\nThe feature is: {name}")] for name in FEATURES),
        [
            ("system", ANNOUNCE),
            (
                "user",
                "Its purpose:\nIt greets.\n\nWrite about one, two, three, four, five:\n"
                "About one.\n\nAbout two.\n\nAbout three.\n\nAbout four.\n\nAbout five.",
            ),
        ],
    ]
    assert result.graph_text() == GRAPH
    assert result.get("blog_post") == "Hello is here!"
    assert result.statistics.requests == 8
    assert model.stages() == 4
    assert [(step.agent, step.parents) for step in result.trace] == [
        ("CodeSummarizer", ()),
        ("FeatureIdentifier", (1,)),
        *[("FeatureAnalyzer", (2,))] * 5,
        ("AnswerGenerator", (3, 4, 5, 6, 7)),
    ]


def test_the_guide_shows_the_example_as_it_is():
    page = (ROOT / "docs" / "flows.md").read_text(encoding="utf-8")
    assert EXAMPLE.read_text(encoding="utf-8") in page
