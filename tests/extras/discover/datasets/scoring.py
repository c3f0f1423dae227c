"""Scores of the search itself: each data set at each share of drift, proposed in this process and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sync_rules.extras.discover.propose.proposal_writer import written
from sync_rules.extras.discover.propose.search import propose
from tests.extras.discover.datasets.dataset import DataSet
from tests.extras.discover.datasets.drawn import drawn
from tests.extras.discover.datasets.generated import GENERATED
from tests.extras.discover.datasets.held_out import HELD_OUT
from tests.extras.discover.datasets.measure import Score, measure
from tests.extras.discover.datasets.shared_sets import SHARED

SHARES: Final = (0.0, 0.01, 0.1)
ALL: Final[Mapping[str, Callable[[], DataSet]]] = {**GENERATED, **SHARED, **HELD_OUT}
AT_LEAST: Final = 0.95  # precision, and recall


def score(made: Callable[[], DataSet], share: float, kept: Path | None = None) -> Score:
    """The score of what is proposed for a data set in which this share drifted. Its rules file goes to `kept`."""
    data = made()
    data.plant(share)
    with TemporaryDirectory() as folder:
        gathered = data.gathered(Path(folder) / "export")
        proposal = propose(gathered, Path(folder) / "work")
        text = written(proposal)
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        (kept / f"{data.name}-{share:.0%}.yaml").write_text(text, encoding="utf-8")
    data.name = f"{data.name} {share:.0%}"
    return measure(data, proposal, text)


def scores(
    names: list[str], shares: list[float], seeds: range, bare: range, kept: Path | None = None
) -> Iterator[Score]:
    """The score of each of these data sets, and of those drawn of these seeds, `bare` ones too, at each share."""
    chosen: list[Callable[[], DataSet]] = [made for name, made in ALL.items() if name in names]
    chosen += [partial(drawn, seed) for seed in seeds]
    chosen += [partial(drawn, seed, bare=True) for seed in bare]
    for made in chosen:
        for share in shares:
            yield score(made, share, kept)
