"""The version of gradcli, in one place."""

VERSION = "0.1.0"
