"""One request to the fault provider, as a scenario sees it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]
Endpoint = Literal["chat", "text", "models"]


@dataclass(frozen=True)
class Call:
    """One request, as a scenario sees it."""

    method: str
    scenario: str
    key: str  # "" without one
    path: str  # after scenario and key: "/v1/chat/completions"
    headers: Mapping[str, str]  # names in lower case
    body: Json  # {} if it is not a JSON object
    number: int = 0  # 1 for the first request to this scenario and key
    seed: int = 0

    @property
    def endpoint(self) -> Endpoint:
        if self.path.endswith("/chat/completions"):
            return "chat"
        return "text" if self.path.endswith("/completions") else "models"

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True

    @property
    def credentials(self) -> str | None:
        """The first header that carries a key, whatever the provider calls it."""
        names = ("authorization", "api-key", "x-api-key")
        return next((self.headers[name] for name in names if self.headers.get(name)), None)

    def rng(self) -> random.Random:
        return random.Random(f"{self.seed}:{self.scenario}:{self.number}")

    def problem(self) -> str | None:
        """What is wrong with the request, so that no scenario can answer it."""
        if not self.path.endswith(("/completions", "/models")):
            return f"there is no endpoint {self.path}"
        method = "GET" if self.endpoint == "models" else "POST"
        if self.method != method:
            return f"{self.path} wants {method}, not {self.method}"
        content = "messages" if self.endpoint == "chat" else "prompt"
        if method == "POST" and not (isinstance(self.body.get("model"), str) and self.body.get(content)):
            return f'the body must be a JSON object with "model" and "{content}"'
        return None
