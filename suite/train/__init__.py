"""The training loop and what it is made of: tasks, schedule, exchange, checkpoints."""
