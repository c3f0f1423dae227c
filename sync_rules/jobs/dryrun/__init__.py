"""What `sync-rules plan` is made of: a store that writes nothing, figures, prices."""
