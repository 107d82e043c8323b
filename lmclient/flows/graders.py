"""Graders: a model judges an answer, on its own or as a step of a flow.

    grader = Grader(client)
    await grader.passes("Which river is the longest?", answer)
    (await grader.score("Which river is the longest?", answer)).rating

    context = AgentContext(agents=[write, AnswerGrader(next="Publish"), publish])
    context.set("qa_feedback_destination", "Write")

The agents read `qa_question` and `qa_answer`, and write `qa_rating` (0 to 100), `qa_passed` and
`qa_feedback`. They send a failed answer back to the agent that `qa_feedback_destination` names, at
most twice, and then go on to their `next`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmclient.client import AsyncClient
from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation, Role
from lmclient.flows.agent import Agent, AgentNext, AgentType
from lmclient.flows.context import AgentContext
from lmclient.flows.handler import Handler
from lmclient.flows.handlers_failure import Unreadable
from lmclient.flows.json_finding import json_values
from lmclient.profiles.directory import Target

LEAD = 2
"""Votes by which one side must lead for the others not to be asked for."""

MAX_VOTES = 5
MAX_ASKED = 2 * MAX_VOTES
"""How often a vote is asked for, unreadable ones included."""

PASSES_ABOVE = 60
"""The rating that an answer must exceed."""

MAX_SENT_BACK = 2
"""How often a failed answer is sent back to be improved."""

_SENT_BACK = "qa_sent_back"

_VOTE_PROMPT = (
    "You judge whether a text answers a question truthfully and directly. Reply with one word and "
    "nothing else: true if it does, false if it does not."
)
_SCORE_PROMPT = (
    "You rate how well an answer serves a question, from 0 to 100. 100: correct, complete and clear. "
    "75 to 99: correct, with small gaps. 50 to 74: partly correct or incomplete. 25 to 49: hardly an "
    "answer. 0 to 24: wrong or about something else. Reply with nothing but a JSON object: "
)
_VERDICT_PROMPT = (
    "You judge whether an answer resolves a question truthfully and directly. Reply with nothing but a "
    "JSON object: "
)
_SCORE_FORMAT = '{"explanation": "what is good and what is missing, briefly", "rating": 0}'
_VERDICT_FORMAT = '{"explanation": "what is good and what is missing, briefly", "passed": false}'

_VOTES = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "passes", "correct"), True),
    **dict.fromkeys(("false", "no", "fail", "failed", "fails", "incorrect"), False),
}
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:(?:/|of|out of)\s*(\d+)|%)?", re.IGNORECASE)


@dataclass(frozen=True)
class Score:
    """How good an answer is: a `rating` of 0 to 100, and why."""

    rating: int
    explanation: str


class Grader:
    """Has the models of a category, or another target, judge answers.

    May serve several tasks at once. Raises what the client raises.
    """

    def __init__(self, client: AsyncClient, category: Target = "m") -> None:
        self._client = client
        self._category = category

    async def passes(self, question: str, text: str) -> bool:
        """Whether the text answers the question, by the majority of independent votes.

        Votes are asked for until one side leads by two, or five are cast; a tie fails. A vote that
        cannot be read is none, and is asked for anew, ten times in all at most.
        """
        conversation = Conversation.create(_asked(question, text), _VOTE_PROMPT)
        lead = cast = 0
        for _ in range(MAX_ASKED):
            # From the cache, all votes would be the same.
            completion = await self._client.complete(self._category, conversation, skip_cache=True)
            vote = read_vote(completion.text)
            if vote is None:
                continue
            cast += 1
            lead += 1 if vote else -1
            if abs(lead) >= LEAD or cast >= MAX_VOTES:
                break
        return lead > 0

    async def score(self, question: str, text: str) -> Score:
        """How well the text answers the question.

        An answer that cannot be read is asked for again, once; then a `FlowError` is raised.
        """
        conversation = Conversation.create(_asked(question, text), _SCORE_PROMPT + _SCORE_FORMAT)
        completion = await self._client.complete(self._category, conversation)
        try:
            return read_score(completion)
        except Unreadable as problem:
            conversation.append(completion)
            conversation.add(Role.USER, _retry_message(problem, _SCORE_FORMAT))
        completion = await self._client.complete(self._category, conversation, skip_cache=True)
        return read_score(completion)


class _Grading(Handler):
    """Reads a grade into the context: rating, verdict and feedback."""

    format = _SCORE_FORMAT

    def fresh(self) -> _Grading:
        return self  # it keeps nothing

    def handle(self, completion: Completion, context: AgentContext) -> bool:
        score = self.read(completion)
        context.set("qa_rating", score.rating)
        context.set("qa_passed", score.rating > PASSES_ABOVE)
        context.set("qa_feedback", score.explanation)
        return True

    def read(self, completion: Completion) -> Score:
        return read_score(completion)

    def retry_message(self, error: Exception | None) -> str:
        return _retry_message(error, self.format)


class _BinaryGrading(_Grading):
    format = _VERDICT_FORMAT

    def read(self, completion: Completion) -> Score:
        fields = _fields(completion)
        passed = _first(fields, "passed", "qa_passed", "pass", "verdict", "result")
        vote = passed if isinstance(passed, bool) else read_vote(str(passed))
        if vote is None:
            raise Unreadable('it has no "passed" that is true or false')
        return Score(100 if vote else 0, _explanation(fields))


class AnswerGrader(Agent):
    """Rates `qa_answer`, which passes above 60. See the module for what it reads and writes."""

    name = "AnswerGrader"
    type = AgentType.COMPLETION
    system_prompt = _SCORE_PROMPT + _SCORE_FORMAT
    template = "The question:\n{{qa_question}}\n\nThe answer:\n{{qa_answer}}"
    handler = _Grading()

    def choose_next(self, context: AgentContext) -> AgentNext:
        """Back to be improved, or on to `next`."""
        passed = bool(context.get("qa_passed"))
        sent_back = context.get(_SENT_BACK) or 0
        destination = context.get("qa_feedback_destination")
        if not passed and destination and sent_back < MAX_SENT_BACK:
            context.set(_SENT_BACK, sent_back + 1)
            return AgentNext(destination, grading_passed=False)
        context.remove(_SENT_BACK)
        following = self.next.name if isinstance(self.next, AgentNext) else self.next
        return AgentNext(following, grading_passed=passed)


class BinaryAnswerGrader(AnswerGrader):
    """Judges whether `qa_answer` passes; its rating is 100 or 0. See the module."""

    name = "BinaryAnswerGrader"
    system_prompt = _VERDICT_PROMPT + _VERDICT_FORMAT
    handler = _BinaryGrading()


def read_vote(text: str) -> bool | None:
    """The vote in an answer, None if it cannot be told: one word, the last line, or a field of JSON."""
    lines = [line for line in text.splitlines() if line.strip()]
    for part in (text, lines[-1] if lines else ""):
        word = re.sub(r"[^a-z]+", " ", part.lower()).split()
        if word and word[:-1] in ([], ["vote"], ["verdict"], ["answer"], ["the", "answer", "is"]):
            return _VOTES.get(word[-1])
    try:
        value = json_values(text)[0]
    except Unreadable:
        return None
    votes = {item for item in value.values() if isinstance(item, bool)} if isinstance(value, dict) else set()
    return votes.pop() if len(votes) == 1 else None


def read_score(completion: Completion) -> Score:
    """The score in an answer. Raises `Unreadable` if there is none between 0 and 100."""
    fields = _fields(completion)
    return Score(_rating(_first(fields, "rating", "qa_rating", "score")), _explanation(fields))


def _fields(completion: Completion) -> Mapping[str, Any]:
    value = json_values(completion.text)[0]
    if not isinstance(value, dict):
        raise Unreadable("it is not a JSON object")
    return {name.lower(): field for name, field in value.items()}


def _first(fields: Mapping[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if name in fields), None)


def _explanation(fields: Mapping[str, Any]) -> str:
    value = _first(fields, "explanation", "qa_explanation", "qa_feedback", "feedback", "reason")
    return "" if value is None else str(value)


def _rating(value: Any) -> int:
    """A rating as a number or text, such as 85, "85", "85/100", "8.5 out of 10" or "85%"."""
    number = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and (parts := _NUMBER.match(value)):
        scale = float(parts[2] or 100)
        number = float(parts[1]) * 100 / scale if scale else math.nan
    if not 0 <= number <= 100:
        raise Unreadable('it has no "rating" between 0 and 100')
    return round(number)


def _asked(question: str, text: str) -> str:
    return f"The question:\n{question}\n\nThe answer:\n{text}"


def _retry_message(error: Exception | None, wanted: str) -> str:
    reason = f": {error}" if error is not None and str(error) else ""
    return f"Your answer could not be used{reason}. Answer again with nothing but a JSON object: {wanted}"
