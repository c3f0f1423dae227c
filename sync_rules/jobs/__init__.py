"""Long work that stops and resumes, on this machine or in the account: backfill, dry run, redrive, consume."""
