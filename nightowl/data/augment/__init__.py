"""Training-time augmentation: what is drawn (`draw`), where things go (`geometry`, `boxes`), and the pixels (`compose`)."""
