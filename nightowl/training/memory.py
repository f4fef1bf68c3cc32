"""Whether an error says that memory ran out, on a GPU or on the CPU."""

import torch

# What torch's CPU allocator says, and CUDA libraries that report it in words of their own.
_WORDS = ("can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether smaller batches may help."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _WORDS)
