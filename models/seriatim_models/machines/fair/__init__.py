"""The fair consumer: its calls, its model, generated programs."""
