"""Graders, on a scripted model."""

from __future__ import annotations

import pytest

from lmclient import Completion, FlowError
from lmclient.flows import Agent, AgentContext, AgentType, TextHandler
from lmclient.flows.graders import AnswerGrader, BinaryAnswerGrader, Grader, Score, read_score, read_vote


@pytest.mark.parametrize(
    ("votes", "passes"),
    [
        (["true", "true"], True),
        (["false", "false"], False),
        (["true", "false", "true", "true"], True),
        (["true", "false", "false", "false"], False),
        (["true", "false", "true", "false", "true"], True),
        (["false", "true", "false", "true", "false"], False),
        (["true", "perhaps", "true"], True),
        (["perhaps"] * 8 + ["true", "true"], True),
        (["perhaps"] * 10, False),
        (["perhaps"] * 8 + ["true", "false"], False),
        (["perhaps"] * 9 + ["true"], True),
    ],
)
async def test_votes_are_cast_until_one_side_leads(model, client, votes, passes):
    for vote in votes:
        model.reply(vote)
    assert await Grader(client).passes("How long?", "Very.") is passes
    assert len(model.requests) == len(votes)


async def test_votes_are_independent(model, client):
    model.reply("true", times=2)
    await Grader(client, "l").passes("How long?", "Very.")
    first, second = model.requests
    assert first.conversation == second.conversation
    assert (second.skip_cache, second.category) == (True, "l")
    assert "How long?" in first.prompt
    assert "Very." in first.prompt


@pytest.mark.parametrize(
    ("answer", "vote"),
    [
        ("true", True),
        ("False.", False),
        ("**YES**", True),
        ("Verdict: fail", False),
        ("The text is about rivers.\n\ntrue", True),
        ('{"passed": true}', True),
        ("", None),
        ("true or false", None),
        ("It is not true", None),
        ("maybe", None),
        ('{"a": true, "b": false}', None),
    ],
)
def test_a_vote_is_read(answer, vote):
    assert read_vote(answer) is vote


async def test_a_score_has_a_rating_and_an_explanation(model, client):
    model.reply('```json\n{"rating": 85, "explanation": "Good."}\n```')
    assert await Grader(client).score("How long?", "Very.") == Score(85, "Good.")


async def test_an_unreadable_score_is_asked_for_again(model, client):
    model.reply("It is fine.")
    model.reply('{"rating": 70}')
    assert await Grader(client).score("How long?", "Very.") == Score(70, "")
    assert "could not be used: there is no JSON" in model.requests[1].prompt


async def test_a_score_that_stays_unreadable_is_an_error(model, client):
    model.reply("It is fine.", times=2)
    with pytest.raises(FlowError, match="no JSON"):
        await Grader(client).score("How long?", "Very.")


@pytest.mark.parametrize(
    ("rating", "expected"),
    [
        ("85", 85),
        ("85.4", 85),
        ('"85"', 85),
        ('"85/100"', 85),
        ('"8.5 out of 10"', 85),
        ('"85%"', 85),
        ("0", 0),
    ],
)
def test_ratings_are_read(rating, expected):
    assert read_score(Completion(text=f'{{"rating": {rating}}}')).rating == expected


@pytest.mark.parametrize("rating", ["-1", "101", "true", "null", '"good"', '"8 of 0"', "[]", "1e999"])
def test_what_is_no_rating_is_an_error(rating):
    with pytest.raises(FlowError, match="between 0 and 100"):
        read_score(Completion(text=f'{{"rating": {rating}}}'))


def flow(grader: Agent) -> AgentContext:
    write = Agent(
        "Write", AgentType.COMPLETION, template="Write.", handler=TextHandler("qa_answer"), next=grader.name
    )
    publish = Agent("Publish", AgentType.PROCESSING_ONLY)
    context = AgentContext([write, grader, publish])
    context.set("qa_question", "How long?")
    context.set("qa_feedback_destination", "Write")
    return context


async def test_an_answer_that_passes_goes_on(model, executor):
    model.reply("Very.")
    model.reply('{"rating": 61, "explanation": "Good."}')
    (result,) = await executor.walk("Write", flow(AnswerGrader(next="Publish")))
    assert result.graph_text() == "M, Write, →, M, AnswerGrader, ✓, ○, Publish"
    assert [result.get(key) for key in ("qa_rating", "qa_passed", "qa_feedback")] == [61, True, "Good."]
    assert model.requests[1].prompt == "The question:\nHow long?\n\nThe answer:\nVery."


async def test_an_answer_that_fails_is_sent_back_twice_and_then_goes_on(model, executor):
    model.reply("Very.", when="Write.", times=3)
    model.reply('{"rating": 60, "explanation": "Say more."}', when="How long?", times=3)
    (result,) = await executor.walk("Write", flow(AnswerGrader(next="Publish")))
    again = "M, Write, →, M, AnswerGrader, ✗, "
    assert result.graph_text() == f"{again}→, {again}→, {again}○, Publish"
    assert (result.get("qa_passed"), result.get("qa_feedback")) == (False, "Say more.")


async def test_the_next_question_may_be_sent_back_twice_as_well(model, executor):
    model.reply("Very.", when="Write.", times=None)
    model.reply('{"rating": 0}', when="How long?", times=None)
    (result,) = await executor.walk("Write", flow(AnswerGrader(next="Publish")))
    await executor.walk("Write", result)
    assert len(model.requests) == 12


async def test_without_a_destination_a_failed_answer_goes_on(model, executor):
    model.reply('{"rating": 10}')
    context = AgentContext([AnswerGrader()])
    context.set("qa_question", "How long?")
    context.set("qa_answer", "Very.")
    (result,) = await executor.walk("AnswerGrader", context)
    assert result.graph_text() == "M, AnswerGrader, ✗"


@pytest.mark.parametrize(
    ("answer", "rating", "mark"),
    [('{"passed": true, "explanation": "x"}', 100, "✓"), ("{'passed': 'No',}", 0, "✗")],
)
async def test_the_binary_grader_passes_or_fails(model, executor, answer, rating, mark):
    model.reply(answer)
    context = AgentContext([BinaryAnswerGrader(category="l")])
    context.set("qa_question", "How long?")
    context.set("qa_answer", "Very.")
    (result,) = await executor.walk("BinaryAnswerGrader", context)
    assert (result.get("qa_rating"), result.graph_text()) == (rating, f"L, BinaryAnswerGrader, {mark}")


async def test_a_grade_that_cannot_be_read_is_asked_for_again(model, executor):
    model.reply("Well done!")
    model.reply('{"passed": true}')
    context = AgentContext([BinaryAnswerGrader()])
    context.set("qa_question", "How long?")
    context.set("qa_answer", "Very.")
    (result,) = await executor.walk("BinaryAnswerGrader", context)
    assert (result.get("qa_passed"), result.graph_text()) == (True, "M, BinaryAnswerGrader, ⚠, ✓")
