from pathlib import Path

from nightowl.training.memory_use import gpu_in_words, memory_in_words, peak_bytes, resident_bytes

COUNTERS = 16 << 20  # the kernel adds up what each processor counted only now and then


def test_memory_is_in_bytes() -> None:
    held = b"x" * (64 << 20)
    now = resident_bytes()
    assert now is not None and peak_bytes() > now - COUNTERS and now > len(held)


def test_the_memory_of_now_goes_down_where_the_peak_stays() -> None:
    held = b"x" * (256 << 20)
    with_it = resident_bytes()
    del held
    without, peak = resident_bytes(), peak_bytes()
    assert with_it is not None and without is not None
    assert with_it - without > 200 << 20 and peak > with_it - COUNTERS


def test_where_the_system_does_not_tell_the_peak_is_said_for_what_it_is(tmp_path: Path) -> None:
    assert resident_bytes(tmp_path / "absent") is None
    (tmp_path / "statm").write_text("nothing")
    assert resident_bytes(tmp_path / "statm") is None


def test_memory_in_words() -> None:
    assert memory_in_words("cpu").startswith("memory ") and memory_in_words("cpu").endswith(" GB")
    assert gpu_in_words(8_640_000_000, 24_000_000_000) == "GPU memory up to 8.6 of 24.0 GB"
