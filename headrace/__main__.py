"""`python -m headrace`: the command, where its script is not on the PATH."""

from headrace.cli.main import main

if __name__ == "__main__":
    main()
