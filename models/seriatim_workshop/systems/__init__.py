"""Real queues, each started, driven, checked and stopped by one command."""
