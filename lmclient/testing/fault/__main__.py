"""`python -m lmclient.testing.fault [--port P] [--seed S]` serves until Ctrl-C."""

import sys

from lmclient.testing.cli import app

app(["serve", "fault", *sys.argv[1:]], prog_name="python -m lmclient.testing.fault")
