"""The loop: the only folder that sees planners and runtime, and all that the skins (cli, web) may call."""
