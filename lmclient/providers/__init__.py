"""Providers: who answers, as protocol × transport × dialect. See `registry.py` and `base.py`."""
