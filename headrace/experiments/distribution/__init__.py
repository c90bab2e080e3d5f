"""Paper 002's figures on distribution and redistribution (sections 5 and 6), with ours beside them."""
