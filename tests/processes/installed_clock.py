"""Imported first by the server from which all processes are forked: whoever takes time.time later has this clock."""

from tests.processes import clock

clock.install()
