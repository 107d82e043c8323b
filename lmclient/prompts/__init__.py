"""Prompt formats for text completion, and the parsers of the answers."""
