"""In which order a dictionary of Python 2.7 (64 bits) gives its names back.

The code of Jung, Goetz and Tewari (2017) ran there and kept what its trees know of each column in a dictionary; of columns
that split equally well a tree takes the last. On mice, with 77 columns, nearly all of them split two examples equally well.
"""

HASH_BITS = 64


def string_hash(name):
    """Return the hash of a string that is not empty."""
    number = ord(name[0]) << 7
    for letter in name:
        number = (1000003 * number) % 2**HASH_BITS ^ ord(letter)
    return number ^ len(name)


def free_place(table, number):
    """Return the place of a table (its length a power of 2, None where free) that a new name with this hash gets."""
    last, place, rest = len(table) - 1, number, number
    while table[place & last] is not None:
        place, rest = 5 * place + rest + 1, rest >> 5
    return place & last


def dictionary_order(names):
    """Return names in the order in which a dictionary gives them back that got them one by one."""
    table = [None] * 8
    for count, name in enumerate(names, 1):
        table[free_place(table, string_hash(name))] = name
        if 3 * count >= 2 * len(table):  # two thirds full: more than four times as many places as names
            before, table = table, [None] * (1 << (4 * count).bit_length())
            for known in before:
                if known is not None:
                    table[free_place(table, string_hash(known))] = known
    return [name for name in table if name is not None]
