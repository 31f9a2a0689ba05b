"""The formats that a snapshot can leave in, one file each or one family of them."""
