"""The whole pipeline in memory: scenarios, recordings, replays, the demo, the pytest plugin."""
