"""The prover of access patterns."""
