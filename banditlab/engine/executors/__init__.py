"""Who does a sweep's tasks: this process, processes of this machine, or the workers of a cluster."""
