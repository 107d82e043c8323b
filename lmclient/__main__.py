"""`python -m lmclient` is the command `lmclient`."""

from lmclient.cli import main

if __name__ == "__main__":
    main()
