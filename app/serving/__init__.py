"""Loaded models and the queue in front of each."""
