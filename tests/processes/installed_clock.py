"""Imported first by the server from which all processes are forked: a module that imports time.time later has this clock."""

from tests.processes import clock

clock.install()
