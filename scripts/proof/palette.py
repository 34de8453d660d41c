"""Makes a picture's file smaller: at most 256 colours, the most frequent ones, the others by the nearest of them."""

import collections
import struct
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def rows_of(data, width, height, count):
    """The bytes of each row of a PNG with so many bytes a pixel."""
    before, at = bytearray(width * count), 0
    for _ in range(height):
        kind, row = data[at], bytearray(data[at + 1 : at + 1 + width * count])
        at += 1 + width * count
        if kind == 2:
            row = bytearray((a + b) & 255 for a, b in zip(row, before))
        elif kind:
            for i in range(len(row)):
                left = row[i - count] if i >= count else 0
                up, corner = before[i], before[i - count] if i >= count else 0
                if kind == 4:
                    guess = left + up - corner
                    off = abs(guess - left), abs(guess - up), abs(guess - corner)
                    guess = left if off[0] <= off[1] and off[0] <= off[2] else up if off[1] <= off[2] else corner
                else:
                    guess = left if kind == 1 else (left + up) // 2
                row[i] = (row[i] + guess) & 255
        yield bytes(row)
        before = row


def shrink(path):
    """Rewrites a PNG of 8 bits a channel, without its transparency. Returns its size in bytes."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colours in (2, 6) and body[12] == 0, "a PNG of another form"
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    count = 3 if colours == 2 else 4
    pixels = [[row[i : i + 3] for i in range(0, len(row), count)] for row in rows_of(zlib.decompress(packed), width, height, count)]
    seen = collections.Counter(pixel for row in pixels for pixel in row)
    kept = [colour for colour, _ in seen.most_common(256)]
    number = {colour: at for at, colour in enumerate(kept)}
    for colour in seen:
        if colour not in number:
            number[colour] = min(range(len(kept)), key=lambda at: sum((a - b) ** 2 for a, b in zip(colour, kept[at])))
    packed = zlib.compress(b"".join(b"\0" + bytes(number[pixel] for pixel in row) for row in pixels), 9)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"PLTE", b"".join(kept)) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    with open(path, "wb") as file:
        file.write(out)
    return len(out)
