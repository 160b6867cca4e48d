#!/usr/bin/env python3
"""Reads TensorBoard event files. Written from the format's description alone, to check Muster's own reader.

usage: tfevents.py FILE…      prints one JSON object for each event

Raises ValueError for anything that is not exactly right: check sums, wire types, bytes left over.
"""
import json
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    offset = 0
    while offset < len(data):
        length, check = struct.unpack_from("<QI", data, offset)
        if check != masked(data[offset:offset + 8]):
            raise ValueError(f"byte {offset}: wrong check sum of the length")
        body = data[offset + 12:offset + 12 + length]
        (check,) = struct.unpack_from("<I", data, offset + 12 + length)
        if check != masked(body):
            raise ValueError(f"byte {offset}: wrong check sum of the data")
        yield body
        offset += 16 + length


def varint(data, offset):
    value = shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset += 1
        shift += 7
        if byte < 0x80:
            return value, offset


def fields(data):
    """Yields (number, wire type, value) for each field of a message."""
    offset = 0
    while offset < len(data):
        key, offset = varint(data, offset)
        wire = key & 7
        if wire == 0:
            value, offset = varint(data, offset)
        elif wire in (1, 2, 5):
            length = {1: 8, 5: 4}.get(wire)
            if length is None:
                length, offset = varint(data, offset)
            value = data[offset:offset + length]
            if len(value) != length:
                raise ValueError("a field ends behind its message")
            offset += length
        else:
            raise ValueError(f"wire type {wire}")
        yield key >> 3, wire, value


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def text(value):
    return value.decode("utf-8")


def double(value):
    return struct.unpack("<d", value)[0]


def doubles(value):
    return list(struct.unpack(f"<{len(value) // 8}d", value))


# For each message: field number -> (name, wire type, how to read it, whether it repeats).
HISTOGRAM = {1: ("min", 1, double, False), 2: ("max", 1, double, False), 3: ("num", 1, double, False),
             4: ("sum", 1, double, False), 5: ("sum_squares", 1, double, False),
             6: ("bucket_limit", 2, doubles, False), 7: ("bucket", 2, doubles, False)}
VALUE = {1: ("tag", 2, text, False),
         2: ("simple_value", 5, lambda value: struct.unpack("<f", value)[0], False),
         5: ("histo", 2, lambda value: message(value, HISTOGRAM), False)}
SUMMARY = {1: ("value", 2, lambda value: message(value, VALUE), True)}
SHAPE = {2: ("dim", 2, lambda value: message(value, {1: ("size", 0, signed, False)}).get("size", 0), True)}
ATTRIBUTE = {1: ("list", 2, lambda value: message(value, {7: ("shape", 2, shape, True)}), False),
             6: ("type", 0, signed, False),
             7: ("shape", 2, lambda value: shape(value), False)}
ENTRY = {1: ("key", 2, text, False), 2: ("value", 2, lambda value: message(value, ATTRIBUTE), False)}
NODE = {1: ("name", 2, text, False), 2: ("op", 2, text, False), 3: ("input", 2, text, True),
        4: ("device", 2, text, False), 5: ("attr", 2, lambda value: message(value, ENTRY), True)}
GRAPH = {1: ("node", 2, lambda value: message(value, NODE), True)}
EVENT = {1: ("wall_time", 1, double, False), 2: ("step", 0, signed, False), 3: ("file_version", 2, text, False),
         4: ("graph_def", 2, lambda value: message(value, GRAPH), False),
         5: ("summary", 2, lambda value: message(value, SUMMARY), False),
         7: ("session_log", 2, lambda value: message(value, {1: ("status", 0, signed, False)}), False)}


def shape(value):
    return message(value, SHAPE).get("dim", [])


def message(data, known):
    result = {}
    for number, wire, value in fields(data):
        if number not in known:
            raise ValueError(f"unknown field {number}")
        name, expected, read, repeats = known[number]
        if wire != expected:
            raise ValueError(f"{name}: wire type {wire}")
        if repeats:
            result.setdefault(name, []).append(read(value))
        else:
            result[name] = read(value)
    return result


def events(path):
    """Returns the events of a file as dictionaries with the format's field names, without default values."""
    with open(path, "rb") as file:
        return [message(record, EVENT) for record in records(file.read())]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for event in events(name):
            print(json.dumps(event))
