"""`python -m stabkit`."""

from stabkit.cli import main

if __name__ == "__main__":
    main()
