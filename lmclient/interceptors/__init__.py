"""The chain of interceptors that every call passes. Each stands in a module of its own."""
