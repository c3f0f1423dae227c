"""This process, as the pipeline is handed it."""

from __future__ import annotations

import threading
import time
from typing import Final

from sync_rules.pipeline.requests import Host

THIS_PROCESS: Final = Host(time.time, time.monotonic, threading.Lock)
