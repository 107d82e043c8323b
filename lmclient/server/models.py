"""GET /v1/models: the categories and profiles, as OpenAI lists models.

https://platform.openai.com/docs/api-reference/models
"""

from __future__ import annotations

import time
from typing import Any

from starlette.types import Receive, Scope, Send

from lmclient.errors import NotFoundError
from lmclient.server.access import Caller
from lmclient.server.calling import Calling, Model
from lmclient.server.sending import send_error, send_json
from lmclient.ui.events import encode


class Models:
    """Answers with all names that the caller may use, or with the one in the path.

    Under `lmclient` stand the `kind` ("category" or "profile") and the `profiles` behind the name.
    """

    def __init__(self, calling: Calling) -> None:
        self._calling = calling
        self._created = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        name = scope["path_params"].get("name")
        try:
            models = self._calling.models(caller)
            body = self._list(models) if name is None else self._one(models, name)
        except Exception as error:  # the boundary: what went wrong becomes an answer
            await send_error(error, send)
            return
        await send_json(200, encode(body), send)

    def _list(self, models: list[Model]) -> dict[str, Any]:
        return {"object": "list", "data": [self._json(model) for model in models]}

    def _one(self, models: list[Model], name: str) -> dict[str, Any]:
        for model in models:
            if model.name == name:
                return self._json(model)
        raise NotFoundError(f"There is no model {name!r:.80}.", status=404, code="model_not_found")

    def _json(self, model: Model) -> dict[str, Any]:
        return {
            "id": model.name,
            "object": "model",
            "created": self._created,
            "owned_by": "lmclient",
            "lmclient": {
                "kind": "category" if model.is_category else "profile",
                "profiles": model.profiles,
            },
        }
