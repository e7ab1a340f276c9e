"""A user's value is published exactly, or refused: random values of every kind of numpy's, compared with genpy.

genpy writes the same values from plain lists and objects; a control part without data parts equals its output.
"""

import array
import collections
import copy
import io
import json
import mmap
import os
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest

import ropewalk
from ropewalk import ContentError, Type
from ropewalk._codec import codec

MISSING = "install the Debian packages of tests/ros1/apt.txt"
try:
    import genpy
    from genpy.dynamic import generate_dynamic
except ImportError:
    assert "CI" not in os.environ, MISSING
    pytest.skip(MISSING, allow_module_level=True)

COUNT = int(os.environ.get("ARRAYS", 10_000))
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NUMBERS = ("bool", "byte", "char", *INTEGERS, "float32", "float64")
#: Structures: without padding; with padding, an array and a structure in it; with times.
STRUCTURES = {
    "Point": "float32 x\nfloat32 y\nfloat32 z",
    "Odd": "uint8 flag\nfloat64[3] v\nt/Point at\ntime stamp\nint16 last",
}
STATIC = "".join(f"\n{'=' * 80}\nMSG: t/{name}\n{text}" for name, text in STRUCTURES.items())
NEVER = 1 << 31


class Pair:
    """A type with one array, from Ropewalk and from genpy."""

    def __init__(self, field):
        text = f"{field} a{STATIC}"
        self.field = field
        self.ours = codec(json.loads(Type("t/T", text).describe()))
        self.theirs = generate_dynamic("t/T", text)
        self.base = field.split("[")[0].split("/")[-1]
        inner = [f["type"] for f in self.ours.description["fields"]][0]
        self.inner = codec(inner) if inner else None
        #: The dtype of an array of such elements.
        self.dtype = self.ours.Message().a.dtype if self.base != "string" else np.dtype(object)

    def encode(self, value):
        """Control parts with and without data parts, read back."""
        message = self.ours.Message(a=value)
        inline, lifted = self.ours.encode(message, NEVER), self.ours.encode(message, 1)
        assert not inline.lifts
        read = self.ours.decode(inline.control, [])
        again = self.ours.decode(lifted.control, [lift.source for lift in lifted.lifts])
        assert self.ours.encode(again, NEVER).control == inline.control == self.ours.encode(read, NEVER).control
        return inline.control

    def genpy(self, value):
        """genpy's encoding of it, or None."""
        buffer = io.BytesIO()
        try:
            message = self.theirs["t/T"]()
            message.a = self.plain(value)
            message.serialize(buffer)
        except (genpy.SerializationError, TypeError, ValueError, OverflowError, AttributeError, KeyError, IndexError):
            return None
        return buffer.getvalue()

    def plain(self, value):
        """The same as lists, numbers and genpy's objects."""
        if isinstance(value, np.ma.MaskedArray):
            if "True" in repr(np.ma.getmaskarray(value).tolist()):
                raise ValueError("masked")
            value = value.data
        if isinstance(value, (bytes, bytearray, mmap.mmap)):
            value = list(value[:])
        elif isinstance(value, memoryview) and value.format == "c":
            value = [b[0] for b in value.tolist()]
        if isinstance(value, (np.ndarray, memoryview, array.array)) and getattr(value, "dtype", np.dtype("f4")).names is None:
            value = value.tolist()
        if self.base in STRUCTURES:
            return [self.object(self.base, v) for v in value]
        if self.base in ("time", "duration"):
            kind = {"time": genpy.Time, "duration": genpy.Duration}[self.base]
            return [v if isinstance(v, kind) else self.time(kind, v) for v in value]
        plain = [v.item() if isinstance(v, np.generic) else v for v in value]
        # Ropewalk accepts bytes for text that is not UTF-8.
        return [v.decode() if isinstance(v, bytes) and self.base == "string" else v for v in plain]

    def object(self, name, value):
        of = {n: value[n] for n in value.dtype.names} if isinstance(value, np.void) else {
            n: getattr(value, n) for n, _ in value._codec.defaults
        }  # fmt: skip
        kind = self.theirs[f"t/{name}"]
        if set(of) != set(kind.__slots__):
            raise ValueError("other fields")
        for n, v in of.items():
            if n == "at":
                of[n] = self.object("Point", v)
            elif n == "stamp":
                of[n] = self.time(genpy.Time, v)
            else:
                of[n] = v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v
        return kind(**of)

    @staticmethod
    def time(kind, value):
        if isinstance(value, np.void):
            if set(value.dtype.names) != {"sec", "nsec"}:
                raise ValueError("other fields")
            value = value["sec"].item(), value["nsec"].item()
        made = kind()
        made.secs, made.nsecs = value
        return made


PAIRS = [Pair(base + dimension) for base in (*NUMBERS, "t/Point", "t/Odd", "time", "duration", "string") for dimension in ("[]", "[4]")]


class Values:
    """Random values of every kind."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)

    def shape(self):
        return self.random.choice([(), (0,), (4,), (4,), (4,), (4,), (7,), (100,), (4, 1), (1, 4), (5, 3), (0, 3), (2, 3, 2)])

    def numbers(self, dtype, shape):
        kind, r = dtype.kind, self.numpy
        if kind == "b":
            return r.integers(0, 2, shape).astype(dtype)
        if kind in "iu":
            info = np.iinfo(dtype)
            low, high = self.random.choice([(0, 2), (0, 100), (info.min, info.max), (max(info.min, -128), min(info.max, 255))])
            made = np.array(r.integers(low, high, shape, dtype.newbyteorder("="), endpoint=True), dtype)
            if made.size and self.random.random() < 0.3:
                made.reshape(-1)[0] = self.random.choice([info.min, info.max])
            return made
        if kind in "fc":
            size = self.random.choice([1, 1e3, 1e30, 1e-30, 1e200])
            with np.errstate(all="ignore"):
                made = np.array(r.normal(0, size, shape), dtype)
                if made.size and self.random.random() < 0.3:
                    made.reshape(-1)[0] = self.random.choice([np.inf, -np.inf, np.nan, -0.0, 2**24 + 1, 3.4028235677973366e38])
            return made
        if kind in "mM":
            return r.integers(0, 1000, shape).astype(f"{kind}8[ns]").astype(dtype)
        if kind in "SU":
            return r.integers(0, 100, shape).astype(dtype)
        if kind == "V" and dtype.names is None:
            return np.zeros(shape, dtype)
        made = np.zeros(shape, dtype)
        for name in dtype.names:
            base, *sub = dtype[name].subdtype or (dtype[name],)
            made[name] = self.numbers(base, (*np.shape(made), *(sub[0] if sub else ())))
        return made

    def dtype(self, pair):
        """The field's dtype half of the time, or a similar one; otherwise any."""
        chance = self.random.random()
        if chance < 0.5 and pair.dtype != object:
            dtype = pair.dtype
        elif chance < 0.7 and pair.dtype.names is not None:
            dtype = self.other_fields(pair.dtype)
        else:
            dtype = np.dtype(self.random.choice([
                "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "l", "q", "e", "f4", "f8", "g", "F", "D", "G", "S3", "U3", "V4",
                "M8[ns]", "m8[s]", PAIRS[-10].dtype, PAIRS[-8].dtype, PAIRS[-6].dtype,
            ]))  # fmt: skip
        return dtype.newbyteorder() if self.random.random() < 0.3 else dtype

    def other_fields(self, dtype):
        fields = [(n, dtype[n]) for n in dtype.names]
        how = self.random.randrange(6)
        if how == 0:
            self.random.shuffle(fields)
        elif how == 1:
            fields.pop()
        elif how == 2:
            fields.append(("more", "f4"))
        elif how == 3:
            fields = [(n, "f8" if d.subdtype is None and d.names is None else d) for n, d in fields]
        elif how == 4:
            fields = [(n.upper(), d) for n, d in fields]
        return np.dtype(fields, align=self.random.random() < 0.5)

    def array(self, pair):
        made = self.numbers(self.dtype(pair), self.shape())
        layout = self.random.randrange(7)
        if layout == 0 and made.ndim:
            made = np.repeat(made, 2, 0)[::2]
        elif layout == 1 and made.ndim:
            made = made[::-1]
        elif layout == 2:
            made = np.asfortranarray(made)
        elif layout == 3 and made.size:
            made = np.broadcast_to(made.reshape(-1)[0], made.shape)
        elif layout == 4:
            made = made.T
        return made

    def list(self, pair):
        n = self.random.choice([0, 4, 4, 4, 9])
        if pair.inner is not None and self.random.random() < 0.8:
            made = [self.message(pair.inner) for _ in range(n)]
            if self.random.random() < 0.2:
                made = self.array(pair).reshape(-1).tolist() if self.random.random() < 0.5 else list(self.array(pair).reshape(-1))
        elif pair.base in ("time", "duration") and self.random.random() < 0.8:
            kind = self.random.choice([ropewalk.Time, ropewalk.Duration, genpy.Time, genpy.Duration, lambda *t: t])
            made = [kind(self.random.randrange(1000), self.random.randrange(1000)) for _ in range(n)]
        elif pair.base == "string" and self.random.random() < 0.8:
            made = [self.random.choice(["a", "äöü", "", "x" * 50]) for _ in range(n)]
        else:
            pool = [0, 1, True, 5, -1, 200, 2**31, 2**63 + 3, 2**64 - 1, -(2**63), 10**400]
            if pair.base in ("float32", "float64"):
                pool += [0.1, 1e30, -0.0, float("nan"), 1e300, Fraction(1, 3), np.float32(0.1), np.longdouble(0.1)]
            if self.random.random() < 0.1:
                pool += [None, "1", b"1", 1j, 0.5, [1], np.array([1]), np.ma.masked, np.complex64(1), np.datetime64(1, "s"), {}]
            if self.random.random() < 0.5:
                pool = [0, 1, True, np.True_, np.int8(1), np.uint64(0), np.array(1)[()]]
            made = [self.random.choice(pool) for _ in range(n)]
        return self.random.choice([list, list, tuple, collections.deque, self.objects])(made)

    @staticmethod
    def objects(values):
        made = np.empty(len(values), object)
        for i, value in enumerate(values):
            made[i] = value
        return made

    def message(self, of):
        made = of.Message()
        for name, default in of.defaults:
            value = getattr(made, name)
            if isinstance(value, np.ndarray):
                value = [1.5, 2, np.float32(3)] if self.random.random() < 0.5 else self.numbers(value.dtype, value.shape)
            elif isinstance(value, ropewalk.Time):
                value = ropewalk.Time(self.random.randrange(2**32), 7)
            elif hasattr(value, "_codec"):
                value = self.message(value._codec)
            elif isinstance(value, float):
                value = self.random.gauss(0, 1)
            else:
                value = self.random.randrange(100)
            setattr(made, name, value)
        return made

    def other(self, pair):
        """Values that are neither numpy arrays nor lists."""
        octets = bytes(self.random.randrange(self.random.choice([2, 128, 256])) for _ in range(4))
        plain = self.array(pair)
        choices = [
            octets, bytearray(octets), memoryview(octets), memoryview(octets).cast("b"), memoryview(octets).cast("c"),
            memoryview(octets).cast("i"), memoryview(octets)[::2], array.array("i", range(4)), array.array("B", octets),
            array.array("f", [1, 2, 3, 4]), array.array("d", [1e300] * 4), self.map(octets), range(4), {1, 2, 3, 4},
            {1: 2}, "1234", 5, None, iter([1, 2, 3, 4]), ropewalk.Sized(4), ropewalk.Time(1, 2), {1: 1, 2: 2, 3: 3, 4: 4}.values(),
            np.float64(1), np.bytes_(octets), np.ones((1, 4)).view(np.matrix), lambda: 0,
        ]  # fmt: skip
        if plain.dtype.names is not None:
            choices += [plain.view(np.recarray)] * 5
        elif plain.dtype.kind in "biuf" and plain.dtype.isnative and plain.dtype.char not in "ge":
            choices += [memoryview(plain)] * 10
        return self.random.choice(choices)

    @staticmethod
    def map(octets):
        made = mmap.mmap(-1, len(octets))
        made[:] = octets
        return made

    def any(self, pair):
        chance = self.random.random()
        if chance < 0.2:
            return self.list(pair)
        if chance < 0.35:
            return self.other(pair)
        made = self.array(pair)
        if chance < 0.45:
            mask = self.numpy.random(made.shape) < self.random.choice([0, 0, 0.3])
            return np.ma.array(made, mask=mask if made.dtype.names is None else self.random.random() < 0.5)
        return made


def test_random_values_are_published_as_genpy_does_or_refused():
    values = Values(7)
    published = collections.Counter()
    for i in range(COUNT):
        pair = values.random.choice(PAIRS)
        value = values.any(pair)
        reported = f"{i}: {pair.field} of {value!r}"
        try:
            ours = pair.encode(value)
        except ContentError as e:
            text = str(e)
            assert "t/T, a: " in text and "given " in text and "wanted " in text, reported
            is_own = isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value) and value.dtype == pair.dtype != object
            assert not (is_own and value.ndim == 1 and "[]" in pair.field), f"{reported}: {e}"
            published[False] += 1
            continue
        assert ours == pair.genpy(value), reported
        published[True] += 1
    # Both results must be frequent enough.
    assert min(published[True], published[False]) > COUNT / 5, published


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.field)
def test_every_number_of_a_field_is_taken_in_every_form(pair):
    """No exact value is refused: arrays of either byte order, strided, as lists and as objects."""
    values = Values(9)
    if pair.base == "string":
        pytest.skip("an array of no numbers")
    for _ in range(20):
        exact = values.numbers(pair.dtype, (4,))
        want = pair.genpy(exact)
        assert want is not None
        forms = [exact, exact.astype(exact.dtype.newbyteorder()), np.repeat(exact, 3)[::3], np.ma.array(exact), exact[::-1].copy()[::-1]]
        if exact.dtype.names is None:
            forms += [exact.tolist(), tuple(exact), exact.astype(object), memoryview(exact), collections.deque(exact.tolist())]
        else:
            forms += [list(exact), exact.view(np.recarray), exact[list(exact.dtype.names)[::-1]]]
        for form in forms:
            assert pair.encode(form) == want, repr(form)


def test_random_scalars_are_published_as_genpy_does_or_refused():
    draw = random.Random(11)
    pool = [
        0, 1, -1, True, False, 127, 128, 255, 256, -129, 2**15, 2**31, -(2**31) - 1, 2**32, 2**63, 2**63 + 1, 2**64 - 1, 2**64, 10**400,
        0.0, -0.0, 0.1, 1.0, 1e38, 3.5e38, 1e300, float("inf"), float("nan"), Fraction(1, 3), 1j, "1", b"1", None, [1], (1, 2), {}, object(),
        np.True_, np.int8(-3), np.uint64(2**64 - 1), np.float32(0.1), np.float64(1e300), np.longdouble(1) / 3, np.longdouble("1e400"),
        np.float16(2), np.complex64(1), np.datetime64(1, "s"), np.timedelta64(1, "s"), np.array(5), np.array([5]), np.array([[1.5]]),
        np.ma.masked, np.str_("1"), np.void(b"1"), ropewalk.Sized(1), ropewalk.Time(1, 2), ropewalk.Duration(-1, 2), genpy.Time(1, 2),
        genpy.Duration(-1, 2), np.zeros(1, [("sec", "u4"), ("nsec", "u4")])[0], "text", "äöü", np.str_("text"), bytearray(b"x"),
    ]  # fmt: skip
    kinds = {}
    for kind in (*NUMBERS, "time", "duration", "string"):
        kinds[kind] = codec(json.loads(Type("t/T", f"{kind} a").describe())), generate_dynamic("t/T", f"{kind} a")["t/T"]
    taken = collections.Counter()
    for _ in range(COUNT):
        kind, value = draw.choice(list(kinds)), draw.choice(pool)
        ours, theirs = kinds[kind]
        reported = f"{kind} of {value!r}"
        try:
            sent = ours.encode(ours.Message(a=value), NEVER).control
        except ContentError as e:
            assert str(e).startswith("t/T, a: given ") and "wanted " in str(e), f"{reported}: {e}"
            plain = kind in INTEGERS and type(value) is int or kind == "float64" and type(value) is float or kind == "string" and type(value) is str
            assert not plain or "outside" in str(e), f"{reported}: {e}"
            continue
        plain = value.item() if isinstance(value, (np.generic, np.ndarray)) and kind not in ("time", "duration") else value
        if kind in ("time", "duration") and not isinstance(value, (genpy.Time, genpy.Duration)):
            plain = Pair.time(genpy.Time if kind == "time" else genpy.Duration, value)
        if kind == "string" and isinstance(value, bytes):
            plain = value.decode()
        buffer = io.BytesIO()
        theirs(plain).serialize(buffer)
        assert sent == buffer.getvalue(), reported
        assert kind not in INTEGERS or ours.decode(sent, []).a == plain, reported
        taken[kind] += 1
    assert min(taken.values()) > 5, taken


def test_what_was_published_wrong_is_refused():
    """Each was once broadcast, matched by position, read as bytes, or rounded to infinity."""
    Point = ropewalk.message_class("geometry_msgs/Point32")
    kind = Type("t/T", "geometry_msgs/Point32[] p\nint32[] i\nuint8[] u\nfloat32[] f\nfloat32 s\nbool b\nstring[] t\nint32 n\ntime[] when\n"
                "float64[36] c\ntime stamp\nuint64[] w\n")  # fmt: skip
    c = codec(json.loads(kind.describe()))

    def sent(**fields):
        return c.decode(c.encode(c.Message(**fields), NEVER).control, [])

    xyz = np.array([(1, 2, 3)] * 100, [("z", "f4"), ("y", "f4"), ("x", "f4")])
    assert sent(p=xyz).p["z"].tolist() == [1] * 100 and sent(p=xyz).p["x"].tolist() == [3] * 100
    assert sent(p=[Point(x=1, z=np.float32(3))] * 100).p.tolist() == [(1, 0, 3)] * 100
    listed = c.Message(p=[Point(x=0.1)], f=[0.1], i=(1, 2), t=["a"], when=[ropewalk.Time(1, 2)])
    assert listed == c.decode(c.encode(listed).control, []) != c.Message(p=[Point(x=0.2)], f=[0.1], i=(1, 2), t=["a"])
    assert sent(when=[ropewalk.Time(1, 2)] * 3).when.tolist() == [(1, 2)] * 3
    assert sent(i=memoryview(np.arange(300, dtype=np.int32))).i.tolist() == list(range(300))
    assert sent(w=[2**63 + 1, 0, 2**64 - 1]).w.tolist() == [2**63 + 1, 0, 2**64 - 1]
    for field, value, given, wanted in [
        ("p", [(1, 2, 3)] * 100, "list of length 100 with elements of tuple", "Point32 {x: float32, y: float32, z: float32}, shape (n,)"),
        ("p", [ropewalk.Time(1, 2)] * 100, "elements of Time", "Point32"),
        ("p", np.zeros((100, 3), np.float32), "array of float32, shape (100, 3)", "Point32"),
        ("p", np.zeros(100, np.float32), "array of float32, shape (100,)", "Point32"),
        ("p", np.zeros(9, [("x", "f4"), ("y", "f4")]), "{x: float32, y: float32}", "Point32"),
        ("i", b"1234", "bytes of length 4", "int32, shape (n,)"),
        ("i", memoryview(b"1234"), "memoryview of 'B', shape (4,)", "int32"),
        ("i", ropewalk.Time(1, 2), "Time", "int32"),
        ("u", np.full(4, 256), "array of int64, shape (4,)", "uint8"),
        ("u", np.zeros((4, 4), np.uint8), "shape (4, 4)", "uint8, shape (n,)"),
        ("u", np.ma.array([1, 2], mask=[0, 1]), "masked array", "uint8"),
        ("f", [1e300], "list of length 1 with elements of float", "float32"),
        ("f", np.array([1e300]), "float64, shape (1,)", "float32"),
        ("c", np.eye(6), "float64, shape (6, 6)", "float64, shape (36,)"),
        ("c", np.zeros(35), "float64, shape (35,)", "float64, shape (36,)"),
        ("s", 1e300, "1e+300 (float)", "float32"),
        ("s", np.complex64(1j), "complex64", "float32"),
        ("s", np.ma.masked, "MaskedConstant", "float32"),
        ("s", np.array([1.0]), "array([1.]) (ndarray)", "float32"),
        ("b", "false", "'false' (str)", "bool"),
        ("b", 2, "2 (int)", "bool"),
        ("t", "abc", "str", "list"),
        ("n", 2.0, "2.0 (float)", "int32"),
        ("n", 2**31, "2147483648 (int)", "int32"),
        ("stamp", ropewalk.Duration(1, 2), "Duration", "Time"),
    ]:  # fmt: skip
        with pytest.raises(ContentError) as refused:
            sent(**{field: value})
        text = str(refused.value)
        assert text.startswith(f"t/T, {field}: ") and given in text and wanted in text, text


def test_messages_are_pickled_and_copied(ends):
    publisher, subscriber = ends("visualization_msgs/Marker")
    Point = ropewalk.message_class("geometry_msgs/Point")
    publisher.publish(publisher.message(ns="n", points=[Point(x=i) for i in range(100)]))
    seen = subscriber.take(60)
    assert subscriber.held == 1
    for made in (pickle.loads(pickle.dumps(seen)), copy.deepcopy(seen)):
        assert type(made) is type(seen) and made == seen
        assert (made.stamp_ns, made.sequence, made.lost) == (seen.stamp_ns, seen.sequence, seen.lost)
        assert not np.shares_memory(made.points, seen.points)
        made.points["x"][0] = 5
        made.header.frame_id = "other"
        publisher.publish(made)
    assert copy.copy(seen) == seen and copy.copy(seen).points is seen.points
    kept = copy.deepcopy(seen)
    del seen
    assert subscriber.held == 0 and kept.points["x"][99] == 99
    # Nested ones, those of services, and times.
    nested = copy.deepcopy(kept.header), pickle.loads(pickle.dumps(kept.header.stamp))
    assert nested == (kept.header, kept.header.stamp)
    request = ropewalk.message_class(ropewalk.ServiceType("std_srvs/SetBool").request)(data=True)
    assert pickle.loads(pickle.dumps(request)) == request


def test_a_size_is_filled_before_it_is_published(ends):
    publisher, _ = ends("sensor_msgs/Image")
    for n in (1, 10, 1000):
        image = publisher.message(data=ropewalk.Sized(n))
        with pytest.raises(ContentError, match="sized but not allocated"):
            publisher.publish(image)
        publisher.allocate(image)
        image.data[:] = 3
        assert publisher.publish(image) == 1
