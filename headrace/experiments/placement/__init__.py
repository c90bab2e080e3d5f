"""Paper 001's figures on join order and placement (sections 1 and 4), with ours beside them."""
