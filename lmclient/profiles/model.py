"""ModelProfile: what stands behind a name: provider, model, prompt format, limits and prices."""

from __future__ import annotations

import copy
import re
from decimal import Decimal
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    ValidationError,
    model_validator,
)

from lmclient.errors import ProfileError
from lmclient.profiles.secrets import MaskedDict, is_secret_name, without_secrets
from lmclient.profiles.wrong_values import wrong_values


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number")
    return value


def _exact(value: object) -> object:
    # A float is what the user typed: 0.1 means one tenth, not the nearest binary fraction.
    return str(value) if isinstance(value, float) else _no_bool(value)


def _header_safe(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError("printable ASCII characters only")
    return value


def _key(value: object) -> object:
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str):
        return value
    # Keys read from files and pasted into variables often carry a line end.
    stripped = text.strip()
    return SecretStr(_header_safe(stripped)) if stripped else None


def _url(value: str) -> str:
    stripped = value.strip()
    if not stripped:
        return ""
    try:
        parts = urlsplit(stripped)
        _ = parts.port  # raises for one that is no number up to 65535
    except ValueError:
        raise ValueError("a valid URL") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ValueError("a URL that begins with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("a URL without user and password (send them as an authorization header)")
    return stripped


def _tag(value: str) -> str:
    if not re.fullmatch(r"[^<>/\s]*", value):
        raise ValueError("the name of a tag, such as 'think' for <think>…</think>")
    return value


def _opened(value: Any) -> Any:
    """The value with what `_closed` wrapped taken out again."""
    if isinstance(value, dict):
        return {name: _opened(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_opened(inner) for inner in value]
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def _closed(value: Any) -> Any:
    """The value with every text wrapped that stands under a secret name."""
    if isinstance(value, dict):
        return {
            name: SecretStr(inner) if isinstance(inner, str) and is_secret_name(str(name)) else _closed(inner)
            for name, inner in value.items()
        }
    return [_closed(inner) for inner in value] if isinstance(value, list) else value


HeaderValue = Annotated[str, AfterValidator(_header_safe)]
_MASKED = (BeforeValidator(_opened), AfterValidator(MaskedDict), PlainSerializer(_closed))
Headers = Annotated[dict[str, HeaderValue], *_MASKED]
Query = Annotated[dict[str, str], *_MASKED]
Body = Annotated[dict[str, Any], *_MASKED]
Price = Annotated[Decimal, BeforeValidator(_exact), Field(ge=0)]
Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0)]
PositiveCount = Annotated[int, BeforeValidator(_no_bool), Field(gt=0)]
Temperature = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, le=2)]
Share = Annotated[float, BeforeValidator(_no_bool), Field(ge=0, le=1)]
Seconds = Annotated[float, BeforeValidator(_no_bool), Field(gt=0)]


class Table(BaseModel):
    """A table of a profile or of the settings: frozen, without unknown keys; empty text is not set."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if value != ""}


class CostTier(Table):
    """Prices of a whole request with more than `above_input_tokens` input tokens.

    A tier changes the prices that it names; the others stay as they are in `Cost`.
    """

    above_input_tokens: Count
    input: Price | None = None
    cached_input: Price | None = None
    cache_write: Price | None = None
    cache_write_1h: Price | None = None
    output: Price | None = None
    reasoning: Price | None = None


class Cost(Table):
    """Prices per million tokens, exact; numbers may be given as text, int or float.

    None means not given: `cached_input` and `cache_write` then cost as `input`, `cache_write_1h` as
    `cache_write`, `reasoning` as `output`; without `input` and `output` the profile states no price.
    `tiers` are sorted by `above_input_tokens`.
    """

    input: Price | None = None
    cached_input: Price | None = None
    cache_write: Price | None = None
    cache_write_1h: Price | None = None
    output: Price | None = None
    reasoning: Price | None = None
    currency: Annotated[str, Field(min_length=1)] = "USD"
    tiers: Annotated[
        tuple[CostTier, ...], AfterValidator(lambda tiers: tuple(sorted(tiers, key=_tier_start)))
    ] = ()


def _tier_start(tier: CostTier) -> int:
    return tier.above_input_tokens


class Limits(Table):
    """What the provider allows; None is no limit. Profiles with the same `group` share theirs."""

    requests_per_minute: PositiveCount | None = None
    tokens_per_minute: PositiveCount | None = None
    concurrency: PositiveCount | None = None
    group: str | None = None


class Timeouts(Table):
    """In seconds: to connect, until the first byte, between two pieces of a stream, and for all."""

    connect: Seconds = 10.0
    first_byte: Seconds = 120.0
    idle: Seconds = 60.0
    total: Seconds = 600.0


class ModelProfile(Table):
    """One way to reach one model. Only `provider` is required; `name` defaults to the model.

    None (for `max_tokens`, `temperature`, `top_p`, `reasoning_…`) means not set: nothing is sent and
    the server decides. `max_tokens=0` asks for the server's own limit as well. An empty `model`
    asks the server for its first one, an empty `url` is the provider's own.

    Frozen. `repr`, `model_dump` and errors never show `api_key` or secret headers, and pickling
    leaves them out: a process that unpickles a profile gives them anew. Raises `ProfileError`
    naming the key and what was expected.
    """

    name: str = ""
    provider: Annotated[str, Field(min_length=1)]
    model: str = ""
    url: Annotated[str, AfterValidator(_url)] = ""
    api_key: Annotated[SecretStr | None, BeforeValidator(_key)] = None
    category: str | None = None
    max_tokens: Count | None = None
    max_context_length: Count | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    prompt_format: str = ""
    tokenizer: str = ""
    token_encoding: str = "o200k_base"
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    reasoning_tags: Annotated[str, AfterValidator(_tag)] = ""
    roles: Literal["as-is", "alternating"] = "as-is"
    on_overflow: Literal["error", "drop-oldest"] = "error"
    special_tokens: Literal["escape", "reject", "allow"] = "escape"
    extra_body: Body = Field(default_factory=MaskedDict)
    extra_query: Query = Field(default_factory=MaskedDict)
    headers: Headers = Field(default_factory=MaskedDict)
    cost: Cost = Field(default_factory=Cost)
    limits: Limits = Field(default_factory=Limits)
    timeouts: Timeouts = Field(default_factory=Timeouts)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise profile_error(error, str(values.get("name") or values.get("model") or "")) from error

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.name:
            # Before anyone holds the profile, so it is still as good as frozen.
            self.__dict__["name"] = self.model or self.provider
        return self

    def __hash__(self) -> int:
        return hash((self.name, self.provider, self.model, self.url))

    def __getstate__(self) -> dict[Any, Any]:
        state = copy.copy(super().__getstate__())
        state["__dict__"] = {**without_secrets(state["__dict__"]), "api_key": None}
        return state


def profile_error(error: ValidationError, name: str, file: str | None = None) -> ProfileError:
    """The first of the wrong values as a `ProfileError` that names the profile, or its file."""
    first, *rest = wrong_values(error, ModelProfile)
    where = (f"Profile {name!r}" if name else "A profile") + (f" ({file})" if file else "")
    more = f" (and {len(rest)} more)" if rest else ""
    return ProfileError(f"{where}: {first.message}{more}.", file=file, key=first.key, expected=first.expected)
