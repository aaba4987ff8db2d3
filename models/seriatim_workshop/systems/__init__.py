"""Real queues, each started, driven, judged and stopped by one command."""
