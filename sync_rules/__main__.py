"""`python -m sync_rules` is `sync-rules`."""

import sys

from sync_rules.cli.main import main

sys.exit(main())
