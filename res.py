import re, sys


def parts(s):
    return re.split(r"(<<<<<<< [^\n]*\n.*?=======\n.*?>>>>>>> [^\n]*\n)", s, flags=re.S)


def resolve(p, choices):
    """choices: list of 'o','t' (ours, theirs), 'ot' or a string starting with '=' literal"""
    s = open(p).read()
    out = []
    n = 0
    for part in parts(s):
        m = re.fullmatch(r"<<<<<<< [^\n]*\n(.*?)=======\n(.*?)>>>>>>> [^\n]*\n", part, flags=re.S)
        if m:
            c = choices[n]
            n += 1
            out.append(
                {"o": m[1], "t": m[2], "ot": m[1] + m[2], "to": m[2] + m[1]}.get(
                    c, c[1:] if c.startswith("=") else None
                )
            )
        else:
            out.append(part)
    assert n == len(choices), (p, n, len(choices))
    open(p, "w").write("".join(out))
