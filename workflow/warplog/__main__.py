"""`python3 -m warplog`: the same as the command `warplog`."""

import sys

from warplog.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
