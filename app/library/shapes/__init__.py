"""What commands print as JSON and HTTP answers: the same shapes for both."""
