"""Paper 000's evaluation of its thirteen optimisers (section 7), with ours beside them."""
