"""Settings: how an application or a deployment wants lmclient to work.

Later sources win: defaults, `[tool.lmclient]` of pyproject.toml, lmclient.toml, .env, environment
variables (`LMCLIENT_…`, nested with `__`), arguments. Files are those of the working directory, and
are read when `Settings()` is called.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from lmclient.errors import ConfigurationError
from lmclient.profiles.category import Category
from lmclient.profiles.model import PositiveCount, Price, Seconds, Table
from lmclient.profiles.secrets import MaskedUrl
from lmclient.profiles.wrong_values import WrongValue, wrong_values

LOCAL_PROFILE = "local"
"""The profile of the embedded model, to which every category points until the user says otherwise."""

_FILES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("lmclient.toml", ()),
    ("pyproject.toml", ("tool", "lmclient")),
)
_IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*[.:][^\W\d]\w*")


def _import_path(value: str) -> str:
    if not _IMPORT_PATH.fullmatch(value):
        raise ValueError("an import path such as 'package.module:name'")
    return value


def _profile_names(value: object) -> object:
    names = list(value) if isinstance(value, list | tuple) else [value]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("the name of a profile, or a list of names")
    return value


def _read_toml(file: str, tables: tuple[str, ...]) -> dict[str, Any]:
    """The settings in a file of the working directory, empty if there is none."""
    try:
        values: Any = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"The settings in {file} cannot be read: {error}.") from error
    for table in tables:
        values = values.get(table, {})
        if not isinstance(values, dict):
            raise ConfigurationError(f"Settings: {table}: expected a table (in {file}).")
    return dict(values)


def _user_data_dir() -> Path:
    import platformdirs

    return platformdirs.user_data_path("lmclient")


def _url_of(*schemes: str) -> AfterValidator:
    def check(value: str) -> MaskedUrl:
        if not value.startswith(tuple(f"{scheme}://" for scheme in schemes)):
            raise ValueError("a URL that begins with " + " or ".join(f"{scheme}://" for scheme in schemes))
        return MaskedUrl(value)

    return AfterValidator(check)


Directory = Annotated[Path, AfterValidator(Path.expanduser)]
LedgerUrl = Annotated[str, _url_of("sqlite", "postgresql")]
RedisUrl = Annotated[str, _url_of("redis", "rediss", "unix")]
StorageUrl = Annotated[str, _url_of("memory", "redis", "rediss")]
ProxyUrl = Annotated[str, _url_of("http", "https")]
ProfileNames = Annotated[str | list[str], BeforeValidator(_profile_names)]
ImportPath = Annotated[str, AfterValidator(_import_path)]


class Budget(Table):
    """At most `amount` of `currency` per `period`, for the calls that match.

    `profile` and `tags` limit it to one profile and to calls with these tags; the tag value `"*"`
    gives each value a budget of its own. A warning is due at the share `warn_at` of the amount.
    """

    name: Annotated[str, Field(min_length=1)]
    amount: Price
    currency: Annotated[str, Field(min_length=1)] = "USD"
    period: Literal["day", "month", "total"] = "month"
    profile: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    warn_at: Annotated[float, Field(gt=0, le=1)] = 0.8


class SpendSettings(Table):
    """The ledger: `url` is `sqlite:///file` or `postgresql://…`, by default a file in `data_dir`."""

    enabled: bool = True
    url: LedgerUrl | None = None
    budgets: tuple[Budget, ...] = ()


class CacheSettings(Table):
    """The completion cache. `ttl` is seconds, `size_limit` bytes; `dir` is by default in `data_dir`."""

    enabled: bool = False
    backend: Literal["disk", "redis"] = "disk"
    dir: Directory | None = None
    ttl: Seconds = 86_400.0
    size_limit: PositiveCount = 1_073_741_824
    redis_url: RedisUrl | None = None

    @model_validator(mode="after")
    def _redis_is_somewhere(self) -> CacheSettings:
        if self.enabled and self.backend == "redis" and self.redis_url is None:
            raise ValueError("a redis_url (redis://host:6379/0) beside backend = 'redis'")
        return self


class RetrySettings(Table):
    """`attempts` counts the first one, too; `max_wait` is the longest pause between two, in seconds."""

    attempts: PositiveCount = 4
    max_wait: Annotated[float, Field(ge=0)] = 30.0


class RateLimitSettings(Table):
    """Where the state of the limits lives: `memory://`, or `redis://…` for many machines."""

    storage_url: StorageUrl = MaskedUrl("memory://")


class ServerToken(Table):
    """Who may use the gateway with this bearer token: at least 16 printable ASCII characters.

    Its calls get the tag `token` with its `name`, and its `tags`, which a request cannot change. Its
    `budgets` count these calls only. `categories` are the categories and profiles it may name, all if
    None.
    """

    name: Annotated[str, Field(min_length=1)]
    token: SecretStr
    tags: dict[str, str] = Field(default_factory=dict)
    budgets: tuple[Budget, ...] = ()
    categories: tuple[str, ...] | None = None

    @field_validator("token")
    @classmethod
    def _is_hard_to_guess(cls, value: SecretStr) -> SecretStr:
        token = value.get_secret_value()
        if len(token) < 16 or not (token.isascii() and token.isprintable()) or " " in token:
            raise ValueError("at least 16 printable ASCII characters without spaces")
        return value


class ServerSettings(Table):
    """The gateway. Without `tokens` it serves the own machine only.

    `allow_hosts` are names under which it may be addressed besides the loopback ones,
    `allow_origins` the sites (`https://app.example.com`) whose pages may call it, `max_body` the
    longest request in bytes.
    """

    tokens: tuple[ServerToken, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    max_body: PositiveCount = 10 * 2**20

    @model_validator(mode="after")
    def _names_differ(self) -> ServerSettings:
        if len({token.name for token in self.tokens}) < len(self.tokens):
            raise ValueError("tokens whose names differ")
        return self


class Settings(BaseSettings):
    """The settings of a client. Frozen; `repr` shows no password.

    `categories` always holds the six standard ones; each names a profile, or a list of profiles of
    which the later ones are fallbacks. `proxy=None` takes the environment's proxies, `ca_bundle=None`
    the system's certificates. Raises `ConfigurationError` naming the setting, what was expected and
    the source of the wrong value.
    """

    model_config = SettingsConfigDict(
        env_prefix="LMCLIENT_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        env_file=".env",
        env_file_encoding="utf-8",
        # Other programs' variables in .env are none of our business.
        dotenv_filtering="only_existing",
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        defer_build=True,
    )

    profiles_dir: Directory = Path("profiles")
    data_dir: Directory = Field(default_factory=_user_data_dir)
    categories: dict[str, ProfileNames] = Field(default_factory=dict)
    interceptors: tuple[ImportPath, ...] = ()
    spend: SpendSettings = Field(default_factory=SpendSettings)
    cache: CacheSettings = Field(default_factory=CacheSettings)
    retry: RetrySettings = Field(default_factory=RetrySettings)
    rate_limit: RateLimitSettings = Field(default_factory=RateLimitSettings)
    server: ServerSettings = Field(default_factory=ServerSettings)
    proxy: ProxyUrl | None = None
    tls_verify: bool = True
    ca_bundle: Directory | None = None

    _chosen_categories: frozenset[str] = PrivateAttr(frozenset())

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _configuration_error(error, values) from error
        except SettingsError as error:
            raise _unreadable_variable(error) from error
        except UnicodeDecodeError as error:
            raise ConfigurationError(f".env of the working directory is not UTF-8 text: {error}.") from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The sources, the strongest first."""
        files = [InitSettingsSource(settings_cls, _read_toml(*file)) for file in _FILES]
        return init_settings, env_settings, dotenv_settings, *files

    def model_post_init(self, context: Any, /) -> None:
        """Fills in the defaults that depend on other settings."""
        categories, chosen = _complete(self.categories)
        self._chosen_categories = chosen
        # The settings are frozen for everyone else; here they are still being made.
        made = self.__dict__
        made["categories"] = categories
        if self.spend.url is None:
            url = MaskedUrl(f"sqlite:///{self.data_dir / 'ledger.sqlite3'}")
            made["spend"] = self.spend.model_copy(update={"url": url})
        if self.cache.dir is None:
            made["cache"] = self.cache.model_copy(update={"dir": self.data_dir / "cache"})

    def chose_category(self, name: str) -> bool:
        """Whether the user set this category, in any source, rather than leaving it at its default."""
        return name in self._chosen_categories


def _complete(given: dict[str, str | list[str]]) -> tuple[dict[str, str | list[str]], frozenset[str]]:
    """The categories with the standard ones filled in, and the names of those that were given.

    Names differ by more than case, since those of environment variables have none: the first
    spelling is kept, the last value (that of the strongest source) wins.
    """
    categories: dict[str, str | list[str]] = {category.value: LOCAL_PROFILE for category in Category}
    spelling = {name: name for name in categories}
    chosen = set()
    for name, profiles in given.items():
        known = spelling.setdefault(name.lower(), name)
        categories[known] = profiles
        chosen.add(known)
    return categories, frozenset(chosen)


def _configuration_error(error: ValidationError, arguments: dict[str, Any]) -> ConfigurationError:
    first, *rest = wrong_values(error, Settings)
    source = _source_of(first, arguments)
    where = f" (in {source})" if source else ""
    more = f" (and {len(rest)} more)" if rest else ""
    return ConfigurationError(f"Settings: {first.message}{where}{more}.")


def _unreadable_variable(error: SettingsError) -> ConfigurationError:
    # pydantic-settings says which only in its message: field "retry" from source "EnvSettingsSource".
    names = re.search(r'field "(\w+)" from source "(\w+)"', str(error))
    if names is None:
        return ConfigurationError(f"Settings: {error}.")
    source = ".env" if names[2].startswith("DotEnv") else "the environment"
    variable = f"LMCLIENT_{names[1].upper()}"
    return ConfigurationError(
        f"Settings: {names[1]}: expected JSON, or single values as {variable}__… (in {source})."
    )


def _source_of(wrong: WrongValue, arguments: dict[str, Any]) -> str | None:
    """The strongest source that holds the wrong value."""
    sources = [
        ("the arguments", arguments),
        ("the environment", EnvSettingsSource(Settings)()),
        (".env", DotEnvSettingsSource(Settings)()),
        *((file, _read_toml(file, tables)) for file, tables in _FILES),
    ]
    path = wrong.key.split(".")
    return next((name for name, values in sources if _holds(values, path)), None)


def _holds(values: object, path: list[str]) -> bool:
    for part in path:
        if isinstance(values, list | tuple):
            return True
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True
