"""Which device torch computes on."""


def torch_device(setting: str) -> str:
    """The torch device for the setting `device`: `auto` is the first CUDA device where there is one, else the CPU."""
    import torch

    if setting == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    return f"cuda:{setting}" if setting.isdigit() else setting
