"""Review: people look at the samples where a look is worth most."""
