"""The programs that call us: each host reads its envelope, calls the pipeline, and writes its envelope."""
