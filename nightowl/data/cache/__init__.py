"""The prepared cache: images decoded and scaled to the training size once, kept by what they are, read by memory map.

    place      where a cache lies, and its locks
    forms      raw or JPEG: what the bytes of an image are
    entries    one row an image: what it is, where its bytes lie, their checksum; as `tables` on disk
    shards     many images in one file, published whole
    forecast   bytes and seconds before it starts; refuses what would not fit
    recipe     what decides the pixels of an image, and how they are made
    build      what is missing, or known as damaged, is added
    packed     the reader, which checks what it reads, and `reading`, which opens it
    verify     all of it read again
    prune      what has not been used goes
    opening    all of it in one call

docs/prepared-cache.md has the layout on disk.
"""
