"""The doctor: reads a library and says where its labels are wrong, and what to do about it."""
