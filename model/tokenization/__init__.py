"""Text to model input: sub-words and character n-grams, read from a bundle's or run's `tokenizer.json`."""
