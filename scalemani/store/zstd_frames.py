"""How much data compressed by zstd hold, read off their headers: RFC 8878, section 3.1."""

MAGIC = 0xFD2FB528
SKIPPABLE_MAGIC, SKIPPABLE_BITS = 0x184D2A50, 4  # the last bits are anybody's
HEADER_SIZES = ((0, 1), (2, 2), (4, 4), (8, 8))  # bytes of the size of the content, by flag and by "one segment"
DICTIONARY_SIZES = (0, 1, 2, 4)
SMALLEST_OF_TWO_BYTES = 256  # sizes below it take one byte
BLOCK_BYTES = 2**17  # that a block holds at most
RAW, REPEATED, COMPRESSED = range(3)


def frames_bytes(content: bytes) -> int:
    """Return the bytes that frames of zstd hold; where one does not say so, the most that its blocks can hold.

    Raises
    ------
    ValueError
        Where these are no whole frames.
    """
    position = total = 0
    while position < len(content):
        magic = number(content, position, 4)
        if magic >> SKIPPABLE_BITS == SKIPPABLE_MAGIC >> SKIPPABLE_BITS:
            position += 8 + number(content, position + 4, 4)
            continue
        if magic != MAGIC:
            raise ValueError("no frame of zstd where one should begin")
        position, size = frame(content, position + 4)
        total += size
    if position > len(content):
        raise ValueError("a frame of zstd ends early")
    return total


def frame(content: bytes, position: int) -> tuple[int, int]:
    """Return where a frame ends whose header begins at a position, and the most bytes that it holds."""
    flags = number(content, position, 1)
    one_segment, checksum = flags >> 5 & 1, flags >> 2 & 1
    position += 1
    window = BLOCK_BYTES
    if not one_segment:
        exponent, mantissa = divmod(number(content, position, 1), 8)
        window = (8 + mantissa) << (7 + exponent)
        position += 1
    position += DICTIONARY_SIZES[flags & 3]
    width = HEADER_SIZES[flags >> 6][one_segment]
    declared = number(content, position, width) + (SMALLEST_OF_TWO_BYTES if width == 2 else 0)
    end, held = blocks(content, position + width, min(window, BLOCK_BYTES))
    return end + 4 * checksum, declared if width else held


def blocks(content: bytes, position: int, most: int) -> tuple[int, int]:
    """Return where the blocks of a frame end that begin at a position, and the most bytes that they hold."""
    held, last = 0, 0
    while not last:
        header = number(content, position, 3)
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        position += 3 + (1 if kind == REPEATED else size)
        held += most if kind == COMPRESSED else size
    return position, held


def number(content: bytes, position: int, width: int) -> int:
    """Return the number in so many bytes; refuse content that ends before."""
    if position + width > len(content):
        raise ValueError("a frame of zstd ends early")
    return int.from_bytes(content[position : position + width], "little")
