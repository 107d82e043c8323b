"""The documentation's flow on the real model: its structure, not its wording."""

import dataclasses
import importlib.util
from pathlib import Path

from lmclient.flows import AgentContext, FlowExecutor, Handler

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "announcement.py"
GRAPH = "M, CodeSummarizer, ↴, M, FeatureIdentifier, →, ⇉ 1/5, M, FeatureAnalyzer, 5↣1, →, M, AnswerGenerator"


def example():
    spec = importlib.util.spec_from_file_location("announcement", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_features(text):
    """Five features of whatever was said: a model this small names none as JSON."""
    return ((text.split() or ["greeting"]) * 5)[:5]


class AnyFeatures(Handler):
    def handle(self, completion, context):
        context.set_all("features", read_features(completion.text))
        return True


async def test_the_example_runs_on_the_local_model(client, profile):
    model = profile("llama-cpp", max_tokens=8)
    agents = [dataclasses.replace(agent, profile=model) for agent in example().agents]
    agents[1] = dataclasses.replace(agents[1], handler=AnyFeatures())
    context = AgentContext(agents)
    context.set("code", "print('Hello')")
    context.streaming = True
    (result,) = await FlowExecutor(client).walk("CodeSummarizer", context)
    assert result.error is None
    assert result.graph_text().replace("smollm2", "M").replace(", ⏹", "") == GRAPH
    assert len(result.get_all("description")) == 5
    assert result.get("blog_post")
    assert result.statistics.requests == 8
    assert 8 <= result.statistics.output_tokens <= 64
