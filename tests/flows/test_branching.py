"""Fan-out and merge."""

from lmclient import ServerError
from lmclient.flows import (
    Agent,
    AgentContext,
    AgentType,
    ErrorType,
    FlowExecutor,
    TextHandler,
    merge_contexts,
)

ITEMS = ["a", "b", "c", "d", "e"]


def analyzer(**fields):
    return Agent(
        "Analyzer",
        AgentType.COMPLETION,
        template="Analyze [[item]].[[number|hidden]]",
        handler=TextHandler("analysis"),
        **fields,
    )


def merge(contexts):
    return merge_contexts(["item", "number", "analysis"], contexts)


def answer_in_kind(model, times=5):
    model.reply(lambda request: request.prompt.replace("Analyze", "About"), when="Analyze", times=times)


async def test_five_branches_run_at_once_and_are_merged_to_one(executor, model, context, prompts):
    answer_in_kind(model)
    model.reply("All in all.", when="Report")
    model.rendezvous(5, when="Analyze")
    report = Agent("Reporter", AgentType.COMPLETION, template="Report {{number}}: {{analysis}}")
    started = context(analyzer(merge=merge, next="Reporter"), report, item=ITEMS, number=[1, 2, 3, 4, 5])
    (result,) = await executor.walk("Analyzer", started)
    assert prompts() == [
        *([("user", f"Analyze {item}.")] for item in ITEMS),
        [
            (
                "user",
                "Report 1\n\n2\n\n3\n\n4\n\n5: About a.\n\nAbout b.\n\nAbout c.\n\nAbout d.\n\nAbout e.",
            )
        ],
    ]
    assert result.graph_text() == "⇉ 1/5, M, Analyzer, 5↣1, →, M, Reporter"
    assert model.stages() == 2
    assert [(step.agent, step.branch, step.parents) for step in result.trace] == [
        *(("Analyzer", (number, 5), ()) for number in range(1, 6)),
        ("Reporter", None, (1, 2, 3, 4, 5)),
    ]
    assert result.get_all("item") == ITEMS


async def test_a_branch_holds_only_its_element(executor, model, context):
    answer_in_kind(model)
    results = await executor.walk("Analyzer", context(analyzer(), item=ITEMS, number=[1, 2, 3, 4, 5]))
    assert [(r.get_all("item"), r.get_all("number")) for r in results] == [
        ([item], [number]) for number, item in enumerate(ITEMS, start=1)
    ]
    assert [r.graph_text() for r in results] == [f"⇉ {number}/5, M, Analyzer" for number in range(1, 6)]
    assert [[step.branch for step in r.trace] for r in results] == [[(number, 5)] for number in range(1, 6)]


async def test_lists_of_unequal_length_branch_as_often_as_the_shortest(executor, model, context, prompts):
    answer_in_kind(model)
    results = await executor.walk("Analyzer", context(analyzer(), item=ITEMS, number=[1, 2]))
    assert prompts() == [[("user", "Analyze a.")], [("user", "Analyze b.")]]
    assert [r.get("number") for r in results] == [1, 2]


async def test_an_empty_list_has_no_results_and_calls_nothing(executor, model, context):
    assert await executor.walk("Analyzer", context(analyzer(merge=merge), item=[], number=[1])) == []
    assert model.requests == []


async def test_an_error_in_one_branch_leaves_the_others_alone(executor, model, context):
    model.reply(ServerError("down", status=500, retryable=False), when="Analyze c")
    answer_in_kind(model)
    model.reply("All in all.", when="Report")
    report = Agent("Reporter", AgentType.COMPLETION, template="Report {{item}}")
    started = context(analyzer(merge=merge, next="Reporter"), report, item=ITEMS, number=[1, 2, 3, 4, 5])
    good, failed = await executor.walk("Analyzer", started)
    assert good.graph_text() == "⇉ 1/5, M, Analyzer, 4↣1, →, M, Reporter"
    assert good.get_all("item") == ["a", "b", "d", "e"]
    assert failed.graph_text() == "⇉ 3/5, M, Analyzer, ❌"
    assert (failed.error_type, str(failed.error)) == (ErrorType.GENERAL, "down")
    assert isinstance(failed.error, ServerError)
    assert good.trace[-1].parents == (1, 2, 4, 5)
    assert [step.error for step in good.trace].count(None) == 5


async def test_branches_walk_on_in_parallel_without_a_merge(executor, model, context, prompts):
    answer_in_kind(model)
    model.reply("Done.", when="Grade", times=5)
    model.rendezvous(5, when="Grade")
    grade = Agent("Grader", AgentType.COMPLETION, template="Grade {{analysis}}")
    results = await executor.walk(
        "Analyzer", context(analyzer(next="Grader"), grade, item=ITEMS, number=[1, 2, 3, 4, 5])
    )
    assert len(results) == 5
    assert results[4].graph_text() == "⇉ 5/5, M, Analyzer, →, M, Grader"
    assert [step.agent for step in results[4].trace] == ["Analyzer", "Grader"]
    assert results[0].statistics is results[4].statistics
    assert results[0].statistics.requests == 10


async def test_branches_of_branches(executor, model, context):
    model.reply(times=None)
    first = Agent("First", AgentType.COMPLETION, template="[[x]]", next="Second")
    second = Agent("Second", AgentType.COMPLETION, template="[[y]]")
    results = await executor.walk("First", context(first, second, x=["1", "2"], y=["a", "b"]))
    assert [(r.get("x"), r.get("y")) for r in results] == [("1", "a"), ("1", "b"), ("2", "a"), ("2", "b")]
    assert results[3].graph_text() == "⇉ 2/2, M, First, →, ⇉ 2/2, M, Second"


async def test_a_merge_may_make_more_contexts(executor, model, context):
    answer_in_kind(model)

    def double(contexts):
        return [*contexts, *(context.copy() for context in contexts)]

    results = await executor.walk("Analyzer", context(analyzer(merge=double), item=["a", "b"], number=[1, 2]))
    assert [r.get("item") for r in results] == ["a", "b", "a", "b"]
    assert all(r.graph[-1] == "2↣4" for r in results)


async def test_a_merge_may_make_a_new_context(executor, model, context):
    answer_in_kind(model)
    model.reply("Done.", when="Total")
    total = Agent("Total", AgentType.COMPLETION, template="Total {{n}}")

    def fresh(contexts):
        made = AgentContext()
        made.set("n", len(contexts))
        return [made]

    started = context(analyzer(merge=fresh, next="Total"), total, item=["a", "b"], number=[1, 2])
    (result,) = await executor.walk("Analyzer", started)
    assert result.graph_text() == "2↣1, →, M, Total"
    assert result.statistics.requests == 3


async def test_changes_in_one_branch_do_not_show_in_another(executor, model, context):
    answer_in_kind(model)

    def change(context):
        context.get("shared")["seen"].append(context.get("item"))
        context.append("log", context.get("item"))

    started = context(
        analyzer(post_process=change), item=["a", "b"], number=[1, 2], shared={"seen": []}, log=["start"]
    )
    results = await executor.walk("Analyzer", started)
    assert [r.get("shared")["seen"] for r in results] == [["a"], ["b"]]
    assert [r.get_all("log") for r in results] == [["start", "a"], ["start", "b"]]


async def test_no_more_branches_run_at_once_than_allowed(client, model, context):
    answer_in_kind(model)
    started = context(analyzer(), item=ITEMS, number=[1, 2, 3, 4, 5])
    await FlowExecutor(client, max_concurrency=2).walk("Analyzer", started)
    assert model.max_in_flight == 2


async def test_a_processing_agent_branches_too(executor, model, context):
    agent = Agent("Splitter", AgentType.PROCESSING_ONLY, template="[[item]] {{missing}}")
    results = await executor.walk("Splitter", context(agent, item=["a", "b"]))
    assert [r.graph_text() for r in results] == ["⇉ 1/2, ○, Splitter", "⇉ 2/2, ○, Splitter"]


async def test_values_with_placeholders_reach_the_model_as_they_are(executor, model, context, prompts):
    model.reply()
    agent = Agent("A", AgentType.COMPLETION, template="{{x}} [[y]]")
    await executor.walk("A", context(agent, x="{{y}} [[y]]", y=["{{{x}}}"]))
    assert prompts() == [[("user", "{{y}} [[y]] {{{x}}}")]]


async def test_the_cost_of_all_branches_is_counted_once_merged(executor, model, context):
    answer_in_kind(model)
    started = context(analyzer(merge=merge), item=ITEMS, number=[1, 2, 3, 4, 5])
    (result,) = await executor.walk("Analyzer", started)
    statistics = result.statistics
    assert (statistics.requests, statistics.input_tokens, statistics.output_tokens) == (5, 10, 10)
    assert statistics.cost == sum(step.cost for step in result.trace)
    assert statistics.duration >= statistics.effective_duration > 0
    assert statistics.tokens_per_second > 0
