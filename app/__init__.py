"""What people and programs talk to: the command line, the HTTP server and the standard-sample library."""
