"""The laboratory: the pipeline in memory, under bad deliveries, on scenarios and on recordings."""
