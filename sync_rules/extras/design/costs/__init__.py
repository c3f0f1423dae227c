"""Counts units and money: the prices of AWS by Region, months of load, and the costs of the pipeline's own work."""
