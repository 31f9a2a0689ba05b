"""Distillation (Jiao 2020, TinyBERT): a small network learns from a large one, layer by layer, then by its answers."""
