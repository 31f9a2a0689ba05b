"""Pretraining of language models on plain text: corpora, vocabularies, token stores, objectives and their loop."""
