"""One row of probabilities in vector registers, as functions that compiled kernels call.

numba has no vector types, so these are written in the compiler's own terms: a row is read ``LANES`` labels at
a time, whatever the machine's registers hold, and what comes back are plain numbers and bits. A read may
pass the end of its row by up to ``LANES - 1`` numbers; ``keep`` blanks those, and callers stay clear of the
array's end. Sums are reassociated here: nothing that these functions return may decide what belongs to a
set, unless rounding can't have changed it.
"""

# mypy: ignore-errors

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
_TINY = {32: 1e-30, 64: 1e-290}

_BIT, _INDEX, _WORD = ir.IntType(1), ir.IntType(32), ir.IntType(64)


@intrinsic
def number_at(typing, address, like):
    """The number at an address in memory, of the type that the array ``like`` has."""

    def code(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], context.get_value_type(like.dtype).as_pointer())
        return builder.load(pointer)

    return like.dtype(address, like), code


@intrinsic
def sum_sign_and_largest(typing, proba, start, n_classes, keep, weights):
    """Of one row: the sum, whether a sign bit is set, and the largest weighted probability."""
    number = proba.dtype
    signature = types.Tuple((number, types.boolean, number))(proba, start, n_classes, keep, weights)

    def code(context, builder, signature, args):
        row = _Row(context, builder, signature, args)
        total, signs, largest = row.variable(row.zero), row.variable(row.no_bits), row.variable(row.no_bits)
        with row.chunks() as at:
            p = row.kept(at)
            weighted = builder.fmul(row.not_tiny(p), row.vector(4, at))
            row.update(total, builder.fadd, p)
            row.update(signs, builder.or_, row.bits(p))
            more = builder.icmp_signed(">", row.bits(weighted), builder.load(largest))
            builder.store(builder.select(more, row.bits(weighted), builder.load(largest)), largest)
        # as whole numbers: for floats that are not negative the order is the same, and NaN has its place
        most = row.reduced("smax", builder.load(largest))
        parts = row.total(total), row.negative(signs), builder.bitcast(most, row.number)
        return context.make_tuple(builder, signature.return_type, parts)

    return signature, code


@intrinsic
def labels_between(typing, proba, start, n_classes, keep, nearly, enough):
    """Of one row: sum, sign bit, whether any label lies from ``nearly`` to ``enough``; and of the labels with
    at least ``enough`` the first (else ``n_classes``), the last (else -1) and their number.
    """  # noqa: D205 - it is one list
    number, whole, flag = proba.dtype, types.int64, types.boolean
    signature = types.Tuple((number, flag, flag, whole, whole, whole))(
        proba, start, n_classes, keep, nearly, enough
    )

    def code(context, builder, signature, args):
        row = _Row(context, builder, signature, args)
        total, signs, near = row.variable(row.zero), row.variable(row.no_bits), row.variable(row.no_lanes)
        first, last, count = (row.variable(value) for value in (args[2], _WORD(-1), _WORD(0)))
        with row.chunks() as at:
            p = row.kept(at)
            row.update(total, builder.fadd, p)
            row.update(signs, builder.or_, row.bits(p))
            inside = builder.fcmp_ordered(">=", p, row.vector(5, at))
            around = builder.fcmp_ordered(">=", p, row.vector(4, at))
            row.update(near, builder.or_, builder.xor(inside, around))
            word = row.word(inside)
            some = row.some(word)
            none_yet = builder.icmp_signed("<", builder.load(last), _WORD(0))
            lowest = builder.add(at, builder.cttz(word, _BIT(0)))
            highest = builder.add(at, builder.sub(_WORD(63), builder.ctlz(word, _BIT(0))))
            is_first = builder.and_(some, none_yet)
            builder.store(builder.select(is_first, lowest, builder.load(first)), first)
            builder.store(builder.select(some, highest, builder.load(last)), last)
            row.update(count, builder.add, builder.ctpop(word))
        found = [builder.load(value) for value in (first, last, count)]
        parts = [row.total(total), row.negative(signs), row.any(builder.load(near)), *found]
        return context.make_tuple(builder, signature.return_type, parts)

    return signature, code


@intrinsic
def falls_outward_through(typing, proba, start, n_classes, keep, weights, label, point, bar, higher_bar):
    """Whether weighted probabilities are at least ``higher_bar`` between the label and the point label, and
    less than ``bar`` from the label outward.
    """  # noqa: D205 - it is one sentence
    signature = types.boolean(proba, start, n_classes, keep, weights, label, point, bar, higher_bar)

    def code(context, builder, signature, args):
        row = _Row(context, builder, signature, args)
        label, point = (row.spread(builder.trunc(value, _INDEX)) for value in args[5:7])
        bar, higher_bar = (row.spread(value) for value in args[7:])
        positions = ir.Constant(label.type, list(range(LANES)))
        point_is_above = builder.icmp_signed("<", label, point)
        wrong = row.variable(row.no_lanes)
        with row.chunks() as at:
            here = builder.add(positions, row.spread(builder.trunc(at, _INDEX)))
            above, below = builder.icmp_signed(">", here, label), builder.icmp_signed("<", here, label)
            under_point, over_point = (builder.icmp_signed(sign, here, point) for sign in "<>")
            inward = builder.select(
                point_is_above, builder.and_(above, under_point), builder.and_(below, over_point)
            )
            outward = builder.select(point_is_above, below, above)
            weighted = builder.fmul(row.not_tiny(row.kept(at)), row.vector(4, at))
            too_low = builder.fcmp_unordered("<", weighted, higher_bar)
            too_high = builder.fcmp_unordered(">=", weighted, bar)
            row.update(wrong, builder.or_, builder.and_(inward, too_low))
            row.update(wrong, builder.or_, builder.and_(outward, too_high))
        return builder.not_(row.any(builder.load(wrong)))

    return signature, code


@intrinsic
def first_and_count_at_least(typing, proba, start, n_classes, keep, weights, bar):
    """Of the labels whose weighted probability is at least ``bar``, the first and the number."""
    signature = types.UniTuple(types.int64, 2)(proba, start, n_classes, keep, weights, bar)

    def code(context, builder, signature, args):
        row = _Row(context, builder, signature, args)
        first, count, bar = row.variable(args[2]), row.variable(_WORD(0)), row.spread(args[5])
        with row.chunks() as at:
            weighted = builder.fmul(row.not_tiny(row.kept(at)), row.vector(4, at))
            word = row.word(builder.fcmp_ordered(">=", weighted, bar))
            is_first = builder.icmp_signed("<", builder.load(count), builder.zext(row.some(word), _WORD))
            lowest = builder.add(at, builder.cttz(word, _BIT(0)))
            builder.store(builder.select(is_first, lowest, builder.load(first)), first)
            row.update(count, builder.add, builder.ctpop(word))
        return context.make_tuple(builder, signature.return_type, [builder.load(first), builder.load(count)])

    return signature, code


@intrinsic
def fetch_ahead(typing, proba, start, n_classes):
    """Ask for the memory of a row that will be read soon; it need not be in the array."""
    signature = types.void(proba, start, n_classes)

    def code(context, builder, signature, args):
        row = _Row(context, builder, signature, args)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), _INDEX, _INDEX, _INDEX])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        array = context.make_array(signature.args[0])(context, builder, args[0])
        with row.chunks() as at:
            place = builder.gep(array.data, [builder.add(args[1], at)])
            place = builder.bitcast(place, ir.IntType(8).as_pointer())
            builder.call(prefetch, [place, _INDEX(0), _INDEX(3), _INDEX(1)])
        return context.get_dummy_value()

    return signature, code


class _Row:
    """Writes the code that reads one row; its arguments are ``proba, start, n_classes, keep, ...``."""

    def __init__(self, context, builder, signature, args):
        self.context, self.builder, self.args, self.types = context, builder, args, signature.args
        self.width = self.types[0].dtype.bitwidth
        self.number = context.get_data_type(self.types[0].dtype)
        self.zero = ir.Constant(ir.VectorType(self.number, LANES), [-0.0] * LANES)
        self.no_bits = ir.Constant(ir.VectorType(ir.IntType(self.width), LANES), [0] * LANES)
        self.no_lanes = ir.Constant(ir.VectorType(_BIT, LANES), [0] * LANES)

    def variable(self, value):
        place = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, place)
        return place

    def update(self, place, operation, value):
        self.builder.store(operation(self.builder.load(place), value), place)

    def chunks(self):
        return _Chunks(self.builder, self.args[2])

    def vector(self, argument, at):
        array = self.context.make_array(self.types[argument])(self.context, self.builder, self.args[argument])
        element = self.context.get_data_type(self.types[argument].dtype)
        place = self.builder.gep(array.data, [at])
        vector = self.builder.load(self.builder.bitcast(place, ir.VectorType(element, LANES).as_pointer()))
        vector.align = self.width // 8
        return vector

    def kept(self, at):
        bits = self.bits(self.vector(0, self.builder.add(self.args[1], at)))
        return self.builder.bitcast(self.builder.and_(bits, self.vector(3, at)), self.zero.type)

    def bits(self, vector):
        return self.builder.bitcast(vector, self.no_bits.type)

    def not_tiny(self, p):
        """Zero where a product could be denormal, which takes some machines a hundred times longer."""
        tiny = self.spread(ir.Constant(self.number, _TINY[self.width]))
        large = self.builder.fcmp_ordered(">=", p, tiny)
        return self.builder.select(large, p, ir.Constant(p.type, [0.0] * LANES))

    def spread(self, value):
        undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
        one = self.builder.insert_element(undefined, value, _INDEX(0))
        everywhere = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        return self.builder.shuffle_vector(one, undefined, everywhere)

    def word(self, lanes):
        return self.builder.zext(self.builder.bitcast(lanes, ir.IntType(LANES)), _WORD)

    def some(self, word):
        return self.builder.icmp_unsigned("!=", word, _WORD(0))

    def any(self, lanes):
        return self.some(self.word(lanes))

    def negative(self, signs):
        return self.any(self.builder.icmp_signed("<", self.builder.load(signs), self.no_bits))

    def total(self, place):
        return self.reduced("fadd", self.builder.load(place), ir.Constant(self.number, -0.0))

    def reduced(self, operation, vector, *start):
        element = vector.type.element
        name = f"{'f' if element == self.number else 'i'}{self.width}"
        function = cgutils.get_or_insert_function(
            self.builder.module,
            ir.FunctionType(element, [*(value.type for value in start), vector.type]),
            f"llvm.vector.reduce.{operation}.v{LANES}{name}",
        )
        return self.builder.call(function, [*start, vector], fastmath=("reassoc",) if start else ())


class _Chunks:
    """A loop over a row, ``LANES`` labels at a time."""

    def __init__(self, builder, n_classes):
        count = builder.udiv(builder.add(n_classes, _WORD(LANES - 1)), _WORD(LANES))
        self.builder, self.loop = builder, cgutils.for_range(builder, count, intp=_WORD)

    def __enter__(self):
        return self.builder.mul(self.loop.__enter__().index, _WORD(LANES))

    def __exit__(self, *failure):
        return self.loop.__exit__(*failure)
