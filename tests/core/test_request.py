"""What a request keeps of its attempts."""

from __future__ import annotations

import copy
import datetime

from lmclient import Attempt, CompletionRequest, Conversation, ModelProfile
from lmclient.core.request import own_attempts

PROFILE = ModelProfile(provider="openai-chat", model="m")


def attempt() -> Attempt:
    return Attempt(profile=PROFILE, started=datetime.datetime.now(datetime.UTC))


def test_own_attempts_are_told_apart_and_seen_from_outside() -> None:
    outer = CompletionRequest(profile=PROFILE, conversation=Conversation.create("Hi"))
    outer.attempts.append(before := attempt())
    first, second = own_attempts(outer), own_attempts(outer)
    first.attempts.append(one := attempt())
    second.attempts.extend([two := attempt()])
    assert [*first.attempts] == [before, one]
    assert [*second.attempts] == [before, two]
    assert outer.attempts == [before, one, two]


def test_a_copy_of_the_attempts_is_a_list_like_others() -> None:
    outer = CompletionRequest(profile=PROFILE, conversation=Conversation.create("Hi"))
    own = own_attempts(outer)
    own.attempts.append(attempt())
    for copied in (copy.copy(own.attempts), copy.deepcopy(own.attempts), own.attempts[:]):
        assert type(copied) is list
        copied.append(attempt())
    assert len(outer.attempts) == len(own.attempts) == 1
