"""`python -m sync_rules` is `sync-rules`."""

import sys

from sync_rules.cli import main

sys.exit(main())
