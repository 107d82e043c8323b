"""The embedded local model: weights on disk and an in-process llama.cpp server (extra `local`)."""
