"""What runs under the Python peers, in their own environments: nothing here imports this project."""
