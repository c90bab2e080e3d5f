"""Paper 003's figures on admission (section V), with ours beside them."""
