"""The facts, their probes, and the estimate of the cost."""

from __future__ import annotations

import re
from decimal import Decimal

from sync_rules.extras.proof import cost_estimate
from sync_rules.extras.proof.commands.selftest import LAST, PROBES
from sync_rules.extras.proof.probe import ASSUMPTIONS
from sync_rules.extras.proof.proof_stack import CODE, make_template
from tests.deploy.lies import CORRECTIONS
from tests.docs.reference import ROOT

INLINE_CODE_MAX_CHARACTERS = 4_096  # of a function in a template


def test_registry_every_fact_has_a_probe_or_a_reason():
    """A fact has a probe, or says why minutes in an account cannot show it, and never both."""
    assert PROBES.keys() == {number for number, one in ASSUMPTIONS.items() if not one.not_tested}
    assert set(LAST) <= PROBES.keys()


def test_cost_is_within_its_limit():
    """The estimate with all its parts stays under the limit."""
    assert sum(part.cost for part in cost_estimate.list_parts()) == cost_estimate.compute_total() < Decimal("0.25")
    assert len(cost_estimate.list_lines()) == len(list(cost_estimate.list_parts()))


def test_page_has_the_numbers_of_the_code():
    """The walk shows the estimate, its parts and the number of facts as the command does, and the engine's gaps."""
    page = (ROOT / "docs/proof/selftest.md").read_text()
    shown = [line.strip() for line in page.splitlines() if line.endswith(" USD") and "   " in line.strip()]
    assert shown
    assert set(shown) <= set(cost_estimate.list_lines())
    assert f"Estimated at {cost_estimate.compute_total():.2f} USD at most." in page
    assert f"an estimated {cost_estimate.compute_total():.2f} USD" in page
    hold, untested = map(int, re.findall(r"(\d+) hold, (\d+) not tested", page)[0])
    assert (hold + untested, f"({len(PROBES)} facts have a probe)" in page) == (len(ASSUMPTIONS), True)
    gaps = re.search(r"what this engine lacks: facts ([\d,\s]+) and (\d+)", page)
    assert gaps is not None
    assert {*map(int, re.findall(r"\d+", gaps[0]))} == CORRECTIONS.keys()


def test_template_code_fits_and_compiles():
    """The functions' code can be inline in a template, and is Python."""
    assert len(CODE) <= INLINE_CODE_MAX_CHARACTERS
    compile(CODE, "deployed.txt", "exec")


def test_template_names_everything_after_its_stack():
    """No resource has a name that another self-test's, or anybody else's, could have."""
    text = make_template("sync-rules-selftest-x")
    names = re.findall(r'"(?:\w*Name)": "([^"]+)"', text)
    own = {name for name in names if not name.removeprefix("/aws/lambda/").startswith("sync-rules-selftest-x")}
    assert own <= {"pk", "sk", "link", "by_link", "expires", "own"}
