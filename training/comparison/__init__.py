"""Comparison: which of several runs is best, whether that is more than chance, and what it costs."""
