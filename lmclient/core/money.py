"""How money is added up."""

from __future__ import annotations

from decimal import Context

EXACT = Context(prec=100)
"""Money is added up without rounding, whatever the caller's own decimal context says."""
