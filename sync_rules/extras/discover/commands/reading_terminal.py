"""The terminal of a reading of items: lines, the question before it costs money, and a moving line while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sync_rules.cli.confirmation import confirm
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.display import open_display
from sync_rules.cli.signals import stop_signals
from sync_rules.extras.discover.propose.item_collection import ReadingMeter, time_left


class Terminal:
    """Standard error, and the person who reads it."""

    def tell(self, line: str) -> None:
        """Print a line."""
        print(line, file=sys.stderr, flush=True)

    def agree(self, question: str, *, yes: bool) -> bool:
        """Ask a question. Raises UserError where there is no terminal to ask."""
        return confirm(question, yes=yes)

    @contextmanager
    def watch(self, meter: ReadingMeter) -> Iterator[tuple[Callable[[], bool], Callable[[], None]]]:
        """Show a meter while items are read. Gives a test for the signal to stop, and the update of the display."""
        console = make_console(stderr=True)
        with stop_signals() as stopping, open_display(console, line) as display:
            yield stopping, lambda: display.update(lambda: meter)


def line(meter: ReadingMeter) -> str:
    """The figures of a reading on one line."""
    of = meter.of_items if meter.items <= meter.of_items else None  # else there are more than DynamoDB has counted
    figures = [f"{meter.items:,}{f' of about {of:,}' if of else ''} items"]
    if meter.units:
        figures.append(f"{meter.units:,.0f} read units")
    if of:
        figures += time_left(meter.items - meter.before, of - meter.before, meter.began)
    return " · ".join(["reading", *figures])
