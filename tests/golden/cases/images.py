"""images.json: the results of tf.io and tf.image for image files and pixels.

config:  "op": decode_image with "content" (the file, in hexadecimal) and "channels", or
         resize with "method" and "size"
inputs:  image: of resize
outputs: image: uint8 of decode_image, float32 of resize
"""

import itertools
import struct
import zlib

import numpy as np
import tensorflow as tf

from cases.golden_format import case, seeded


def cases():
    yield from _jpeg(seeded(900))
    yield from _png(seeded(901))
    yield from _resize(seeded(902))


def _smooth(rng, height, width, channels):
    """A smooth image with few edges, which suits JPEG."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        128 + 90 * np.sin(x / rng.uniform(2, 6) + c) * np.cos(y / rng.uniform(2, 6))
        for c in range(channels)
    ]
    image = np.stack(planes, axis=-1) + rng.normal(scale=4, size=(height, width, channels))
    image[: height // 3, : width // 4] = 250
    return np.clip(image, 0, 255).astype(np.uint8)


def _decode(name, content, channels):
    image = tf.io.decode_image(content, channels=channels, expand_animations=False)
    config = {"op": "decode_image", "content": content.hex(), "channels": channels}
    return case(f"decode_image/{name}/{channels}", config, {}, {"image": image.numpy()})


def _jpeg(rng):
    color = _smooth(rng, 13, 19, 3)
    files = {
        "jpeg_420": tf.io.encode_jpeg(color, quality=90),
        "jpeg_444": tf.io.encode_jpeg(color, quality=75, chroma_downsampling=False),
        "jpeg_progressive": tf.io.encode_jpeg(color, quality=85, progressive=True),
        "jpeg_grey": tf.io.encode_jpeg(_smooth(rng, 9, 17, 1), quality=80),
    }
    for (name, content), channels in itertools.product(files.items(), (0, 1, 3)):
        yield _decode(name, content.numpy(), channels)


def _chunk(kind, data):
    crc = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)


def _png_file(width, height, bit_depth, color_type, rows, chunks=b""):
    """A PNG file from packed rows without their filter bytes."""
    header = struct.pack(">IIBBBBB", width, height, bit_depth, color_type, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + chunks
        + _chunk(b"IDAT", data)
        + _chunk(b"IEND", b"")
    )


def _png(rng):
    def rows(count, size_bytes):
        return [rng.bytes(size_bytes) for _ in range(count)]

    palette = _chunk(b"PLTE", rng.bytes(3 * 16))
    files = {
        "png_grey1": _png_file(11, 3, 1, 0, rows(3, 2)),
        "png_grey2": _png_file(7, 3, 2, 0, rows(3, 2)),
        "png_grey4": _png_file(5, 3, 4, 0, rows(3, 3)),
        "png_grey8": _png_file(5, 3, 8, 0, rows(3, 5)),
        "png_grey16": _png_file(5, 3, 16, 0, rows(3, 10)),
        "png_rgb8": _png_file(4, 3, 8, 2, rows(3, 12)),
        "png_rgb16": _png_file(4, 3, 16, 2, rows(3, 24)),
        "png_palette4": _png_file(6, 3, 4, 3, rows(3, 3), palette),
        "png_grey_alpha8": _png_file(4, 3, 8, 4, rows(3, 8)),
        "png_grey_alpha16": _png_file(4, 3, 16, 4, rows(3, 16)),
        "png_rgba8": _png_file(4, 3, 8, 6, rows(3, 16)),
        "png_rgba16": _png_file(4, 3, 16, 6, rows(3, 32)),
    }
    for name, content in files.items():
        # TensorFlow is wrong in the excluded cases: when it converts colours to grey, it
        # uses the weight of blue for green, and with samples below 8 bits its
        # opaque pixels are not opaque.
        is_colored = "rgb" in name or "palette" in name
        has_whole_bytes = name.endswith(("8", "16"))
        for channels in (0, 1, 3, 4):
            if (channels != 1 or not is_colored) and (channels != 4 or has_whole_bytes):
                yield _decode(name, content, channels)


def _resize(rng):
    sizes = [
        ((5, 7), (5, 7)),
        ((5, 7), (10, 14)),
        ((6, 8), (3, 4)),
        ((9, 11), (4, 5)),
        ((4, 5), (9, 13)),
        ((1, 1), (3, 2)),
        ((13, 3), (1, 7)),
        ((32, 32), (7, 45)),
    ]
    for method, (before, after), channels in itertools.product(
        ("bilinear", "nearest"), sizes, (1, 3)
    ):
        image = rng.integers(0, 256, size=(*before, channels), dtype=np.uint8)
        resized = tf.image.resize(image, after, method=method)
        name = "x".join(str(n) for n in (*before, channels, *after))
        yield case(
            f"resize/{method}/{name}",
            {"op": "resize", "method": method, "size": list(after)},
            {"image": image},
            {"image": resized.numpy().astype(np.float32)},
        )
