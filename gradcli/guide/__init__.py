"""The guide: a page a topic, as Markdown whose examples run, and the messages of PyTorch's that the pages explain."""
