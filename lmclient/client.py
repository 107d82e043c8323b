"""AsyncClient: one way to call every model."""

from __future__ import annotations

import inspect
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack

import msgspec

from lmclient.core.completion import Completion
from lmclient.core.conversation import Conversation, ConversationLike, Role
from lmclient.core.http import HttpRequest
from lmclient.core.request import CompletionRequest, Options
from lmclient.core.stream import AsyncCompletionStream
from lmclient.core.tools import Tool
from lmclient.errors import (
    BadRequestError,
    ConfigurationError,
    LMClientError,
    ProtocolError,
    UnsupportedOptionError,
)
from lmclient.interceptors.base import Closeable, Interceptor, chain
from lmclient.interceptors.retry import RetryInterceptor
from lmclient.profiles.directory import Profiles, Target
from lmclient.profiles.model import ModelProfile
from lmclient.providers.pool import ProviderPool
from lmclient.settings import Settings
from lmclient.transports.adapting import adapt
from lmclient.transports.base import HttpOptions

if TYPE_CHECKING:
    from lmclient.spend.client import AsyncSpend
    from lmclient.transports.adapting import TransportLike

T = TypeVar("T")


class CallOptions(TypedDict, total=False):
    """The options of `complete` and `stream`. None, and what is left out, takes the profile's value."""

    tools: Sequence[Tool] | None
    tool_choice: str
    """"auto", "required", "none" or the name of a tool."""
    parallel_tool_calls: bool | None
    response_format: Any
    """A type (pydantic model, dataclass, TypedDict, msgspec Struct) or a JSON schema."""
    retries: int
    """How often `complete` asks again, with what was wrong, for an answer that is no `response_format`."""
    max_tokens: int | None
    """The limit of output tokens, reasoning included; 0 is the server's own limit."""
    temperature: float | None
    top_p: float | None
    stop: str | Sequence[str] | None
    seed: int | None
    reasoning_effort: str | None
    extra_body: Mapping[str, Any] | None
    """Merged into the request's body as it is."""
    skip_cache: bool
    tags: Mapping[str, str] | None
    """Kept with the call's row in the ledger; never sent."""
    timeout: float | None
    """Seconds for the whole call, waiting and retries included, instead of `timeouts.total`."""


class AsyncClient:
    """Calls language models by category.

    `settings` are read from the environment and files if not given. `interceptors` replaces the
    chain that the settings describe (`[]` is one bare attempt). `transport` carries the requests
    instead of the default one, and stays the caller's to close: an `httpx2.AsyncClient`, an
    `openai.AsyncOpenAI` or `AsyncAzureOpenAI`, an `azure.ai.inference.aio.ChatCompletionsClient`, or
    any other `Transport`.

    May be shared by tasks and by event loops. `aclose` it, or use it in an `async with` block.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        interceptors: Sequence[Interceptor] | None = None,
        transport: TransportLike | None = None,
    ) -> None:
        from lmclient.default_chain import default_interceptors
        from lmclient.interceptors.loading import check_interceptor

        self.settings = settings = Settings() if settings is None else settings
        self._profiles = Profiles(settings)
        http = http_options(settings)
        given = None if transport is None else adapt(transport)
        self._providers = ProviderPool(http, settings.data_dir, given)
        self._models: dict[ModelProfile, list[str]] = {}
        if interceptors is None:
            interceptors = default_interceptors(settings, self._providers.fingerprint)
        self._interceptors = tuple(map(check_interceptor, interceptors))
        self._call = chain(self._interceptors, self._providers.open)
        self._streams: weakref.WeakSet[AsyncCompletionStream] = weakref.WeakSet()

    async def complete(
        self, target: Target, conversation: ConversationLike, **options: Unpack[CallOptions]
    ) -> Completion:
        """The whole answer of the model behind `target`.

        Raises what `lmclient.errors` lists: `ConfigurationError` and `BadRequestError` for what is
        wrong before anything is sent, `ProviderError` for what the provider refuses. An answer that
        does not fit `response_format` is returned as it is once `retries` are used up: its `parse`
        says what is wrong. `cost` and `requests` are those of the last such question alone; each has
        its own row in the ledger.
        """
        retries = options.pop("retries", 0)
        request = self._request(target, conversation, options, stream=False)
        completion = await (await self._call(request)).wait()
        while retries > 0 and (correction := asking_again(request, completion)) is not None:
            request, retries = correction, retries - 1
            completion = await (await self._call(request)).wait()
        return completion

    def stream(
        self, target: Target, conversation: ConversationLike, **options: Unpack[CallOptions]
    ) -> AsyncCompletionStream:
        """The answer as a stream of chunks, to be used in an `async with` block.

        The request is sent when the block is entered. An answer that stops before its end raises
        `StreamInterruptedError`; every error's `partial` holds what had arrived.
        """
        if options.pop("retries", 0):
            raise UnsupportedOptionError("A stream cannot be taken back; use retries with complete().")
        request = self._request(target, conversation, options, stream=True)
        stream = AsyncCompletionStream(lambda: self._call(request))
        self._streams.add(stream)
        return stream

    @property
    def spend(self) -> AsyncSpend:
        """What the calls have cost, as the ledger of the settings says: reports, totals and records."""
        from lmclient.spend.client import AsyncSpend
        from lmclient.spend.ledger import Ledger

        assert self.settings.spend.url is not None  # filled in by the settings
        return AsyncSpend(Ledger(self.settings.spend.url))

    def profile(self, target: Target) -> ModelProfile:
        """The profile behind `target`. Raises `ConfigurationError` if there is none."""
        return self._profiles.resolve(target)[0][0]

    async def models(self, target: Target, *, refresh: bool = False) -> list[str]:
        """The names of the models that the server behind `target` offers, asked for once.

        `refresh` asks again.
        """
        profile = self.profile(target)
        if refresh or profile not in self._models:
            provider = self._providers.provider(profile)
            self._models[profile] = await self._retried(profile, lambda: provider.models(profile))
        return list(self._models[profile])

    async def supports_tools(self, target: Target) -> bool:
        """Whether the model behind `target` can call tools, as far as its provider says."""
        profile = self.profile(target)
        return await self._providers.provider(profile).supports_tools(profile)

    async def count_tokens(self, target: Target, text_or_conversation: ConversationLike) -> int:
        """The input tokens that a call with this conversation costs, message frames included.

        A str is counted as a text by itself. Exact for text completion and chat on llama.cpp and for
        OpenAI's chat models, else an approximation: see `lmclient.providers.counting`. Raises what a
        call raises where a server has to be asked.
        """
        from lmclient.providers.counting import count_request, count_text

        profile = self.profile(target)
        provider = self._providers.provider(profile)
        if isinstance(text_or_conversation, str):
            text = text_or_conversation
            return await self._retried(profile, lambda: count_text(provider, profile, text))
        request = CompletionRequest(profile=profile, conversation=Conversation.of(text_or_conversation))
        return await self._retried(profile, lambda: count_request(provider, request))

    def preview(
        self, target: Target, conversation: ConversationLike, **options: Unpack[CallOptions]
    ) -> HttpRequest:
        """The HTTP request that `complete` would send, without sending it; its `repr` hides the key."""
        request = self._request(target, conversation, options, stream=False)
        return self._providers.provider(request.profile).preview(request)

    async def aclose(self) -> None:
        """Releases the connections. Calls afterwards raise `LMClientError`; closing again is fine.

        Streams that are still open on this event loop are left, so that what they cost is booked.
        """
        for stream in [*self._streams]:
            await stream.interrupt(LMClientError("The client was closed while the stream was read."))
        problem: Exception | None = None
        for interceptor in self._interceptors:
            if isinstance(interceptor, Closeable):
                try:
                    if inspect.isawaitable(closing := interceptor.aclose()):  # Hooks may have a plain one
                        await closing
                except Exception as error:  # the others are to be closed as well
                    problem = problem or error
        await self._providers.aclose()
        if problem is not None:
            raise problem

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def _request(
        self, target: Target, conversation: ConversationLike, options: CallOptions, *, stream: bool
    ) -> CompletionRequest:
        self._providers.check_open()
        profiles, category = self._profiles.resolve(target)
        profile = profiles[0]
        timeout, tags = options.pop("timeout", None), options.pop("tags", None)
        return CompletionRequest(
            profile=profile,
            fallbacks=tuple(profiles[1:]),
            category=category,
            conversation=Conversation.of(conversation),
            skip_cache=options.pop("skip_cache", False),
            tags={} if tags is None else _tags(tags),
            stream=stream,
            deadline=time.monotonic() + (profile.timeouts.total if timeout is None else _seconds(timeout)),
            options=_options(options),
        )

    async def _retried(self, profile: ModelProfile, ask: Callable[[], Awaitable[T]]) -> T:
        """What `ask` gives, with the retries that the chain gives a completion."""

        async def attempt(waited: float) -> T:
            return await ask()

        for interceptor in self._interceptors:
            if isinstance(interceptor, RetryInterceptor):
                return await interceptor.repeat(attempt, time.monotonic() + profile.timeouts.total)
        return await ask()


def asking_again(request: CompletionRequest, completion: Completion) -> CompletionRequest | None:
    """The request for a better answer, if this one does not fit the `response_format`, else None."""
    wanted = request.options.response_format
    if wanted is None or completion.tool_calls:
        return None
    from lmclient.core.structured import parse_completion, validation_message

    try:
        parse_completion(completion, wanted)
    except ProtocolError as problem:
        conversation = request.conversation.copy().append(completion)
        conversation.add(Role.USER, validation_message(problem))
        return CompletionRequest(
            profile=request.profile,
            fallbacks=request.fallbacks,
            category=request.category,
            conversation=conversation,
            options=request.options,
            skip_cache=request.skip_cache,
            tags=request.tags,
            deadline=request.deadline,
        )
    return None


def http_options(settings: Settings) -> HttpOptions:
    """How the settings say to reach servers."""
    return HttpOptions(
        proxy=settings.proxy,
        tls_verify=settings.tls_verify,
        ca_bundle=None if settings.ca_bundle is None else str(settings.ca_bundle),
    )


_NO_OPTIONS = Options()


def _options(options: CallOptions) -> Options:
    """The options, without those that were not given, and with values that make sense.

    Raises `ConfigurationError` for one that does not exist, `BadRequestError` for a wrong value.
    """
    if not options:
        return _NO_OPTIONS
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := given.keys() - set(Options.__struct_fields__):
        known = ", ".join(CallOptions.__annotations__)
        raise ConfigurationError(f"A call has no option {min(unknown)!r}; there are {known}.")
    if isinstance(given.get("stop"), str):
        given["stop"] = (given["stop"],)
    try:
        checked = msgspec.convert(given, Options)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        raise BadRequestError(f"The option {where.rstrip('`')} of the call is wrong: {problem}.") from None
    if checked.tool_choice not in ("auto", "none") and not checked.tools:
        raise BadRequestError(f"tool_choice is {checked.tool_choice!r}, but the call has no tools; add some.")
    return checked


def _seconds(timeout: object) -> float:
    if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0:
        return timeout
    raise BadRequestError(f"timeout is {timeout!r:.60}; expected seconds, more than 0.")


def _tags(tags: object) -> dict[str, str]:
    if isinstance(tags, Mapping) and all(isinstance(text, str) for pair in tags.items() for text in pair):
        return dict(tags)
    raise BadRequestError(f"tags is {tags!r:.60}; expected a dict of text to text.")
