"""The blocks that no test runs, and why. Each is named by its page and its first line."""

NOT_RUN = {
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install -q -e '.[local]'"): (
        "installs packages; local-model.md runs the commands behind that"
    ),
    ("README.md", "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]'"): (
        "is the test run itself; .ci/run executes it"
    ),
    ("README.md", ".venv/bin/mkdocs build"): "builds the documentation, which .ci/run executes, too",
    ("quickstart.md", "pip install"): "installs packages",
    ("benchmarks.md", ".venv/bin/python tests/benchmarks"): "takes minutes of CPU",
    ("errors.md", "LMClientError\n"): "is no output; test_reference.py compares it with lmclient.errors",
}
