"""Which bundle goes live: the gate that judges it, promotion, and the way back."""
