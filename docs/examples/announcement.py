"""Announces a program: summarises its code, finds its features, looks at each of them, writes a post."""

import asyncio
import sys
from pathlib import Path

import lmclient
from lmclient.flows import (
    Agent,
    AgentContext,
    AgentType,
    FlowExecutor,
    JsonHandler,
    TextHandler,
    merge_contexts,
)


def join_features(contexts):
    return merge_contexts(["features", "description"], contexts)


def name_topics(context):
    context.set("topics", ", ".join(context.get_all("features", str)))


agents = [
    Agent(
        "CodeSummarizer",
        AgentType.START_CONVERSATION,
        system_prompt="Summarize this source code.",
        template="The source code is:\n{{code}}",
        handler=TextHandler("summary"),
        next="FeatureIdentifier",
    ),
    Agent(
        "FeatureIdentifier",
        AgentType.CONVERSATION,
        template='Name its five features as JSON, and nothing else: {"features": ["first", "second", ...]}',
        handler=JsonHandler(),
        next="FeatureAnalyzer",
    ),
    Agent(
        "FeatureAnalyzer",
        AgentType.COMPLETION,
        system_prompt="Describe what one feature of this source code does. Suggest no changes.",
        template="The source code is:\n{{code}}\n\nThe feature is: [[features]]",
        handler=TextHandler("description"),
        merge=join_features,
        next="AnswerGenerator",
    ),
    Agent(
        "AnswerGenerator",
        AgentType.COMPLETION,
        system_prompt="Write a short blog post that announces this program.",
        template="Its purpose:\n{{summary}}\n\nWrite about {{topics}}:\n{{description}}",
        pre_process=name_topics,
        handler=TextHandler("blog_post"),
    ),
]


async def announce(code: str) -> AgentContext:
    context = AgentContext(agents)
    context.set("code", code)
    async with lmclient.AsyncClient() as client:
        results = await FlowExecutor(client).walk("CodeSummarizer", context)
    return results[0]


if __name__ == "__main__":
    result = asyncio.run(announce(Path(sys.argv[1]).read_text()))
    print(result.get("blog_post"), result.graph_text(), result.statistics, sep="\n\n")
