"""The standard-sample library: import, labels, duplicate groups, splits, snapshots."""
