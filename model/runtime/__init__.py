"""Text in, prediction out: the one path that evaluation, jobs and the server share. Never imports torch."""
