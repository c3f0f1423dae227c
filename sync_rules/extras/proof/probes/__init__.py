"""The probes, a module for each service."""
