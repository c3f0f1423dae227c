"""The entry point: `sync-rules`, and `python -m sync_rules`. It imports the command line where it can handle Ctrl-C."""

import gc
import sys

INTERRUPTED = 130  # as `cli.exit_codes` has it, which may not have been imported yet


def main() -> int:
    """Run one command and return its exit code."""
    gc.set_threshold(100_000, 20, 50)  # items stay or go without cycles: by default the looks take 16 % of a replay
    try:
        from sync_rules.cli.main import main as run  # noqa: PLC0415 - its imports take most of a short command's time

        return run()
    except KeyboardInterrupt:
        print("sync-rules: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
