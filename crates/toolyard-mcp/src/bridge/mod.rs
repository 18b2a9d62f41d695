//! What stands between clients and servers of different eras: prompts, resources and skills of all servers as one.
