"""Profiles: which model stands behind a name or a category. Importing this reads no file."""

from __future__ import annotations

from lmclient.profiles.category import Category
from lmclient.profiles.directory import Profiles, Target, resolve
from lmclient.profiles.model import Cost, CostTier, Limits, ModelProfile, Timeouts

__all__ = [
    "Category",
    "Cost",
    "CostTier",
    "Limits",
    "ModelProfile",
    "Profiles",
    "Target",
    "Timeouts",
    "resolve",
]
