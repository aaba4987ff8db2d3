"""What a program is made of: operations, the world that offers them, and one execution of it.

Each imports only what stands before it: `operations`, `world`, `execution`, `program` and `guard`.
"""
