"""A small substitute for MNIST: files of the same names and format, with images that are easy to classify."""
import random
import struct


def write_digits(folder, train=640, test=128):
    """Each image is noise with a bright square, whose position is the class."""
    folder.mkdir(parents=True)
    dice = random.Random(1)
    for name, count in (("train", train), ("t10k", test)):
        labels = bytes(dice.randrange(10) for _ in range(count))
        images = bytearray()
        for label in labels:
            image = bytearray(dice.randbytes(28 * 28).translate(bytes(i // 4 for i in range(256))))
            for row in range(8):
                begin = (4 + 10 * (label // 5) + row) * 28 + 1 + 5 * (label % 5)
                image[begin:begin + 5] = b"\xff" * 5
            images += image
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, count, 28, 28) + images)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, count) + labels)
