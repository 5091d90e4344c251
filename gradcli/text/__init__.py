"""Text on a terminal: lines of a given width, and replacements for letters that it cannot show."""
