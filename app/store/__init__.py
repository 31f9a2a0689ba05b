"""What wenlei remembers: tables, queries and migrations, on SQLite or PostgreSQL."""
