"""Carriers of bytes: each module sends an `HttpRequest` over one HTTP library. See `base.py`."""
