"""What a program is made of: operations, the world that offers them, and one execution of it."""
