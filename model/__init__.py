"""What a classifier is: its types, its file formats, its tokenizers, its architectures and its runtime."""
