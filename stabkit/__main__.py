"""The `stabkit` command and `python -m stabkit`: Ctrl-C is answered in one line even while the command line loads."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from stabkit.cli.entry import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
