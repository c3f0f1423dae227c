"""Models of the protocol, one for each promise, checked by Spin: `make proofs`."""
