"""Reads and writes TFRecord files of tf.train.Example. Written from the formats' descriptions alone, to check Muster's own code."""
import gzip
import struct
import zlib

from tfevents import fields, masked, records, signed, varint


def integers(data):
    values, offset = [], 0
    while offset < len(data):
        value, offset = varint(data, offset)
        values.append(signed(value))
    return values


def feature(data):
    """Returns the values of a Feature: bytes, floats or ints."""
    for kind, _, content in fields(data):
        values = []
        for number, wire, value in fields(content):
            assert number == 1
            if kind == 1:
                values.append(value)
            elif kind == 2:
                values += struct.unpack(f"<{len(value) // 4}f", value)
            else:
                values += integers(value) if wire == 2 else [signed(value)]
        return values
    return []


def example(data):
    """Returns {name: values} of an Example."""
    result = {}
    for _, _, features in fields(data):
        for _, _, entry in fields(features):
            parts = {number: value for number, _, value in fields(entry)}
            result[parts[1].decode()] = feature(parts[2])
    return result


def examples(path):
    """Returns the Examples of a file with any compression."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    elif data[:1] == b"\x78":
        data = zlib.decompress(data)
    return [example(record) for record in records(data)]


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def _field(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def encode(features):
    """Returns the Example of {name: values}; all values of a name have one type. Numbers are not packed."""
    entries = b""
    for name, values in features.items():
        if isinstance(values[0], bytes):
            kind, content = 1, b"".join(_field(1, value) for value in values)
        elif isinstance(values[0], float):
            kind, content = 2, b"".join(b"\x0d" + struct.pack("<f", value) for value in values)
        else:
            kind, content = 3, b"".join(b"\x08" + _varint(value) for value in values)
        entries += _field(1, _field(1, name.encode()) + _field(2, _field(kind, content)))
    return _field(1, entries)


def frame(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def write(path, all_features):
    path.write_bytes(b"".join(frame(encode(features)) for features in all_features))
