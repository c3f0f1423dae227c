"""The function that generated call rules name. The world answers calls, so the function never runs."""


def noted(_change: object) -> None:
    """Stand for a user's function."""
    raise AssertionError("the world answers calls")
