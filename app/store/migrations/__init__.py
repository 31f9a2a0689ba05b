"""How the tables came to be: numbered steps from an empty database to today's."""
