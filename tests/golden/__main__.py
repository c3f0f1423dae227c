"""`python -m tests.golden` writes every expected file again, and removes files that no producer makes any more."""

from __future__ import annotations

from tests.golden.files import EXPECTED, put
from tests.golden.surface import PRODUCERS

if __name__ == "__main__":
    texts = {name: text for produce in PRODUCERS for name, text in produce().items()}
    EXPECTED.mkdir(exist_ok=True)
    for path in EXPECTED.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        put(name, text)
    print(f"wrote {len(texts)} files to {EXPECTED}")
