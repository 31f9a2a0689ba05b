"""Reports: HTML pages that need nothing else: no script, no network, no file beside them."""
