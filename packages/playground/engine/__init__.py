"""The engine of the playground: the pipeline in memory, which a person steps through. It runs in a web worker."""
