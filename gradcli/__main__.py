"""`python -m gradcli`."""

from gradcli.cli.main import main

if __name__ == "__main__":
    main()
