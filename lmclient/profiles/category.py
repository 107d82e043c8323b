"""The categories that every deployment has."""

from __future__ import annotations

import enum


class Category(enum.StrEnum):
    """How capable a model the application wants; settings name the profile behind each.

    Applications may use names of their own beside these.
    """

    SMALL = "s"
    MEDIUM = "m"
    LARGE = "l"
    XLARGE = "xl"
    HOT = "hot"
    COLD = "cold"
