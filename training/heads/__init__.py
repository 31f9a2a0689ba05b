"""BERT's heads beside classification: token labelling, answer spans and multiple choice, from files of JSON lines."""
