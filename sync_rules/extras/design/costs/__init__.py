"""Counts units and money: the prices of AWS by Region, months of load, and what the pipeline's own work costs."""
