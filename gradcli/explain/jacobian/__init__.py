"""What `gradcli jacobian` shows: J, how much of it, and how many passes it takes."""
